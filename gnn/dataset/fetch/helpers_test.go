package fetch

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// files are the files of a data set by the part of the name after "NAME_".
type files map[string]string

// with returns a copy with one file replaced.
func (f files) with(part, text string) files {
	g := maps.Clone(f)
	g[part] = text
	return g
}

// archive writes the files to dir/name.zip and returns that path.
func (f files) archive(t testing.TB, dir, name string) string {
	t.Helper()
	path := filepath.Join(dir, name+".zip")
	write(t, path, string(f.zip(t, name)))
	return path
}

func (f files) zip(t testing.TB, name string) []byte {
	members := make(map[string]string)
	for part, text := range f {
		members[name+"/"+name+"_"+part+".txt"] = text
	}
	return zipOf(t, members)
}

func zipOf(t testing.TB, members map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(members)) {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(members[name])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// small is a set of two graphs: a triangle 1-2-3 and the path 4-5-6 with an
// isolated node 7, all edges in both directions and in no order.
var small = files{
	"A":               "2, 1\n1, 2\n3, 1\n1, 3\n2, 3\n3, 2\n5, 4\n6, 5\n5, 6\n4, 5\n",
	"graph_indicator": "1\n1\n1\n2\n2\n2\n2\n",
	"graph_labels":    "1\n-1\n",
	"node_labels":     "3\n5\n3\n4\n3\n3\n5\n",
	"edge_labels":     "1\n1\n2\n2\n3\n3\n1\n2\n2\n1\n",
	"node_attributes": "0.5, 1\n-1, 2\n1e-3, 3\n4, 4\n5, 5\n6, 6\n7, 7\n",
}

// bare is small with only the files that every set has.
var bare = files{"A": small["A"], "graph_indicator": small["graph_indicator"], "graph_labels": small["graph_labels"]}

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

// clintoxText is a table of MoleculeNet.
const clintoxText = "smiles,\"note, quoted\",FDA_APPROVED,CT_TOX\r\nc1ccccc1C,\"a, b\",1,0\r\n\r\nCCO,,, 1.0\r\n"
