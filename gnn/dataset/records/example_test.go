package records_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/records"
)

// A table of molecules goes by, record by record; one that cannot be used says why.
func ExampleRead() {
	table := "name,smiles,logP\nethanol,CCO,-0.3\nnothing,C(,1\nbenzene,c1ccccc1,2.1\n"
	o := records.Options{
		Format: records.CSV, Input: strings.NewReader(table), // or the name of a file tells both
		ID: "name", Fields: []string{"logP"},
	}
	err := records.Read(context.Background(), "-", o, func(r *records.Record) error {
		if r.Err != nil {
			fmt.Println(r.Err)
			return nil
		}
		fmt.Printf("%s: %d atoms, logP %s\n", r.ID, r.Graph.Nodes(), r.Fields[0])
		return nil
	})
	fmt.Println(err)
	// Output:
	// ethanol: 3 atoms, logP -0.3
	// dataset: -:3: "C(": character 3 of the SMILES: the string ends where an atom is expected
	// benzene: 6 atoms, logP 2.1
	// <nil>
}

// All graphs of a file get the columns of features that they need together.
func ExampleReadAll() {
	lines := `{"edges": [[0, 1], [1, 2]], "labels": [6, 6, 8], "y": 0.5}
{"edges": [[0, 1]], "labels": [6, 17]}
`
	o := records.Options{Format: records.JSONL, Input: strings.NewReader(lines)}
	t, err := records.ReadAll(context.Background(), "-", o)
	if err != nil {
		fmt.Println(err)
		return
	}
	columns, err := t.Set.Columns()
	fmt.Println(len(t.Records), "graphs of", t.Set.FeatureWidth, "features: labels", columns.Labels[0], err)
	// Output:
	// 2 graphs of 12 features: labels 6 to 17 except 9 of them <nil>
}
