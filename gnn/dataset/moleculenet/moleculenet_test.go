package moleculenet

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
)

// clintoxText has what the real files have: an empty label, a quoted field with
// a comma, a blank line, CRLF, and molecules that cannot be used.
const clintoxText = "smiles,\"note, quoted\",FDA_APPROVED,CT_TOX\r\n" +
	"c1ccccc1C,\"a, b\",1,0\r\n" +
	"\r\n" +
	"CCO,,, 1.0\r\n" +
	"C(C)(C)(C)(C)C,,1,1\r\n" +
	"*C,,1,1\r\n" +
	" CCc1ccccc1 ,,0.0,\r\n"

func TestOpen(t *testing.T) {
	for _, ext := range []string{".csv", ".csv.gz"} {
		dir := t.TempDir()
		text := []byte(clintoxText)
		if ext == ".csv.gz" {
			text = zipped(t, clintoxText)
		}
		path := filepath.Join(dir, "clintox"+ext)
		write(t, path, string(text))
		m, err := Open(t.Context(), dir, "clintox")
		if err != nil {
			t.Fatal(err)
		}
		sameGraphs(t, m.Graphs, graphsOf(t, "c1ccccc1C", "CCO", "CCc1ccccc1"))
		if s := m.Scaffolds; len(s) != 3 || s[0] != s[2] || s[0] == s[1] {
			t.Errorf("scaffolds %q, want the first and the last to be alike", s)
		}
		m.Graphs, m.Scaffolds = nil, nil
		want := &Data{
			SMILES: []string{"c1ccccc1C", "CCO", "CCc1ccccc1"},
			Tasks:  []string{"FDA_APPROVED", "CT_TOX"},
			Labels: []int8{1, -1, 0, 1, -1, 0},
			Dropped: []*dataset.SyntaxError{
				{File: path, Line: 5, Value: "C(C)(C)(C)(C)C", Reason: "character 1 of the SMILES: C has the valence 5, and at most 4 is allowed"},
				{File: path, Line: 6, Value: "*C", Reason: "atom 0 is a wildcard, of which Hu et al. have no category"},
			},
		}
		if !reflect.DeepEqual(m, want) {
			t.Errorf("%s: %+v, want %+v", ext, m, want)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"clintox", "", "clintox.csv:1: want a header, have an empty file"},
		{"clintox", "smiles,FDA_APPROVED\nC,1\n", `clintox.csv:1: "smiles,FDA_APPROVED": no column "CT_TOX"`},
		{"bace", "smiles,Class\nC,1\n", `bace.csv:1: "smiles,Class": no column "mol"`},
		{"bace", strings.Repeat("x", 65) + "\n", `bace.csv:1: "` + strings.Repeat("x", 64) + `…": no column "mol"`},
		{"sider", "smiles,a,b\nC,1,0\n", "sider.csv:1: 2 columns of labels; sider has 27"},
		{"bbbp", "smiles,p_np,p_np\nC,1,0\n", `bbbp.csv:1: two columns named "p_np"`},
		{"tox21", "smiles,mol_id" + strings.Repeat(",t", 12) + "\n", `tox21.csv:1: two columns named "t"`},
		{"sider", "smiles,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z,aa,bb\n", "sider.csv:1: 28 columns of labels; sider has 27"},
		{"bbbp", "num,name,p_np,smiles\n1,\"two\nlines\",1,Xx\n", `bbbp.csv:3: "Xx": character 1 of the SMILES`},
		{"hiv", "smiles,HIV_active\nC,1\nC,yes\n", `hiv.csv:3: "yes": label of HIV_active; want 0, 1 or nothing`},
		{"hiv", "smiles,HIV_active\nC,1\nC,2\n", `hiv.csv:3: "2": label of HIV_active; want 0, 1 or nothing`},
		{"hiv", "smiles,HIV_active\nC,1\nC\n", "hiv.csv:3: wrong number of fields"},
		{"hiv", "smiles,HIV_active\nC,\"1\n", "hiv.csv:2: \"C,\\\"1\": a quote that opens here is not closed"},
		{"hiv", "smiles,HIV_active\nXx,1\n", `hiv.csv: no molecule of it can be used, such as dataset: `},
		{"hiv", "smiles,HIV_active\nXx,1\n", `hiv.csv:2: "Xx": character 1 of the SMILES`},
		{"hiv", "smiles,HIV_active\n", "hiv.csv: there is no molecule in it"},
	} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, c.name+".csv"), c.text)
		_, err := Open(t.Context(), dir, c.name)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: error %v, want %s", c.text, err, c.want)
		}
	}
	if _, err := Open(t.Context(), t.TempDir(), "hiv"); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "HIV.csv") {
		t.Errorf("without a file: %v", err)
	}
	if _, err := Open(t.Context(), t.TempDir(), "HIV"); err == nil || !strings.Contains(err.Error(), `no MoleculeNet set "HIV"; there are bbbp, tox21`) {
		t.Errorf("no such set: %v", err)
	}
	dir := t.TempDir()
	write(t, filepath.Join(dir, "hiv.csv.gz"), "not compressed")
	if _, err := Open(t.Context(), dir, "hiv"); !errors.Is(err, gzip.ErrHeader) {
		t.Errorf("not compressed: %v", err)
	}
	dir = t.TempDir()
	write(t, filepath.Join(dir, "hiv.csv"), "smiles,HIV_active\nC,1\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Open(ctx, dir, "hiv"); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	// A link that leads nowhere is not passed over for another file.
	dir = t.TempDir()
	write(t, filepath.Join(dir, "HIV.csv"), "smiles,HIV_active\nC,1\n")
	if err := os.Symlink("nowhere", filepath.Join(dir, "hiv.csv")); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), dir, "hiv"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a broken link: %v", err)
	}
}

// TestColumns: the headers of the official files, with the names of
// columns that only count made up.
func TestColumns(t *testing.T) {
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
		set, err := ByName(c.name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := set.tasks(&textfile.Rows{Header: c.header})
		if err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: tasks %v, %v", c.name, got, err)
		}
	}
	Sets()[0].Name = "changed"
	if Sets()[0].Name != "bbbp" {
		t.Error("MoleculeNet returns the table itself")
	}
}

// TestFindOrder: of a set and its compressed form beside it, the plain one is
// read, as of a network's tables.
func TestFindOrder(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{"HIV.csv", "hiv.csv.gz", "hiv.csv"} { // from the last choice to the first
		write(t, filepath.Join(dir, file), "")
		got, err := Find(dir, "hiv")
		if err != nil || filepath.Base(got) != file {
			t.Errorf("%s: found %s, %v", file, got, err)
		}
	}
}

// TestColumnsByName: a set's name and header tell its columns.
func TestColumnsByName(t *testing.T) {
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
		smiles, targets, err := Columns(t.Context(), path)
		if smiles != c.smiles || strings.Join(targets, ",") != c.targets || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: %s, %v, %v", name, smiles, targets, err)
		}
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

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}
