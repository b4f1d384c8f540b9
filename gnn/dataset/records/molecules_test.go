package records

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
)

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

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

// TestMolecules: of tables and lists, compressed or not, the graphs are those of the
// molecules one by one, and what cannot be used is named.
func TestMolecules(t *testing.T) {
	dir := t.TempDir()
	smiles := []string{"CCO", "c1ccccc1", "F/C=C/F", "N[C@@H](C)C(=O)O", "C"}
	var want []*graph.Graph
	for _, s := range smiles {
		m, err := molecule.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, g)
	}
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
		table, err := ReadAll(t.Context(), path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, table.Set.Graphs); d != "" {
			t.Errorf("%s: %s", file, d)
		}
		line := 6
		if strings.Contains(file, "csv") {
			line = 8 // its row begins in line 7
		}
		rejected := []*dataset.SyntaxError{
			{File: path, Line: line, Value: "Xx", Reason: "character 1 of the SMILES: 'X' is not an atom that may stand without brackets"},
			{File: path, Line: line + 2, Value: "C1", Reason: "character 2 of the SMILES: ring 1 is not closed"},
		}
		if d := cmp.Diff(rejected, table.Rejected); d != "" {
			t.Errorf("%s: %s", file, d)
		}
	}
	if table, err := ReadAll(t.Context(), filepath.Join(dir, "a.csv"), Options{SMILES: "id"}); err == nil {
		t.Errorf("a column without SMILES makes %+v", table)
	}
	for path, want := range map[string]string{"none.csv": "no such file", "a.csv": `no column "SMILES"`} {
		if _, err := ReadAll(t.Context(), filepath.Join(dir, path), Options{SMILES: "SMILES"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", path, err, want)
		}
	}
	for file, text := range map[string]string{"b.CSV": "smiles\nC\n", "b.CSV.GZ": string(zipped(t, "smiles\nC\n")), "b.SMI.GZ": string(zipped(t, "C\n"))} {
		write(t, filepath.Join(dir, file), text)
		if table, err := ReadAll(t.Context(), filepath.Join(dir, file), Options{}); err != nil || len(table.Records) != 1 || len(table.Rejected) != 0 {
			t.Errorf("%s: %+v, %v", file, table, err)
		}
	}
	// What ends in the middle is no shorter list.
	for file, text := range map[string]string{"cut.csv.gz": csvText, "cut.smi.gz": lines} {
		whole := zipped(t, text)
		write(t, filepath.Join(dir, file), string(whole[:len(whole)-8]))
		_, err := ReadAll(t.Context(), filepath.Join(dir, file), Options{})
		if !errors.Is(err, io.ErrUnexpectedEOF) || !strings.Contains(err.Error(), file+": ") {
			t.Errorf("%s: error %v, want %v", file, err, io.ErrUnexpectedEOF)
		}
	}
	write(t, filepath.Join(dir, "none.smi"), "\nnames\n")
	if _, err := ReadAll(t.Context(), filepath.Join(dir, "none.smi"), Options{}); err == nil || !strings.Contains(err.Error(), `none.smi:2: "names": character 2 of the SMILES`) {
		t.Errorf("no molecules: %v", err)
	}
	defer func(n int) { textfile.LongestLine = n }(textfile.LongestLine)
	textfile.LongestLine = 1 << 20
	write(t, filepath.Join(dir, "name.smi"), "CC "+strings.Repeat("n", textfile.LongestLine-10)+"\nC\n")
	if table, err := ReadAll(t.Context(), filepath.Join(dir, "name.smi"), Options{}); err != nil || len(table.Records) != 2 {
		t.Errorf("a line that is just not too long: %v", err)
	}
	write(t, filepath.Join(dir, "long.smi"), "CC\n"+strings.Repeat("C", textfile.LongestLine+1)+"\nCCC\n")
	if table, err := ReadAll(t.Context(), filepath.Join(dir, "long.smi"), Options{}); err != nil || len(table.Records) != 2 || !strings.Contains(table.Rejected[0].Error(), "long.smi:2: longer than") {
		t.Errorf("a long line: %v, %v", table, err)
	}
}

// TestReasons: little of a long string is kept.
func TestReasons(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.smi")
	bad := strings.Repeat("é", 64) // characters count, not bytes
	write(t, path, "C\n"+bad+"\n"+bad+"X\n")
	table, err := ReadAll(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r := table.Rejected; len(r) != 2 || r[0].Value != bad || r[1].Value != bad+"…" {
		t.Errorf("%v", r)
	}
}

// TestOddMolecules: the extension of CXSMILES is no name; a wildcard and a dative bond are read;
// a reaction is refused as such, and a second column of molecules is named as not used.
func TestOddMolecules(t *testing.T) {
	dir := t.TempDir()
	list := filepath.Join(dir, "x.smi")
	write(t, list, "C[C@H](O)N |&1:1|\tone\nCC |$R1;$| two\n*CC* three\nN->[Pt](<-N)(Cl)Cl\nCCO>>CC=O five\n")
	table, err := ReadAll(t.Context(), list, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for _, rec := range table.Records {
		ids = append(ids, rec.ID)
	}
	if want := []string{"one", "two", "three", "4"}; !slices.Equal(ids, want) {
		t.Errorf("IDs %q, want %q", ids, want)
	}
	const want = "character 4 of the SMILES: a reaction, and not one molecule: want its reactants or its products alone"
	if len(table.Rejected) != 1 || table.Rejected[0].Reason != want {
		t.Errorf("rejected %v, want %s", table.Rejected, want)
	}
	pairs := filepath.Join(dir, "pairs.csv")
	write(t, pairs, "smiles,solvent_smiles\nCCO,O\n")
	if table, err = ReadAll(t.Context(), pairs, Options{}); err != nil {
		t.Fatal(err)
	}
	if got, want := table.Reading.String(), "1 molecules; SMILES smiles; not used solvent_smiles"; got != want {
		t.Errorf("reading %q, want %q", got, want)
	}
}

// TestOrder: many chunks, on any number of processors, come out in order.
func TestOrder(t *testing.T) {
	var text strings.Builder
	var want []int
	for i := range 5*chunkRecords + 17 {
		n := i*7919%40 + 1
		text.WriteString(strings.Repeat("C", n) + "\n")
		want = append(want, n)
	}
	path := filepath.Join(t.TempDir(), "c.smi")
	write(t, path, text.String())
	for _, procs := range []int{1, 2, 5} {
		old := runtime.GOMAXPROCS(procs)
		var got []int
		err := Read(t.Context(), path, Options{}, func(r *Record) error {
			got = append(got, r.Graph.Nodes())
			return nil
		})
		runtime.GOMAXPROCS(old)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%d processors: %d molecules of %d, or in another order: %v", procs, len(got), len(want), err)
		}
	}
	// A reader that is told to stop does, and does not pass for one at the end.
	ctx, cancel := context.WithCancel(t.Context())
	calls := 0
	err := Read(ctx, path, Options{}, func(*Record) error { calls++; cancel(); return nil })
	if !errors.Is(err, context.Canceled) || calls != 1 {
		t.Errorf("cancelled: error %v after %d calls", err, calls)
	}
}

// TestLineEnds: records end where their reader ends them, and the parts between have their numbers.
func TestLineEnds(t *testing.T) {
	for _, c := range []struct {
		name, text string
		header     int
		want       []int
	}{
		{"a.csv", "\n\"smiles\n\",y\nC,1\n\n\"CC\",\"\n2\"\n,\nCCC,4\"\nCCCC,5\n", 3, []int{4, 7, 8, 9, 10}},
		{"a.csv", "m,y\nCCC,1\nCCCC,2\n", 1, []int{2, 3}},
		{"a.csv", "smiles,y\nC,\"1\n\nCC,2\n3\",\nCCC,4\n", 1, []int{5, 5, 5, 6}},
		{"a.csv", "smiles,y\n\"C\na \"b\" c\nd\nC\",1\nCC,2\n", 1, []int{5, 5, 5, 5, 6}},
		{"a.csv", "smiles,y\n\"C\na \"b\" c\nd\nC,1\nCC,2\n", 1, []int{5, 5, 5, 5, 6}},
		{"a.csv", "sep=;\n\nsmiles;y\nC;1\n", 3, []int{4}},
		{"a.csv", "smiles,y\rC,1\r\rCC,2\r", 1, []int{2, 4}},
		{"a.smi", "C a\n \nCC\n\n", 0, []int{1, 3}},
		{"a.sdf", "a\n$$$$\n\nb\n$$$$\n\n", 0, []int{2, 5}},
	} {
		o := Options{Input: strings.NewReader(c.text)}
		header, ends, err := LineEnds(t.Context(), c.name, o)
		if err != nil || header != c.header || !slices.Equal(ends, c.want) {
			t.Errorf("%q: a header of %d lines and records to %v, %v; want %d, %v",
				c.text, header, ends, err, c.header, c.want)
		}
	}
	o := Options{Input: strings.NewReader("C\nCC name\n"), First: 7}
	var got []string
	err := Read(t.Context(), "a.smi", o, func(r *Record) error {
		got = append(got, fmt.Sprintln(r.Number, r.Line, r.ID))
		return nil
	})
	if err != nil || !slices.Equal(got, []string{"8 1 8\n", "9 2 name\n"}) {
		t.Errorf("a part: %q, %v", got, err)
	}
	for name, want := range map[string]string{"g.jsonl": "has graphs, want molecules", "g.x": "g.x"} {
		_, _, err := LineEnds(t.Context(), name, Options{Input: strings.NewReader("{}")})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
	if r, err := Decode(t.Context(), "a.csv", strings.NewReader("PK\x03\x04")); r != nil || err == nil {
		t.Errorf("a zip archive: %v, %v", r, err)
	}
}

// TestStreamStops: what is cancelled neither reads a list to its end nor gives out what
// has been read.
func TestStreamStops(t *testing.T) {
	emitted := 0
	stop := errors.New("stop")
	err := Read(t.Context(), "-", Options{Format: SMI, Input: endless{}}, func(*Record) error { emitted++; return stop })
	if err != stop || emitted != 1 {
		t.Errorf("error %v after %d molecules, want %v after 1", err, emitted, stop)
	}
}

// endless is a list of molecules without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, "C\n"), nil }

// TestReal reads ZINC.
func TestReal(t *testing.T) {
	if os.Getenv("SPECMATCH_LARGE") == "" {
		t.Skip("large, and SPECMATCH_LARGE is not set")
	}
	molecules := 0
	err := Read(t.Context(), filepath.FromSlash("../../../../shared/data/zinc/zinc250k.csv.gz"), Options{}, func(r *Record) error {
		if molecules++; r.Err != nil {
			t.Error(r.Err)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("no real data here: %v", err)
	}
	if err != nil || molecules != 249455 {
		t.Errorf("%d molecules, %v", molecules, err)
	}
}
