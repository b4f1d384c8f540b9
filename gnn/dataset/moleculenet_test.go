package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
)

func zipped(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// graphsOf parses molecules one by one, which is what sets and corpora must
// come to.
func graphsOf(t testing.TB, smiles ...string) []*graph.Graph {
	t.Helper()
	var out []*graph.Graph
	for _, s := range smiles {
		m, err := molecule.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, g)
	}
	return out
}

func sameGraphs(t *testing.T, got, want []*graph.Graph) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d graphs, want %d", len(got), len(want))
	}
	for i, g := range got {
		if err := g.Validate(); err != nil {
			t.Fatalf("graph %d: %v", i, err)
		}
		w := want[i]
		if !slices.Equal(g.Ptr, w.Ptr) || !slices.Equal(g.Adj, w.Adj) || !slices.Equal(g.EdgeLabel, w.EdgeLabel) ||
			g.X.Width != w.X.Width || !slices.Equal(g.X.Category, w.X.Category) {
			t.Fatalf("graph %d is %+v, want %+v", i, g, w)
		}
	}
}

// clintoxText has what the real files have: an empty label, a quoted field with
// a comma, a blank line, CRLF, and molecules that cannot be used.
const clintoxText = "smiles,\"note, quoted\",FDA_APPROVED,CT_TOX\r\n" +
	"c1ccccc1C,\"a, b\",1,0\r\n" +
	"\r\n" +
	"CCO,,, 1.0\r\n" +
	"C(C)(C)(C)(C)C,,1,1\r\n" +
	"*C,,1,1\r\n" +
	" CCc1ccccc1 ,,0.0,\r\n"

func TestOpenMoleculeNet(t *testing.T) {
	for _, ext := range []string{".csv", ".csv.gz"} {
		dir := t.TempDir()
		text := []byte(clintoxText)
		if ext == ".csv.gz" {
			text = zipped(t, clintoxText)
		}
		path := filepath.Join(dir, "clintox"+ext)
		write(t, path, string(text))
		m, err := OpenMoleculeNet(t.Context(), dir, "clintox")
		if err != nil {
			t.Fatal(err)
		}
		sameGraphs(t, m.Graphs, graphsOf(t, "c1ccccc1C", "CCO", "CCc1ccccc1"))
		m.Graphs = nil
		want := &Molecules{
			Name:      "clintox",
			SMILES:    []string{"c1ccccc1C", "CCO", "CCc1ccccc1"},
			Tasks:     []string{"FDA_APPROVED", "CT_TOX"},
			Labels:    []int8{1, -1, 0, 1, -1, 0},
			Scaffolds: []int{0, 1, 0},
			Dropped: []*SyntaxError{
				{path, 5, "C(C)(C)(C)(C)C", "column 1: C has the valence 5, and at most 4 is allowed"},
				{path, 6, "*C", "atom 0 is a wildcard, which is no category"},
			},
		}
		if !reflect.DeepEqual(m, want) {
			t.Errorf("%s: %+v, want %+v", ext, m, want)
		}
		if m.Label(1, 1) != 1 || m.Label(2, 0) != -1 {
			t.Errorf("labels %d, %d", m.Label(1, 1), m.Label(2, 0))
		}
	}
}

func TestMoleculeNetErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"clintox", "", "clintox.csv:1: want a header, have an empty file"},
		{"clintox", "smiles,FDA_APPROVED\nC,1\n", `clintox.csv:1: "smiles,FDA_APPROVED": no column "CT_TOX"`},
		{"bace", "smiles,Class\nC,1\n", `bace.csv:1: "smiles,Class": no column "mol"`},
		{"bace", strings.Repeat("x", maxToken+1) + "\n", `bace.csv:1: "` + strings.Repeat("x", maxToken) + `…": no column "mol"`},
		{"sider", "smiles,a,b\nC,1,0\n", "sider.csv:1: 2 columns of labels; sider has 27"},
		{"bbbp", "smiles,p_np,p_np\nC,1,0\n", `bbbp.csv:1: two columns named "p_np"`},
		{"tox21", "smiles,mol_id" + strings.Repeat(",t", 12) + "\n", `tox21.csv:1: two columns named "t"`},
		{"sider", "smiles,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,aa,bb\n", "sider.csv:1: 28 columns of labels; sider has 27"},
		{"bbbp", "num,name,p_np,smiles\n1,\"two\nlines\",1,Xx\n", `bbbp.csv:3: "Xx": column 1`},
		{"hiv", "smiles,HIV_active\nC,1\nC,yes\n", `hiv.csv:3: "yes": label of HIV_active; want 0, 1 or nothing`},
		{"hiv", "smiles,HIV_active\nC,1\nC,2\n", `hiv.csv:3: "2": label of HIV_active; want 0, 1 or nothing`},
		{"hiv", "smiles,HIV_active\nC,1\nC\n", "hiv.csv:3: wrong number of fields"},
		{"hiv", "smiles,HIV_active\nC,\"1\n", "hiv.csv:2: extraneous or missing"},
		{"hiv", "smiles,HIV_active\nXx,1\n", `hiv.csv: no molecule of it can be used, such as dataset: `},
		{"hiv", "smiles,HIV_active\nXx,1\n", `hiv.csv:2: "Xx": column 1`},
		{"hiv", "smiles,HIV_active\n", "hiv.csv: there is no molecule in it"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, c.name+".csv"), c.text)
		_, err := OpenMoleculeNet(t.Context(), dir, c.name)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := OpenMoleculeNet(t.Context(), t.TempDir(), "hiv"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "HIV.csv") {
		t.Errorf("without a file: %v", err)
	}
	if _, err := OpenMoleculeNet(t.Context(), t.TempDir(), "HIV"); err == nil || !strings.Contains(err.Error(), `no MoleculeNet set "HIV"; there are bbbp, tox21`) {
		t.Errorf("no such set: %v", err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "hiv.csv.gz"), "not compressed")
	if _, err := OpenMoleculeNet(t.Context(), dir, "hiv"); !errors.Is(err, gzip.ErrHeader) {
		t.Errorf("not compressed: %v", err)
	}
	dir = t.TempDir()
	write(t, filepath.Join(dir, "hiv.csv"), "smiles,HIV_active\nC,1\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenMoleculeNet(ctx, dir, "hiv"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// A link that leads nowhere is not passed over for another file.
	dir = t.TempDir()
	write(t, filepath.Join(dir, "HIV.csv"), "smiles,HIV_active\nC,1\n")
	if err := os.Symlink("nowhere", filepath.Join(dir, "hiv.csv")); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenMoleculeNet(t.Context(), dir, "hiv"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a broken link: %v", err)
	}
}

// TestMoleculeNetColumns: the headers of the official files, with the names of
// columns that only count made up.
func TestMoleculeNetColumns(t *testing.T) {
	tasks := func(n int) (out []string) {
		for k := range n {
			out = append(out, fmt.Sprint("task", k))
		}
		return out
	}
	for _, c := range []struct {
		name   string
		header []string
		want   []string
	}{
		{"bbbp", []string{"num", "name", "p_np", "smiles"}, []string{"p_np"}},
		{"tox21", append(tasks(12), "mol_id", "smiles"), tasks(12)},
		{"toxcast", append([]string{"smiles"}, tasks(617)...), tasks(617)},
		{"sider", append([]string{"smiles"}, tasks(27)...), tasks(27)},
		{"clintox", []string{"smiles", "FDA_APPROVED", "CT_TOX"}, []string{"FDA_APPROVED", "CT_TOX"}},
		{"muv", append(tasks(17), "mol_id", "smiles"), tasks(17)},
		{"hiv", []string{"smiles", "activity", "HIV_active"}, []string{"HIV_active"}},
		{"bace", []string{"mol", "CID", "Class", "Model", "pIC50"}, []string{"Class"}},
	} {
		set, err := MoleculeNetByName(c.name)
		if err != nil {
			t.Fatal(err)
		}
		smiles, labels, err := set.columns(&csvRows{header: c.header})
		var got []string
		for _, l := range labels {
			got = append(got, c.header[l])
		}
		if err != nil || !slices.Equal(got, c.want) || c.header[smiles] != set.SMILES {
			t.Errorf("%s: SMILES in column %d, tasks %v, %v", c.name, smiles, got, err)
		}
	}
	MoleculeNet()[0].Name = "changed"
	if MoleculeNet()[0].Name != "bbbp" {
		t.Error("MoleculeNet returns the table itself")
	}
}

func TestFetchMoleculeNet(t *testing.T) {
	files := map[string]string{
		"/x/HIV.csv":        "smiles,activity,HIV_active\nCCO,CI,0\n",
		"/x/clintox.csv.gz": string(zipped(t, clintoxText)),
		"/x/bace.csv":       "mol,Klasse\nC,1\n",
		"/x/tox21.csv.gz":   "smiles,NR-AR\nCCO,1\n",
		"/x/sider.csv.gz":   string(zipped(t, "")),
	}
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		if text, ok := files[r.URL.Path]; ok {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
			return
		}
		http.NotFound(w, r)
	}))
	defer s.Close()
	opts := FetchOptions{BaseURL: s.URL + "/x", Client: s.Client(), Backoff: time.Millisecond}
	dir := t.TempDir()
	for _, name := range []string{"hiv", "clintox"} {
		if err := FetchMoleculeNet(t.Context(), name, dir, opts); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenMoleculeNet(t.Context(), dir, name); err != nil {
			t.Error(err)
		}
	}
	if got, want := ls(t, dir), []string{"clintox.csv.gz", "clintox.csv.gz.sha256", "hiv.csv", "hiv.csv.sha256"}; !slices.Equal(got, want) {
		t.Errorf("the folder holds %v, want %v", got, want)
	}
	// What is there is checked, not fetched.
	n := len(asked)
	if err := FetchMoleculeNet(t.Context(), "hiv", dir, opts); err != nil || len(asked) != n {
		t.Errorf("again: %v after %d requests", err, len(asked)-n)
	}
	write(t, filepath.Join(dir, "hiv.csv"), "smiles,HIV_active\nCCO,1\n")
	if sum := (*SumError)(nil); !errors.As(FetchMoleculeNet(t.Context(), "hiv", dir, opts), &sum) {
		t.Error("a changed file is not noticed")
	}
	for name, want := range map[string]string{
		"bace":  `no column "Class"`,
		"tox21": "gzip: invalid header",
		"sider": "unexpected EOF",
		"muv":   "404",
		"zinc":  "no MoleculeNet set",
	} {
		if err := FetchMoleculeNet(t.Context(), name, dir, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
	if len(ls(t, dir)) != 4 {
		t.Errorf("left behind: %v", ls(t, dir))
	}
}

// TestMoleculeNetURL: without a base URL it is the official one that is asked.
func TestMoleculeNetURL(t *testing.T) {
	var asked []string
	client := &http.Client{Transport: transport(func(r *http.Request) *http.Response {
		asked = append(asked, r.URL.String())
		return &http.Response{Status: "404 Not Found", StatusCode: 404, Body: http.NoBody}
	})}
	err := FetchMoleculeNet(t.Context(), "bbbp", t.TempDir(), FetchOptions{Client: client})
	if want := []string{DefaultMoleculeNetURL + "/BBBP.csv"}; err == nil || !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v: %v", asked, want, err)
	}
}

// TestVerifyMoleculeNet: a table is checked to its last row, compressed or not,
// whatever the official file is.
func TestVerifyMoleculeNet(t *testing.T) {
	const good, short = "smiles,activity,HIV_active\nCCO,CI,0\n", "smiles,activity,HIV_active\nCCO,CI,0\nC,CI\n"
	for file, text := range map[string]string{"hiv.csv": good, "hiv.csv.gz": string(zipped(t, good)), "HIV.csv": good} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, file), text)
		v, err := VerifyMoleculeNet(t.Context(), dir, "hiv")
		if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text))); err != nil || v != (Verification{Path: filepath.Join(dir, file), Sum: sum}) {
			t.Errorf("%s: %+v, %v", file, v, err)
		}
	}
	for file, text := range map[string]string{"hiv.csv": short, "hiv.csv.gz": string(zipped(t, short))} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, file), text)
		if _, err := VerifyMoleculeNet(t.Context(), dir, "hiv"); err == nil || !strings.Contains(err.Error(), file+":3: ") {
			t.Errorf("%s: error %v, want one for line 3", file, err)
		}
	}
	if _, err := VerifyMoleculeNet(t.Context(), t.TempDir(), "hiv"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := VerifyMoleculeNet(t.Context(), t.TempDir(), "zinc"); err == nil {
		t.Error("no such set, and no error")
	}
}

func TestScaffoldSplit(t *testing.T) {
	// Ten molecules: groups of 4 (members 0 2 4 6), 2 (1 7), 2 (3 5), 1 (8), 1 (9).
	s, err := ScaffoldSplit([]int{7, 1, 7, 2, 7, 2, 7, 1, 3, 4}, 0.8, 0.1)
	want := Split{Train: []int{0, 2, 4, 6, 3, 5, 1, 7}, Valid: []int{9}, Test: []int{8}}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("split %v, %v; want %v", s, err, want)
	}
	// A group too large for Train may go to Valid, and smaller ones to Train still.
	s, err = ScaffoldSplit([]int{0, 0, 0, 0, 0, 1, 1, 2, 3, 4}, 0.4, 0.2)
	want = Split{Train: []int{5, 6, 9, 8}, Valid: []int{0, 1, 2, 3, 4}, Test: []int{7}}
	if err != nil || !reflect.DeepEqual(s, want) {
		t.Errorf("split %v, %v; want %v", s, err, want)
	}
	for _, shares := range [][2]float64{{-0.1, 0.1}, {0.5, 0.51}, {0.5, -1}, {math.NaN(), 0.1}, {0.5, math.NaN()}} {
		if _, err := ScaffoldSplit([]int{1}, shares[0], shares[1]); err == nil {
			t.Errorf("shares %v are accepted", shares)
		}
	}
}

// TestScaffoldSplitParts: every molecule is in one part, and so is every
// scaffold.
func TestScaffoldSplitParts(t *testing.T) {
	rng := NewRandomState(3)
	for n := 1; n < 200; n += 7 {
		scaffolds := make([]int, n)
		for i := range scaffolds {
			scaffolds[i] = i / 3
		}
		rng.Shuffle(scaffolds)
		s, err := ScaffoldSplit(scaffolds, 0.8, 0.1)
		if err != nil {
			t.Fatal(err)
		}
		part := map[int]int{}
		seen := make([]bool, n)
		for p, members := range [][]int{s.Train, s.Valid, s.Test} {
			for _, i := range members {
				if q, ok := part[scaffolds[i]]; ok && q != p || seen[i] {
					t.Fatalf("n = %d: molecule %d or its scaffold is in two parts", n, i)
				}
				part[scaffolds[i]], seen[i] = p, true
			}
		}
		if slices.Contains(seen, false) || float64(len(s.Train)) > 0.8*float64(n) {
			t.Fatalf("n = %d: split %v", n, s)
		}
	}
}

func TestOpenCorpus(t *testing.T) {
	dir := t.TempDir()
	smiles := []string{"CCO", "c1ccccc1", "F/C=C/F", "N[C@@H](C)C(=O)O", "C"}
	want := graphsOf(t, smiles...)
	csvText := "id,smiles\n"
	for i, s := range smiles {
		csvText += fmt.Sprintf("%d,%s\n", i, s)
	}
	csvText += "\"5\n\",Xx\n\n6, C1 \n"
	lines := strings.Join(smiles, " name of it\n") + "\nXx\n\n C1 \n"
	for file, text := range map[string]string{
		"a.csv": csvText, "a.csv.gz": string(zipped(t, csvText)), "a.smi": lines, "a.smi.gz": string(zipped(t, lines)),
	} {
		path := filepath.Join(dir, file)
		write(t, path, text)
		for _, cache := range []string{"", filepath.Join(dir, file+".graphs"), filepath.Join(dir, file+".graphs")} {
			c, err := OpenCorpus(t.Context(), path, CorpusOptions{Cache: cache})
			if err != nil {
				t.Fatal(err)
			}
			sameGraphs(t, c.Graphs, want)
			// They share arrays, and none takes from another.
			for _, g := range c.Graphs {
				_, _ = append(g.Ptr, -1), append(g.X.Category, -1)
				_, _ = append(g.Adj, -1), append(g.EdgeLabel, -1)
			}
			sameGraphs(t, c.Graphs, want)
			line := 6
			if strings.Contains(file, "csv") {
				line = 8 // its row begins in line 7
			}
			reasons := []*SyntaxError{{path, line, "Xx", "column 1: 'X' is not an atom that may stand without brackets"}, {path, line + 2, "C1", "column 2: ring 1 is not closed"}}
			if c.Rows != 7 || c.Dropped != 2 || !reflect.DeepEqual(c.Reasons, reasons) {
				t.Errorf("%s: %d rows, %d dropped: %v", file, c.Rows, c.Dropped, c.Reasons)
			}
		}
		c, err := OpenCorpus(t.Context(), path, CorpusOptions{Limit: 3})
		if err != nil || c.Rows != 3 {
			t.Fatalf("%s: %+v, %v", file, c, err)
		}
		sameGraphs(t, c.Graphs, want[:3])
	}
	if c, err := OpenCorpus(t.Context(), filepath.Join(dir, "a.csv"), CorpusOptions{Column: "id"}); err == nil {
		t.Errorf("a column without SMILES makes %+v", c)
	}
	for path, want := range map[string]string{"none.csv": "no such file", "a.csv": `no column "SMILES"`} {
		if _, err := OpenCorpus(t.Context(), filepath.Join(dir, path), CorpusOptions{Column: "SMILES"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
	for file, text := range map[string]string{"b.CSV": "smiles\nC\n", "b.CSV.GZ": string(zipped(t, "smiles\nC\n")), "b.SMI.GZ": string(zipped(t, "C\n"))} {
		write(t, filepath.Join(dir, file), text)
		if c, err := OpenCorpus(t.Context(), filepath.Join(dir, file), CorpusOptions{}); err != nil || c.Rows != 1 || len(c.Graphs) != 1 {
			t.Errorf("%s: %+v, %v", file, c, err)
		}
	}
	// What ends in the middle is no shorter list.
	for file, text := range map[string]string{"cut.csv.gz": csvText, "cut.smi.gz": lines} {
		whole := zipped(t, text)
		write(t, filepath.Join(dir, file), string(whole[:len(whole)-8]))
		_, err := OpenCorpus(t.Context(), filepath.Join(dir, file), CorpusOptions{})
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), file+": ") {
			t.Errorf("%s: error %v, want %v", file, err, io.ErrUnexpectedEOF)
		}
	}
	write(t, filepath.Join(dir, "none.smi"), "\nnames\n")
	if _, err := OpenCorpus(t.Context(), filepath.Join(dir, "none.smi"), CorpusOptions{}); err == nil || !strings.Contains(err.Error(), `none.smi:2: "names": column 2`) {
		t.Errorf("no molecules: %v", err)
	}
	write(t, filepath.Join(dir, "name.smi"), "CC "+strings.Repeat("n", longestLine-10)+"\nC\n")
	if c, err := OpenCorpus(t.Context(), filepath.Join(dir, "name.smi"), CorpusOptions{}); err != nil || len(c.Graphs) != 2 {
		t.Errorf("a line that is just not too long: %+v, %v", c, err)
	}
	write(t, filepath.Join(dir, "long.smi"), "CC\n"+strings.Repeat("C", longestLine+1))
	if _, err := OpenCorpus(t.Context(), filepath.Join(dir, "long.smi"), CorpusOptions{}); err == nil || !strings.Contains(err.Error(), "long.smi:2: longer than") {
		t.Errorf("a long line: %v", err)
	}
}

// TestCorpusReasons: the first reasons are kept, and little of a long string.
func TestCorpusReasons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.smi")
	bad := strings.Repeat("é", maxToken) // characters count, not bytes
	write(t, path, "C\n"+bad+"\n"+bad+"X\n"+strings.Repeat("X\n", mostReasons))
	c, err := OpenCorpus(t.Context(), path, CorpusOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Dropped != 2+mostReasons || len(c.Reasons) != mostReasons || c.Reasons[0].Value != bad || c.Reasons[1].Value != bad+"…" {
		t.Errorf("%d dropped, %d reasons: %v", c.Dropped, len(c.Reasons), c.Reasons)
	}
}

// TestCorpusOrder: many chunks, on any number of processors, come out in order.
func TestCorpusOrder(t *testing.T) {
	var text strings.Builder
	var want []int
	for i := range 5*chunkRows + 17 {
		n := i*7919%40 + 1
		text.WriteString(strings.Repeat("C", n) + "\n")
		want = append(want, n)
	}
	path := filepath.Join(t.TempDir(), "c.smi")
	write(t, path, text.String())
	for _, procs := range []int{1, 2, 5} {
		old := runtime.GOMAXPROCS(procs)
		var progress []int
		c, err := OpenCorpus(t.Context(), path, CorpusOptions{Progress: func(rows int) { progress = append(progress, rows) }})
		runtime.GOMAXPROCS(old)
		if err != nil {
			t.Fatal(err)
		}
		for i, g := range c.Graphs {
			if g.Nodes() != want[i] {
				t.Fatalf("%d processors: molecule %d has %d atoms, want %d", procs, i, g.Nodes(), want[i])
			}
		}
		if len(c.Graphs) != len(want) || len(progress) != 5 || progress[4] != 5*chunkRows {
			t.Errorf("%d processors: %d molecules, progress %v", procs, len(c.Graphs), progress)
		}
	}
	// A reader that is told to stop does, and does not pass for one at the end.
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	_, err := OpenCorpus(ctx, path, CorpusOptions{Progress: func(int) { calls++; cancel() }})
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("cancelled: error %v after %d calls", err, calls)
	}
}

// TestParseSMILESStops: what is cancelled neither reads a list to its end nor
// gives out what has been read.
func TestParseSMILESStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	endless := func() (smilesRow, error) { return smilesRow{smiles: "C"}, nil }
	emitted := 0
	err := parseSMILES(ctx, "c.smi", endless, false, func(*parsed) { emitted++; cancel() })
	if !errors.Is(err, context.Canceled) || emitted != 1 {
		t.Errorf("error %v after %d molecules, want %v after 1", err, emitted, context.Canceled)
	}
}

func TestCorpusCache(t *testing.T) {
	dir := t.TempDir()
	path, cache := filepath.Join(dir, "c.smi"), filepath.Join(dir, "c.graphs")
	write(t, path, "CCO\nCCN\n")
	opts := CorpusOptions{Cache: cache}
	made := func() (n int) { // molecules, and whether the file was read for them
		opts.Progress = nil
		c, err := OpenCorpus(t.Context(), path, opts)
		if err != nil {
			t.Fatal(err)
		}
		return len(c.Graphs)
	}
	stamp := func() string {
		b, err := os.ReadFile(cache)
		if err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(cache)
		if err != nil {
			t.Fatal(err)
		}
		return string(b) + info.ModTime().String()
	}
	made()
	first := stamp()
	if made(); stamp() != first {
		t.Error("a good cache is made again")
	}
	opts.Limit = 1
	if n := made(); n != 1 || stamp() == first {
		t.Errorf("%d molecules with a limit of 1, or the cache of another limit is used", n)
	}
	opts.Limit = 0
	write(t, path, "CCO\nCCN\nCCC\nX\n")
	if n := made(); n != 3 {
		t.Errorf("%d molecules after the file got a third", n)
	}
	// The cache is of the contents, whatever the file is called by now.
	moved := filepath.Join(dir, "d.smi")
	if err := os.Rename(path, moved); err != nil {
		t.Fatal(err)
	}
	path = moved
	third := stamp()
	if c, err := OpenCorpus(t.Context(), path, opts); err != nil || c.Reasons[0].File != moved || stamp() != third {
		t.Errorf("a renamed file: %+v, %v", c, err)
	}
	if info, err := os.Stat(cache); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the cache is for others too: %v, %v", info.Mode(), err)
	}
	h := cacheHeader{Format: 1, Source: "s", Column: "c", Limit: 2}
	for _, other := range []cacheHeader{
		{Format: 2, Source: "s", Column: "c", Limit: 2}, {Format: 1, Source: "S", Column: "c", Limit: 2},
		{Format: 1, Source: "s", Column: "C", Limit: 2}, {Format: 1, Source: "s", Column: "c", Limit: 3},
	} {
		if h.sameSource(&other) {
			t.Errorf("%+v passes for %+v", other, h)
		}
	}
	good, err := os.ReadFile(cache)
	if err != nil {
		t.Fatal(err)
	}
	for k := len(cacheMagic); k < len(good); k++ {
		bad := bytes.Clone(good)
		bad[k] ^= 1
		write(t, cache, string(bad))
		if _, err := OpenCorpus(t.Context(), path, opts); !errors.Is(err, ErrCache) {
			t.Fatalf("a changed byte %d of %d: %v", k, len(good), err)
		}
	}
	for n := range len(good) {
		write(t, cache, string(good[:n]))
		if _, err := OpenCorpus(t.Context(), path, opts); !errors.Is(err, ErrCache) {
			t.Fatalf("%d bytes of a cache of %d: %v", n, len(good), err)
		}
	}
	if _, err := OpenCorpus(t.Context(), path, CorpusOptions{Cache: filepath.Join(dir, "none", "c.graphs")}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cache in a folder that is not there: %v", err)
	}
	// Nobody is told to delete what never was a cache, such as the corpus.
	if _, err := OpenCorpus(t.Context(), path, CorpusOptions{Cache: path}); err == nil || errors.Is(err, ErrCache) || !strings.Contains(err.Error(), path+": is no cache") {
		t.Errorf("the corpus as its own cache: %v", err)
	}
	folder := filepath.Join(dir, "folder")
	if err := os.Mkdir(folder, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := h.writeCache(folder, new(graphCodes)); err == nil || !strings.HasPrefix(err.Error(), "dataset: "+folder+": ") {
		t.Errorf("a cache in the place of a folder: %v", err)
	}
	if names := ls(t, dir); !slices.Equal(names, []string{"c.graphs", "d.smi", "folder"}) {
		t.Errorf("left behind: %v", names)
	}
}

// TestGraphCodesErrors: what is not the code of graphs is refused before it asks
// for memory.
func TestGraphCodesErrors(t *testing.T) {
	for name, c := range map[string]graphCodes{
		"more graphs than bytes":  {Graphs: math.MaxInt, code: []byte{0}},
		"more nodes than bytes":   {Nodes: math.MaxInt, code: []byte{0}},
		"more entries than bytes": {Entries: math.MaxInt, code: []byte{0}},
		"fewer graphs than none":  {Graphs: -1},
		"fewer nodes than none":   {Nodes: -1},
		"fewer entries than none": {Entries: -1},
		"a graph too large":       {Graphs: 1, Nodes: 1, code: []byte{2, 0, 0, 0, 0}},
		"an edge too many":        {Graphs: 1, Nodes: 2, Entries: 1, code: []byte{2, 0, 0, 0, 1, 0, 0}},
		"a category too large":    {Graphs: 1, Nodes: 1, code: []byte{1, 5, 0}},
		"an edge twice":           {Graphs: 1, Nodes: 3, Entries: 4, code: []byte{3, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0}},
		"a label beyond int32":    {Graphs: 1, Nodes: 2, Entries: 2, code: []byte{2, 0, 0, 0, 1, 0, 0x80, 0x80, 0x80, 0x80, 8}},
		"more code":               {Graphs: 1, Nodes: 1, code: []byte{1, 0, 0, 0}},
		"more nodes":              {Graphs: 1, Nodes: 2, code: []byte{1, 0, 0}},
		"more entries":            {Graphs: 1, Nodes: 1, Entries: 1, code: []byte{1, 0, 0}},
	} {
		c.Width = 5
		if g, err := c.decode(); !errors.Is(err, errCode) {
			t.Errorf("%s: %v, %v", name, g, err)
		}
	}
}

// FuzzGraphCodes: damaged codes are errors, never panics, and whatever is
// decoded is a valid graph whose code is the same again.
func FuzzGraphCodes(f *testing.F) {
	var code []byte
	nodes, entries := 0, 0
	for _, g := range graphsOf(f, "CCO", "c1ccccc1", "F/C=C/F", "C") {
		code = appendGraph(code, g)
		nodes, entries = nodes+g.Nodes(), entries+g.Entries()
	}
	f.Add(4, nodes, entries, code)
	f.Add(1, 1, 0, []byte{1, 17, 0})
	f.Fuzz(func(t *testing.T, graphs, nodes, entries int, code []byte) {
		c := graphCodes{graphs, nodes, entries, 360, code}
		out, err := c.decode()
		if err != nil {
			return
		}
		var again []byte
		for _, g := range out {
			if err := g.Validate(); err != nil {
				t.Fatal(err)
			}
			again = appendGraph(again, g)
		}
		back, err := (&graphCodes{graphs, nodes, entries, 360, again}).decode()
		if err != nil {
			t.Fatal(err)
		}
		sameGraphs(t, back, out)
	})
}

// TestFindOrder: of a set and its compressed form beside it, the plain one is
// read, as of a network's tables.
func TestFindOrder(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"HIV.csv", "hiv.csv.gz", "hiv.csv"} { // from the last choice to the first
		write(t, filepath.Join(dir, file), "")
		got, err := FindMoleculeNet(dir, "hiv")
		if err != nil || filepath.Base(got) != file {
			t.Errorf("%s: found %s, %v", file, got, err)
		}
	}
}

// TestMoleculeNetColumnsByName: a set's name and header tell its columns.
func TestMoleculeNetColumnsByName(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ header, smiles, targets, err string }{
		"esol.csv":     {"Compound ID,measured log solubility in mols per litre,smiles", "smiles", "measured log solubility in mols per litre", ""},
		"lipo.csv":     {"smiles,lipo", "smiles", "lipo", ""},
		"freesolv.csv": {"iupac,smiles,expt,calc", "smiles", "expt", ""},
		"clintox.csv":  {"smiles,CT_TOX,FDA_APPROVED", "smiles", "FDA_APPROVED,CT_TOX", ""},
		"bace.csv":     {"mol,CID,Class", "mol", "Class", ""},
		"mine.csv":     {"smiles,y", "", "", `no MoleculeNet set "mine"`},
		"lipo.x.csv":   {"smiles,y", "", "", `no column "exp"`},
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(c.header+"\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		smiles, targets, err := MoleculeNetColumns(t.Context(), path)
		if smiles != c.smiles || strings.Join(targets, ",") != c.targets || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %s, %v, %v", name, smiles, targets, err)
		}
	}
}
