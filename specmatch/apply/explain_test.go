package apply_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// nitriles are molecules, half of which have one nitrile among chains, rings, amines, alkynes
// and oxygens, with the places of its atoms, from 0; they come last.
func nitriles(n int) (text string, places map[string][2]int) {
	rng := rand.New(rand.NewPCG(5, 6))
	pieces := []string{"C", "C(C)", "CC", "C(O)", "N", "O", "C(=O)", "C1CCCC1", "c1ccccc1", "C#CC", "C(F)", "S"}
	atoms := func(s string) (n int) {
		for _, c := range s {
			if strings.ContainsRune("CNOFSc", c) {
				n++
			}
		}
		return n
	}
	var b strings.Builder
	b.WriteString("name,smiles,y\n")
	places = map[string][2]int{}
	for i := range n {
		s := "C"
		for range 2 + rng.IntN(5) {
			s += pieces[rng.IntN(len(pieces))]
		}
		s += "C"
		if i%2 == 1 {
			at := atoms(s)
			s += "C#N"
			places[fmt.Sprint("m", i)] = [2]int{at, at + 1}
		}
		fmt.Fprintf(&b, "m%d,%s,%d\n", i, s, i%2)
	}
	return b.String(), places
}

// TestExplain: where one functional group decides, of 2,000 molecules, its atoms come first in
// at least 90 % of those that were not trained on and have it.
func TestExplain(t *testing.T) {
	text, places := nitriles(2000)
	o := records.Options{ID: "name", Input: strings.NewReader(text)}
	x, err := finetune.Read(t.Context(), "m.csv", finetune.Task{Targets: []string{"y"}}, o)
	if err != nil {
		t.Fatal(err)
	}
	split, err := x.Divide(0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := x.NewModel(cpu.New(tensor.Float32), gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 32, Layers: 3}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := finetune.New(m, x.Data(split), finetune.Options{Batch: 32, Rate: 0.005, Patience: 10})
	if err != nil {
		t.Fatal(err)
	}
	r, err := l.Fit(t.Context(), train.Options{Epochs: 12}, nil)
	if err != nil || r.Kept()["test_roc_auc"] < 99 {
		t.Fatal(r.Kept(), err)
	}
	predictor, err := apply.Predictor(m)
	if err != nil {
		t.Fatal(err)
	}
	o.Input = strings.NewReader(text)
	var lines bytes.Buffer
	explainer, err := apply.NewExplainer(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&apply.Job{Path: "m.csv", Records: o, Model: predictor}).Explain(t.Context(), &lines, explainer); err != nil {
		t.Fatal(err)
	}
	var all []apply.Explanation
	for d := json.NewDecoder(&lines); d.More(); {
		var e apply.Explanation
		if err := d.Decode(&e); err != nil {
			t.Fatal(err)
		}
		all = append(all, e)
	}
	first, with := 0, 0
	for _, i := range split.Test {
		e := all[i]
		if values := e.Nodes["y"]; e.ID != x.Records[i].ID || len(values) != x.Set.Graphs[i].Nodes() || e.SMILES == "" {
			t.Fatalf("%+v", e)
		}
		group, ok := places[e.ID]
		if !ok {
			continue
		}
		with++
		order := span(len(e.Nodes["y"]))
		slices.SortFunc(order, func(a, b int) int {
			if e.Nodes["y"][a] > e.Nodes["y"][b] {
				return -1
			}
			return 1
		})
		if min(order[0], order[1]) == group[0] && max(order[0], order[1]) == group[1] {
			first++
		}
	}
	t.Logf("in %d of %d molecules with a nitrile its two atoms come first", first, with)
	if with < 90 || float64(first) < 0.9*float64(with) {
		t.Errorf("in %d of %d molecules with a nitrile its two atoms come first", first, with)
	}
}

// TestExplainFeatures: what a linear model of features says of an atom is part of its contribution. The
// target is the number of fluorine atoms, of which the encoder is told nothing in its two epochs.
func TestExplainFeatures(t *testing.T) {
	text, _ := nitriles(400)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i, line := range lines[1:] {
		columns := strings.Split(line, ",")
		lines[i+1] = fmt.Sprintf("%s,%s,%d", columns[0], columns[1], strings.Count(columns[1], "F"))
	}
	text = strings.Join(lines, "\n")
	features, err := apply.ParseFeatures([]string{"descriptors", "morgan:0:256"})
	if err != nil {
		t.Fatal(err)
	}
	task := finetune.Task{Targets: []string{"y"}, Kind: model.Regression}
	o := records.Options{ID: "name", Input: strings.NewReader(text)}
	task.Beside, o.Vector, err = apply.Numbers(features)
	if err != nil {
		t.Fatal(err)
	}
	task.Beside.Hidden = 4
	task.Beside.Linear = true
	x, err := finetune.Read(t.Context(), "m.csv", task, o)
	if err != nil {
		t.Fatal(err)
	}
	split, err := x.Divide(0)
	if err != nil {
		t.Fatal(err)
	}
	m, err := x.NewModel(cpu.New(tensor.Float32), gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 8, Layers: 2}, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	l, err := finetune.New(m, x.Data(split), finetune.Options{Batch: 32, Rate: 0.001, Patience: 2})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := l.Fit(t.Context(), train.Options{Epochs: 2}, nil); err != nil {
		t.Fatal(err)
	}
	explainer, err := apply.NewExplainer(m)
	if err != nil {
		t.Fatal(err)
	}
	share := []float64{0}
	m.Head.W.Backend().Download(share, m.Beside.Linear.Share.Value)
	n, sum := 0, 0.0
	for _, i := range split.Test {
		mol, err := molecule.Parse(x.Records[i].SMILES)
		if err != nil {
			t.Fatal(err)
		}
		c, err := explainer.Explain(t.Context(), x.Set.Graphs[i], mol)
		if err != nil {
			t.Fatal(err)
		}
		for v, a := range mol.Atoms {
			if a.Z == 9 {
				n++
				sum += c.Parts[v]
			}
		}
	}
	checkFragments(t, explainer, m, x, split.Test, share[0])
	mean := sum / float64(n)
	t.Logf("a fluorine contributes %.3f at a share %.2f of the linear model", mean, share[0])
	if n < 10 || share[0] < 0.5 || math.Abs(mean-share[0]) > 0.15 {
		t.Errorf("%d fluorines contribute %.3f, where the linear model has the share %.2f", n, mean, share[0])
	}
}

// span are the numbers below n.
func span(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// checkFragments: lines add up, also over the atoms, and fragments with fluorine contribute about their number of
// fluorine atoms, times the share of the linear model.
func checkFragments(t *testing.T, e *apply.Explainer, m *model.Trained, x *finetune.Examples, test []int, share float64) {
	t.Helper()
	predictor, err := apply.Predictor(m)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("name,smiles\n")
	for _, i := range test {
		fmt.Fprintf(&text, "%s,%s\n", x.Records[i].ID, x.Records[i].SMILES)
	}
	e.ByFragments = true
	defer func() { e.ByFragments = false }()
	reads, err := apply.Reads(m.Card)
	if err != nil {
		t.Fatal(err)
	}
	job := apply.Job{Path: "m.csv", Records: reads.Options(records.Options{ID: "name", Input: strings.NewReader(text.String())}), Model: predictor}
	n, total := 0.0, 0.0
	err = job.EachExplanation(t.Context(), func(r *records.Record, x *apply.Explanation) error {
		sum := x.Mean["y"]
		atoms := 0
		for _, f := range x.Fragments {
			sum += f.Contribution["y"]
			atoms += len(f.Atoms)
			piece, err := molecule.Parse(f.SMILES)
			if err != nil || len(piece.Atoms) != len(f.Atoms) {
				t.Errorf("%s: the fragment %v has the SMILES %s, %v", x.SMILES, f.Atoms, f.SMILES, err)
			}
			if fluorines := strings.Count(f.SMILES, "F"); fluorines > 0 && len(x.Fragments) > 1 {
				n++
				total += f.Contribution["y"] / float64(fluorines)
			}
		}
		nodes := x.Mean["y"]
		for _, v := range x.Nodes["y"] {
			nodes += v
		}
		if math.Abs(sum-x.Prediction["y"]) > 1e-4 || math.Abs(nodes-x.Prediction["y"]) > 1e-4 || atoms != len(r.Molecule.Atoms) {
			t.Errorf("%s: fragments of %d atoms sum up to %v, nodes to %v, and the prediction is %v", x.SMILES, atoms, sum, nodes, x.Prediction["y"])
		}
		return nil
	}, e)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("in %v fragments, a fluorine contributes %.2f", n, total/n)
	if n < 3 || math.Abs(total/n-share) > 0.2 {
		t.Errorf("in %v fragments, a fluorine contributes %.2f, and the linear model has the share %.2f", n, total/n, share)
	}
}
