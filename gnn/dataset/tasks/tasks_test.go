package tasks_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/tasks"
)

func read(t *testing.T, text string, o tasks.Options) (*tasks.Labels, error) {
	t.Helper()
	o.Input = strings.NewReader(text)
	return tasks.Read(t.Context(), "t.csv", o)
}

func ExampleRead() {
	table := "smiles,BACE1,KCNH2\nCCO,1,\nc1ccccc1,0,5.2\nC,,1\n"
	labels, err := tasks.Read(context.Background(), "-", tasks.Options{
		Keys:  []string{"c1ccccc1", "CCO"},
		Input: strings.NewReader(table),
	})
	fmt.Println(labels.Names, labels.Rows, labels.Unknown, err)
	// Output: [BACE1 KCNH2] [[{0 0} {1 5.2}] [{0 1}]] 1 <nil>
}

// TestForms: both forms have the same labels, whatever the order of rows and columns, compressed or not.
func TestForms(t *testing.T) {
	want := [][]tasks.Label{{{Task: 0, Value: 1}, {Task: 1, Value: 2.5}}, {{Task: 1, Value: -3}}, nil, {{Task: 1, Value: -3}}}
	keys := []string{"A", "B", "C", " B"}
	forms := map[string]string{
		"wide":      "SMILES,x,y\nB,,-3\nA,1,2.5\n",
		"long":      "my_smiles;value;task\nA;1;x\nA;2.5;y\nB;-3;y\nC;;x\n",
		"repeated":  "smiles\ttask\tvalue\nA\tx\t1\nA\ty\t2\nB\ty\t-3\nA\ty\t3\n",
		"with gaps": "smiles,x,y\nA,NaN,2.5\nA,1,\nC,,\nB, ,-3\nZ,1,1\n",
	}
	for name, text := range forms {
		l, err := read(t, text, tasks.Options{Keys: keys})
		if err != nil || !slices.Equal(l.Names, []string{"x", "y"}) || l.Count() != 4 || l.Labelled() != 3 {
			t.Fatalf("%s: %+v, %v", name, l, err)
		}
		for i, row := range l.Rows {
			if len(row) != len(want[i]) || len(row) > 0 && !cmp.Equal(row, want[i]) {
				t.Errorf("%s: record %d has %v, want %v", name, i, row, want[i])
			}
		}
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	fmt.Fprint(z, "id,y\n7,3\n")
	z.Close()
	l, err := tasks.Read(t.Context(), "t.csv.gz", tasks.Options{Key: "id", Keys: []string{"7"}, Input: &packed})
	if err != nil || l.Rows[0][0].Value != 3 {
		t.Errorf("%v, %v", l, err)
	}
	l, err = read(t, "smiles,x,note, y\nA,1,text,2\n", tasks.Options{Keys: keys, Tasks: []string{"y", "x"}})
	if err != nil || !slices.Equal(l.Names, []string{"x", "y"}) || l.Unknown != 0 || l.Count() != 2 {
		t.Errorf("two tasks of three columns: %+v, %v", l, err)
	}
}

// TestRefused: an error names the file, the line and the value.
func TestRefused(t *testing.T) {
	o := tasks.Options{Keys: []string{"A"}}
	for text, want := range map[string]string{
		"smiles,x\nA,1\nA,one\n":           `t.csv:3: "one": column x: want a finite number, or nothing for a gap`,
		"smiles,x\nA,Inf\n":                `t.csv:2: "Inf"`,
		"smiles,task,value\nA,x,1\nA,,2\n": "t.csv:3: want the name of a task",
		"smiles,x\nB,1\nC,2\n":             `no row has the key of a record, such as "B"; the records have keys such as "A"`,
		"smiles,x\n":                       "there are no rows in it",
		"smiles,x\nA,\n":                   "there are no labels of the records in it",
		"smiles\nA\n":                      "want a column of keys and a column for each task",
		"id,x\nA,1\n":                      `t.csv:1: "id,x": no column "smiles"`,
		"smiles,x\nA,1,2\n":                "t.csv:2",
	} {
		if _, err := read(t, text, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	o.Tasks = []string{"CHEMBL20"}
	for _, text := range []string{"smiles,CHEMBL203\nA,1\n", "smiles,task,value\nA,CHEMBL203,1\n"} {
		if _, err := read(t, text, o); err == nil || !strings.Contains(err.Error(), `"CHEMBL20"`) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := read(t, "smiles,x\nB,1\n", tasks.Options{Keys: []string{"A"}}); !errors.Is(err, tasks.ErrNoRecord) {
		t.Error(err)
	}
	var syntax *dataset.SyntaxError
	if _, err := read(t, "smiles,x\nA,b\n", tasks.Options{Keys: []string{"A"}}); !errors.As(err, &syntax) || syntax.Line != 2 {
		t.Error(err)
	}
}
