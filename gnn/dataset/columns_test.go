package dataset_test

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
)

// toy returns a set of two graphs, a path 0-1-2 and a pair, whose five nodes have
// the given lines of labels and attributes; "" for none.
func toy(t *testing.T, name, labels, attributes string) *dataset.Dataset {
	t.Helper()
	files := fstest.MapFS{}
	for part, text := range map[string]string{
		"A":               "1,2\n2,1\n2,3\n3,2\n4,5\n5,4\n",
		"graph_indicator": "1\n1\n1\n2\n2\n",
		"graph_labels":    "0\n1\n",
		"node_labels":     labels,
		"node_attributes": attributes,
	} {
		if text != "" {
			files[name+"_"+part+".txt"] = &fstest.MapFile{Data: []byte(text)}
		}
	}
	d, err := dataset.LoadFS(t.Context(), files, name, dataset.Options{NodeAttributes: true})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func columns(t *testing.T, d *dataset.Dataset) graph.Columns {
	t.Helper()
	f, err := d.Columns()
	if err != nil {
		t.Fatal(err)
	}
	if f.Width() != d.FeatureWidth {
		t.Fatalf("features %+v of width %d, the set's width is %d", f, f.Width(), d.FeatureWidth)
	}
	data, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var g graph.Columns
	if err := json.Unmarshal(data, &g); err != nil || !reflect.DeepEqual(f, g) {
		t.Fatalf("%+v, by way of JSON %s %+v (%v)", f, data, g, err)
	}
	return f
}

// rows returns the features of all nodes of the set.
func rows(d *dataset.Dataset) (all []float32) {
	for _, g := range d.Graphs {
		row := make([]float32, g.X.Width)
		for i := range g.Nodes() {
			g.X.Row(row, i)
			all = append(all, row...)
		}
	}
	return all
}

const (
	oneColumn  = "3\n5\n3\n5\n6\n"
	twoColumns = "3,0\n5,1\n3,0\n5,0\n6,1\n"
	attributes = "0.5,1\n1,2\n1.5,3\n2,4\n2.5,5\n"
)

// TestColumnsOfItself: with its own columns a set is the same, node by node.
func TestColumnsOfItself(t *testing.T) {
	for _, d := range []*dataset.Dataset{
		toy(t, "T", "", ""), toy(t, "T", oneColumn, ""), toy(t, "T", twoColumns, ""),
		toy(t, "T", "", attributes), toy(t, "T", oneColumn, attributes), dataset.Default(),
	} {
		for _, d := range []*dataset.Dataset{d, d.WithDegrees(1), d.WithDegrees(0)} {
			e, err := d.WithColumns(columns(t, d))
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(e, d) {
				t.Errorf("%d attributes, %d columns of labels, %d of degrees:\n%+v, want\n%+v",
					d.NodeAttributes, len(d.NodeLabels), d.DegreeColumns, e, d)
			}
		}
	}
}

// TestWithColumns: another set gets the columns of the first.
func TestWithColumns(t *testing.T) {
	model := toy(t, "MODEL", oneColumn, "").WithDegrees(1) // 3, 5, 6
	f := columns(t, model)
	if l := f.Labels[0]; l.Min != 3 || l.Width != 4 || !slices.Equal(l.Unseen, []int{4}) || l.Other != nil {
		t.Errorf("labels %+v, want 3 to 6 without 4", l)
	}
	other := toy(t, "OTHER", "6\n5\n5\n6\n5\n", "")
	e, err := other.WithColumns(f)
	if err != nil {
		t.Fatal(err)
	}
	want := []float32{
		0, 0, 0, 1, 1, 0, 1,
		0, 0, 1, 0, 2, 0, 1,
		0, 0, 1, 0, 1, 0, 1,
		0, 0, 0, 1, 1, 0, 1,
		0, 0, 1, 0, 1, 0, 1,
	}
	if got := rows(e); !slices.Equal(got, want) {
		t.Errorf("rows\n%v, want\n%v", got, want)
	}
	if c := e.NodeLabels[0]; e.FeatureWidth != 7 || !reflect.DeepEqual(c, dataset.LabelColumn{Min: 3, Width: 4, Distinct: 2}) {
		t.Errorf("width %d, labels %+v", e.FeatureWidth, c)
	}
	if other.FeatureWidth != 2 || other.Graphs[0].X.Width != 2 {
		t.Error("the set itself changed")
	}

	// A label out of range, and one in a gap.
	for label, text := range map[string]string{"9": "9", "4": "4", "-1": "-1"} {
		unseen := toy(t, "OTHER", "6\n5\n5\n6\n"+text+"\n", "")
		_, err := unseen.WithColumns(f)
		for _, words := range []string{"OTHER", "graph 1", "node 1", "label " + label, "3 to 6"} {
			if err == nil || !strings.Contains(err.Error(), words) {
				t.Errorf("label %s: %v, want %q in it", label, err, words)
			}
		}
		g := f
		three := 3
		g.Labels = []graph.LabelValues{f.Labels[0]}
		g.Labels[0].Other = &three
		e, err := unseen.WithColumns(g)
		if err != nil {
			t.Fatal(err)
		}
		if row := rows(e)[28:]; row[0] != 1 || row[1]+row[2]+row[3] != 0 {
			t.Errorf("label %s became %v", label, row[:4])
		}
	}

	// Fewer columns than the set has, and a set that has fewer.
	both := toy(t, "BOTH", oneColumn, attributes)
	for name, c := range map[string]struct {
		f    graph.Columns
		want []float32
	}{
		"constant":   {graph.Columns{}, []float32{1, 1, 1, 1, 1}},
		"attributes": {graph.Columns{Attributes: 2}, []float32{.5, 1, 1, 2, 1.5, 3, 2, 4, 2.5, 5}},
		"labels":     {graph.Columns{Labels: []graph.LabelValues{{Min: 3, Width: 4}}}, []float32{1, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1}},
	} {
		e, err := both.WithColumns(c.f)
		if err != nil {
			t.Fatal(err)
		}
		if got := rows(e); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		for _, g := range e.Graphs {
			if err := g.Validate(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for want, f := range map[string]graph.Columns{
		"0 attributes, the model wants 1":        {Attributes: 1},
		"1 columns of labels, the model wants 2": {Labels: []graph.LabelValues{{Width: 9}, {Width: 9}}},
		"column 1 of the labels has 0 values":    {Labels: []graph.LabelValues{{}}},
		"column 1 of the labels has 1048577":     {Labels: []graph.LabelValues{{Width: 1<<20 + 1}}},
		"2097152 columns in all":                 {Labels: []graph.LabelValues{{Width: 1 << 20}, {Width: 1 << 20}}},
		"values from 9223372036854775807 on":     {Labels: []graph.LabelValues{{Min: math.MaxInt, Width: 2}}},
		"unseen values are not ascending":        {Labels: []graph.LabelValues{{Width: 3, Unseen: []int{1, 1}}}},
		"-1 attributes":                          {Attributes: -1},
		"1 of degrees":                           {DegreeColumns: 1},
		"value for unseen labels, 4, is itself":  {Labels: []graph.LabelValues{{Min: 3, Width: 4, Unseen: []int{4}, Other: &[]int{4}[0]}}},
	} {
		if _, err := other.WithColumns(f); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", f, err, want)
		}
	}
	_, err = dataset.Default().WithColumns(graph.Columns{DegreeColumns: 1 << 20})
	if !errors.Is(err, dataset.ErrTooLarge) {
		t.Errorf("2^20 columns for every node: %v", err)
	}
}

// TestColumnsUndescribed: features that the set does not describe are no guess.
func TestColumnsUndescribed(t *testing.T) {
	d := &dataset.Dataset{Name: "own", FeatureWidth: 3, Graphs: []*graph.Graph{{Ptr: []int32{0}, X: graph.Features{Width: 3}}}}
	if _, err := d.Columns(); err == nil || !strings.Contains(err.Error(), "own: FeatureWidth is 3") {
		t.Error(err)
	}
}

func TestWithDegreesTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	dataset.Default().WithDegrees(3).WithDegrees(3)
}

// TestTextLabels: another set's labels that are texts are found by name among those of a model.
func TestTextLabels(t *testing.T) {
	set := toy(t, "OTHER", "6\n5\n5\n6\n5\n", "")
	set.NodeLabels[0] = dataset.LabelColumn{Width: 2, Distinct: 2, Names: []string{"C", "O"}} // of 5 and 6
	c := columns(t, set)
	if l := c.Labels[0]; !slices.Equal(l.Names, []string{"C", "O"}) || l.Unseen != nil || c.Check() != nil {
		t.Errorf("%+v, %v", l, c.Check())
	}
	for _, test := range []struct {
		labels graph.LabelValues
		want   string
	}{
		{graph.LabelValues{Width: 3, Names: []string{"C", "N", "O"}}, ""},
		{graph.LabelValues{Width: 3, Names: []string{"C", "N", "O"}, Unseen: []int{2}}, `graph 0: node 0: the label "O", which the model has not seen; it has seen ["C" "N" "O"]`},
		{graph.LabelValues{Width: 6, Names: []string{"A", "B", "C", "D", "E", "F"}}, `the label "O", which the model has not seen; it has seen ["A" "B" "C" "D" "E"] and 1 more`},
		{graph.LabelValues{Min: 5, Width: 2}, `node 0: the label "O" is a text; the model has seen 5 to 6`},
	} {
		with, err := set.WithColumns(graph.Columns{Labels: []graph.LabelValues{test.labels}})
		switch {
		case test.want != "":
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v; want %s", err, test.want)
			}
		case err != nil || with.Graphs[0].X.Category[0] != 2 || with.Graphs[0].X.Category[1] != 0 || with.NodeLabels[0].Distinct != 2:
			t.Errorf("%v, %+v", err, with)
		}
	}
	numbers := toy(t, "OTHER", "6\n5\n5\n6\n5\n", "")
	with, err := numbers.WithColumns(graph.Columns{Labels: []graph.LabelValues{{Width: 2, Names: []string{"5", "6"}}}})
	if err != nil || with.Graphs[0].X.Category[0] != 1 {
		t.Errorf("numbers as texts: %v", err)
	}
}

// TestSummary: what loading drops is said.
func TestSummary(t *testing.T) {
	set := toy(t, "T", "6\n5\n5\n6\n5\n", "")
	set.SelfLoops = 2
	set.Duplicates = 3
	if got := set.Summary(); !strings.HasSuffix(got, "; left out: 2 self-loops, 3 repeated edges") {
		t.Error(got)
	}
}
