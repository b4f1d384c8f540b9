package laboratory

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained/admet"
	"github.com/specmatch/specmatch/tensor"
)

// ask asks a session, and decodes the answer.
func ask[A any](t *testing.T, s *Session, method string, request any, data []byte) (answer A, failed string) {
	t.Helper()
	text, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	var reply struct {
		Value A
		Error string
	}
	if err := json.Unmarshal([]byte(s.Call(method, string(text), data)), &reply); err != nil {
		t.Fatal(err)
	}
	return reply.Value, reply.Error
}

type object = map[string]any

// awkward is a table with what tables have: blank lines, line breaks in quotes, a bad SMILES and a short row.
const awkward = "name,smiles,y\r\na,CCO,1\r\n\r\n\"b\n2\",c1ccccc1,2\nc,C1CC,3\nd,CC(C)O\ne,CCN,5\n"

// TestParts: the parts of a file have all its records, with their numbers, lines, columns and reasons.
func TestParts(t *testing.T) {
	defer func(old []int) { partSizes = old }(partSizes)
	partSizes = []int{1, 2, 1, 1, 1, 1}
	table, err := os.ReadFile("../../testdata/molecules.csv")
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	z.Write(table)
	z.Close()
	for name, text := range map[string]string{
		"a.csv":       awkward,
		"m.csv":       string(table),
		"M.CSV.GZ":    packed.String(),
		"long.csv":    "smiles\nCC\n" + strings.Repeat("C", 80) + "1\nC1\n",
		"blank.csv":   "\n\nname,smiles\na,CCO\n\nb,CC\n",
		"cr.csv":      "name,smiles\ra,CCO\rb,CC\rc,C\r",
		"tabs.tsv":    "name\tsmiles\ty\na\tC\t1\n\t\t\nb\tCC\t2\n\t\t\nc\tCCC\t3\n",
		"quotes.csv":  "smiles,name\nC,4\"-O-methyl\nCC,b\nCCC,5\"-O-methyl\n\"CCCC\",\"d\n\"\nCCCCC,\"e\n",
		"utf16.csv":   "s\x00m\x00i\x00l\x00e\x00s\x00\n\x00C\x00\n\x00C\x00C\x00\n\x00C\x00O\x00\n\x00",
		"a.smi":       "CCO ethanol\n\nC1CC wrong\nc1ccccc1\n",
		"numbers.smi": "CCO 2\nCC 1\nC 1\nC1CC 1\nCCCC 2\nCCC\nCCN 7\n",
		"pasted text": "\nname\tsmiles\na\tC\n\t\nb\tCC",
		"a.txt":       "CCO\nCCN",
		"a.sdf":       molfile + "$$$$\nbroken\n$$$$\n" + molfile + "$$$$\n",
	} {
		compareParts(t, name, text)
	}
}

// TestRandomParts: the parts of tables and lists of any lines have all their records.
func TestRandomParts(t *testing.T) {
	defer func(old []int) { partSizes = old }(partSizes)
	partSizes = []int{1, 2, 1, 3, 1, 2, 1, 1}
	lines := []string{
		"", " ", "C,1", "CC,\"2\"", "C1CC,3", " , ", ",", "\t", "C,4\"-O", "\"C\",\"a\nb\"", "\"C,5", "C,\"", "C C\"",
		"\"\"", "N,6\r", "\r", "CO\r7", "\"C\"\"\",8", "C\",9", "\"", "\",\"C", "N,\"\"4\"",
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 1000 {
		text := ""
		for range rng.IntN(12) {
			text += lines[rng.IntN(len(lines))] + "\n"
		}
		text += "CCO,9\n"
		if rng.IntN(2) == 0 {
			text = strings.TrimSuffix(text, "\n")
		}
		compareParts(t, "a.csv", "smiles,name\n"+text)
		compareParts(t, "a.smi", text)
	}
}

// compareParts compares the records of the parts of a file with those of the whole.
func compareParts(t *testing.T, name, text string) {
	t.Helper()
	s := new(Session)
	f, failed := ask[opened](t, s, "open", object{"name": name}, []byte(text))
	if failed != "" {
		t.Fatalf("%s: %s", name, failed)
	}
	s.models = map[string]*predictor{"none": {rows: apply.Model{Rows: noRows}}}
	var got []string
	for _, p := range f.Parts {
		a, failed := ask[struct{ Rows []Row }](t, s, "predict", task{source: f.source, part: p, Model: "none"}, nil)
		if failed != "" {
			t.Fatalf("%s: %s", name, failed)
		}
		if len(a.Rows) != p.Count {
			t.Errorf("%s: %d rows of a part of %d", name, len(a.Rows), p.Count)
		}
		for _, r := range a.Rows {
			if r.Error == "" {
				r.SMILES = ""
			}
			got = append(got, fmt.Sprint(r.Number, r.Line, r.ID, r.Fields, r.SMILES, reasonOf(r.Error)))
		}
	}
	var want []string
	options := f.source.options(text)
	err := records.Read(t.Context(), name, options, func(r *records.Record) error {
		line, smiles, reason := r.Line, "", ""
		if r.Err != nil {
			line, smiles, reason = r.Err.Line, cmp.Or(r.SMILES, r.Err.Value), r.Err.Reason
		}
		want = append(want, fmt.Sprint(r.Number, line, r.ID, r.Fields, smiles, reasonOf(reason)))
		return nil
	})
	if err != nil || !slices.Equal(got, want) || f.Records != len(want) {
		t.Errorf("%s: %q: %d records, %v\n%s\nwant\n%s", name, text, f.Records, err,
			strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// reasonOf returns a reason without what is wrong with a row that gives its other lines back: a part may end before the
// line that says it.
func reasonOf(reason string) string {
	const back = "the lines after this one are read as rows of their own"
	if strings.HasSuffix(reason, back) {
		return back
	}
	return reason
}

const molfile = "ethanol\n\n\n  3  2  0  0  0  0  0  0  0  0999 V2000\n" +
	"    0.0000    0.0000    0.0000 C   0  0\n    1.0000    0.0000    0.0000 C   0  0\n" +
	"    2.0000    0.0000    0.0000 O   0  0\n  1  2  1  0\n  2  3  1  0\nM  END\n> <y>\n1.5\n\n"

// property returns a property of an SD file.
func property(name, value string) string { return "> <" + name + ">\n" + value + "\n\n" }

// TestProperties: an SD file has all of its properties as columns, and each of its records can be used.
func TestProperties(t *testing.T) {
	const end = "$$$$\n"
	for name, c := range map[string]struct {
		text    string
		id      string
		columns []string
		last    []string // the fields of the last record
	}{
		"every record has the ID": {
			text:    strings.Repeat(molfile+property("Name", "a")+property("ID", "1")+end, 2),
			id:      "ID",
			columns: []string{"y", "Name", "ID"},
			last:    []string{"1.5", "a", "1"},
		},
		"a record lacks it": {
			text:    molfile + property("ID", "1") + property("Name", "a") + end + molfile + property("Name", "b"),
			id:      "Name",
			columns: []string{"y", "ID", "Name"},
			last:    []string{"1.5", "", "b"},
		},
		"a record has an empty one": {
			text:    molfile + property("ID", "1") + end + molfile + property("ID", " ") + end,
			columns: []string{"y", "ID"},
			last:    []string{"1.5", ""},
		},
		"a value looks like a property": {
			text:    molfile + property("ID", "> <Name>") + end + molfile + "> <ID>\n1\n> <Name>\na\n" + end,
			id:      "ID",
			columns: []string{"y", "ID"},
			last:    []string{"1.5", "1\n> <Name>\na"},
		},
		"the last of many records has another one": {
			text:    strings.Repeat(molfile+end, 600) + molfile + property("late", "2"),
			columns: []string{"y", "late"},
			last:    []string{"1.5", "2"},
		},
		"a record has one three times": {
			text: molfile + end + molfile + property("y_2", "x") +
				strings.ReplaceAll(property("y", "2")+property("y", "3"), "\n", "\r\n") + end,
			columns: []string{"y", "y_2", "y_3", "y_4"},
			last:    []string{"1.5", "x", "2", "3"},
		},
	} {
		s := new(Session)
		f, failed := ask[opened](t, s, "open", object{"name": "a.sdf"}, []byte(c.text))
		if failed != "" {
			t.Fatalf("%s: %s", name, failed)
		}
		if f.ID != c.id || !slices.Equal(f.Columns, c.columns) || !slices.Equal(f.Fields, c.columns) {
			t.Errorf("%s: ID %q, columns %q, fields %q; want %q, %q", name, f.ID, f.Columns, f.Fields, c.id, c.columns)
		}
		s.models = map[string]*predictor{"none": {rows: apply.Model{Rows: noRows}}}
		var rows []Row
		for _, p := range f.Parts {
			a, failed := ask[struct{ Rows []Row }](t, s, "predict", task{source: f.source, part: p, Model: "none"}, nil)
			if failed != "" {
				t.Fatalf("%s: %s", name, failed)
			}
			rows = append(rows, a.Rows...)
		}
		for _, r := range rows {
			if r.Error != "" {
				t.Errorf("%s: record %d: %s", name, r.Number, r.Error)
			}
		}
		if last := rows[len(rows)-1].Fields; !slices.Equal(last, c.last) {
			t.Errorf("%s: the last record has %q, want %q", name, last, c.last)
		}
		hits, failed := ask[struct{ Hits []hit }](t, s, "search", query{Text: "CCO", Top: 1000}, nil)
		if len(hits.Hits) != len(rows) {
			t.Errorf("%s: a search finds %d of %d records: %s", name, len(hits.Hits), len(rows), failed)
		}
	}
}

// TestInvalidText: a record whose text is not UTF-8 is used by all questions, or by none.
func TestInvalidText(t *testing.T) {
	s := new(Session)
	f, failed := ask[opened](t, s, "open", object{"name": "a.csv"}, []byte("name,smiles\ncaf\xe9,CCO\nb,CC\n"))
	if failed != "" {
		t.Fatal(failed)
	}
	s.models = map[string]*predictor{"none": {rows: apply.Model{Rows: noRows}}}
	a, failed := ask[struct{ Rows []Row }](t, s, "predict",
		task{source: f.source, part: f.Parts[0], Model: "none"}, nil)
	if failed != "" || len(a.Rows) != 2 || a.Rows[0].ID != "caf\uFFFD" || a.Rows[0].Error != "" {
		t.Errorf("%s: %+v", failed, a.Rows)
	}
	hits, failed := ask[struct{ Hits []hit }](t, s, "search", query{Text: "CCO", Top: 1}, nil)
	if failed != "" || !slices.Equal(hits.Hits, []hit{{1, 1}}) {
		t.Errorf("%s: a search finds %v", failed, hits.Hits)
	}
}

// TestComplexes: molecules are searched that no encoder reads.
func TestComplexes(t *testing.T) {
	s := new(Session)
	if _, failed := ask[opened](t, s, "open", object{"name": "a.csv"}, []byte("smiles\nN[Pt@SP1](N)(Cl)Cl\nC$C\nCCO\n")); failed != "" {
		t.Fatal(failed)
	}
	hits, failed := ask[struct{ Hits []hit }](t, s, "search", query{Text: "[Pt]", Kind: "substructure"}, nil)
	if failed != "" || len(hits.Hits) != 1 {
		t.Errorf("%s: a search finds %v", failed, hits.Hits)
	}
}

// TestMessages: what cannot be used is answered with what to do.
func TestMessages(t *testing.T) {
	s := new(Session)
	for _, c := range []struct {
		method  string
		request any
		data    string
		want    string
	}{
		{"nothing", object{}, "", `there is no "nothing"`},
		{"search", object{"text": "C"}, "", "there is no file: drop one"},
		{"open", object{"name": "a.csv"}, " \n", "a.csv is empty: drop"},
		{"open", object{"name": "a.csv"}, "x,y\n1,2\n", `no column "smiles"`},
		{"load", object{"model": "m"}, "a text", "not a safetensors file"},
		{"predict", object{"model": "m"}, "", `there is no model "m" here: drop its file again`},
		{"search", object{"text": " "}, "", "write a SMILES"},
		{"open", object{"name": "a.smi"}, "CCO\n", ""},
		{"search", object{"text": "C(", "kind": "substructure"}, "", "smarts"},
		{"search", object{"text": "C(", "kind": "similar"}, "", "column"},
		{"pick", object{"count": 0}, "", "want 1 or more"},
		{"fit", object{"target": "y"}, "", `a.smi: has no columns, such as "y"`},
	} {
		var data []byte
		if c.data != "" {
			data = []byte(c.data)
		}
		_, failed := ask[any](t, s, c.method, c.request, data)
		if !strings.Contains(failed, c.want) || (c.want == "") != (failed == "") {
			t.Errorf("%s %v: %q, want %q", c.method, c.request, failed, c.want)
		}
	}
}

// TestPredict: predictions are those of a job over the whole file, an explanation adds up to its prediction, and the
// library's answers name records.
func TestPredict(t *testing.T) {
	text, err := os.ReadFile("../../testdata/molecules.csv")
	if err != nil {
		t.Fatal(err)
	}
	s := new(Session)
	f, failed := ask[opened](t, s, "open", object{"name": "m.csv"}, text)
	if failed != "" {
		t.Fatal(failed)
	}
	loaded, failed := ask[struct {
		Columns []column
		Names   []string
	}](t, s, "load", object{"model": "admet"}, nil)
	if failed != "" || len(loaded.Columns) != len(admet.Endpoints()) || len(loaded.Names) != 56 {
		t.Fatalf("%s: %+v", failed, loaded)
	}
	var got []Row
	for _, p := range f.Parts {
		a, failed := ask[struct{ Rows []Row }](t, s, "predict",
			task{source: f.source, part: p, Model: "admet", Draw: true}, nil)
		if failed != "" {
			t.Fatal(failed)
		}
		got = append(got, a.Rows...)
	}
	job := apply.Job{Path: "m.csv", Records: f.source.options(string(text)), Model: s.models["admet"].rows}
	err = job.Stream(t.Context(), func(b apply.Batch) error {
		i := 0
		for r, row := range b.Rows() {
			if got[i].ID != r.ID || !strings.HasPrefix(got[i].SVG, "<svg") {
				t.Errorf("record %d is %+v", i, got[i])
			}
			for k, v := range row {
				if math.Abs(float64(*got[i].Values[k])-v) > 1e-5*max(1, math.Abs(v)) {
					t.Errorf("record %d, %s: %v, want %v", i, loaded.Names[k], *got[i].Values[k], v)
				}
			}
			i++
		}
		return nil
	})
	if err != nil || len(got) != 25 {
		t.Errorf("%d rows, %v", len(got), err)
	}

	x, failed := ask[struct {
		SVG        string
		Prediction float64
		Atoms      []float64
	}](t, s, "explain", look{Model: "admet", Column: "herg", SMILES: got[3].SMILES}, nil)
	if failed != "" || len(x.Atoms) == 0 || !strings.Contains(x.SVG, "<circle") {
		t.Errorf("%s: %+v", failed, x)
	}
	hits, failed := ask[struct{ Hits []hit }](t, s, "search", query{Text: got[3].SMILES, Top: 5}, nil)
	if failed != "" || len(hits.Hits) != 5 || hits.Hits[0] != (hit{4, 1}) {
		t.Errorf("%s: %+v", failed, hits)
	}
	hits, failed = ask[struct{ Hits []hit }](t, s, "search", query{Text: "[OX2H]", Kind: "substructure"}, nil)
	if failed != "" || len(hits.Hits) == 0 {
		t.Errorf("%s: %+v", failed, hits)
	}
	clusters, failed := ask[struct{ Clusters [][]int }](t, s, "cluster", object{"least": 0.4}, nil)
	if n := len(slices.Concat(clusters.Clusters...)); failed != "" || n != 24 {
		t.Errorf("%s: %d molecules in clusters", failed, n)
	}
	hits, failed = ask[struct{ Hits []hit }](t, s, "pick", object{"count": 3, "seed": 1}, nil)
	if failed != "" || len(hits.Hits) != 3 {
		t.Errorf("%s: %+v", failed, hits)
	}
	points, failed := ask[struct {
		Numbers []int
		XY      [][2]float64
	}](t, s, "map", object{}, nil)
	if failed != "" || len(points.XY) != 24 || len(points.Numbers) != 24 {
		t.Errorf("%s: %+v", failed, points)
	}
	page, failed := ask[struct{ HTML string }](t, s, "page", object{
		"Title":   "m",
		"Columns": []string{"id", "smiles"},
		"Rows":    [][]string{{"a", "CCO"}},
		"SMILES":  1,
	}, nil)
	if failed != "" || strings.Count(page.HTML, "<svg") != 1 {
		t.Errorf("%s: %s", failed, page.HTML)
	}
}

// TestFit: a model of a column is scored, its file opens elsewhere, and another session predicts with it.
func TestFit(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "testdata", "molecules.csv"))
	if err != nil {
		t.Fatal(err)
	}
	s := new(Session)
	f, failed := ask[opened](t, s, "open", object{"name": "m.csv"}, text)
	if failed != "" {
		t.Fatal(failed)
	}
	x, failed := ask[struct {
		Metric          string
		Score, Baseline float64
		Model           string
	}](t, s, "fit", object{"target": "logS"}, nil)
	if failed != "" || x.Metric != "mae" || !(x.Score < x.Baseline) {
		t.Fatalf("%s: %+v", failed, x)
	}
	file, err := base64.StdEncoding.DecodeString(x.Model)
	if err != nil {
		t.Fatal(err)
	}
	be := cpu.New(tensor.Float32)
	defer be.Close()
	m, err := model.Read(bytes.NewReader(file), be)
	if err != nil || !slices.Equal(m.Card.Head.Tasks, []string{"logS"}) {
		t.Fatal(err)
	}
	other := new(Session)
	if _, failed := ask[any](t, other, "load", object{"model": "mine"}, file); failed != "" {
		t.Fatal(failed)
	}
	a, failed := ask[struct{ Rows []Row }](t, other, "predict",
		task{source: f.source, part: f.Parts[0], Model: "mine"}, nil)
	if failed != "" || len(a.Rows[0].Values) != 1 {
		t.Errorf("%s: %+v", failed, a)
	}
	if _, failed := ask[any](t, other, "nearest", look{"mine", "logS", "CCO"}, nil); failed != "" {
		t.Error(failed)
	}
}

// TestEnsemble: the laboratory opens an ensemble, and has the numbers of specmatch predict for it.
func TestEnsemble(t *testing.T) {
	const text = "CCO\nc1ccncc1C(=O)O\nCC(C)Cc1ccc(cc1)C(C)C(=O)O\n"
	be := cpu.New(tensor.Float32)
	defer be.Close()
	var members []model.Member
	var models []*model.Trained
	for k := range 2 {
		file, err := admet.Model("caco2")
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Read(bytes.NewReader(file), be)
		if err != nil {
			t.Fatal(err)
		}
		w := m.Beside.Linear.W.Value
		be.Axpby(w, 1, w, 0.5*float64(k), w)
		var changed bytes.Buffer
		if err := m.Write(&changed); err != nil {
			t.Fatal(err)
		}
		models = append(models, m)
		members = append(members, model.Member{Name: fmt.Sprint(k, ".safetensors"), File: changed.Bytes()})
	}
	var file bytes.Buffer
	if err := model.WriteEnsemble(&file, members...); err != nil {
		t.Fatal(err)
	}
	s := new(Session)
	f, failed := ask[opened](t, s, "open", object{"name": "m.smi"}, []byte(text))
	if failed != "" {
		t.Fatal(failed)
	}
	loaded, failed := ask[struct{ Columns []column }](t, s, "load", object{"model": "two"}, file.Bytes())
	if failed != "" || len(loaded.Columns) != 1 || loaded.Columns[0].Sure != 2 || loaded.Columns[0].Distance != 4 {
		t.Fatalf("%s: %+v", failed, loaded)
	}
	a, failed := ask[struct{ Rows []Row }](t, s, "predict", task{source: f.source, part: f.Parts[0], Model: "two"}, nil)
	if failed != "" {
		t.Fatal(failed)
	}
	rows, err := apply.Sure(Level, true, models...)
	if err != nil {
		t.Fatal(err)
	}
	job := apply.Job{Path: "m.smi", Records: f.source.options(text), Model: rows}
	err = job.Stream(t.Context(), func(b apply.Batch) error {
		for i, want := range slices.Collect(slices.Chunk(b.Values, len(rows.Columns))) {
			for k, v := range want {
				if got := a.Rows[i].Values[k]; math.Abs(float64(*got)-v) > 1e-5*max(1, math.Abs(v)) {
					t.Errorf("molecule %d, %s: %v, want %v", i, rows.Columns[k], *got, v)
				}
			}
			if want[1] == 0 {
				t.Error("the models are equal")
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, method := range []string{"explain", "nearest"} {
		if _, failed := ask[any](t, s, method, look{"two", "caco2", "CCO"}, nil); failed != "" {
			t.Errorf("%s: %s", method, failed)
		}
	}
	if _, failed := ask[any](t, s, "load", object{"model": "half"}, file.Bytes()[:file.Len()/2]); !strings.Contains(failed, "damaged or truncated") {
		t.Error(failed)
	}
}
