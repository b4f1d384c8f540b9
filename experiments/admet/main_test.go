package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/eval/compare"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

func TestMain(m *testing.M) { runtest.Main(m, execute) }

// made writes sets of 60 molecules: a number that grows with the chain or the ring, and whether there is
// an oxygen.
func made(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var number, answer, rings strings.Builder
	rings.WriteString("smiles,logp\n")
	number.WriteString("smiles,y,split\n")
	answer.WriteString("smiles,y,split\n")
	for i := range 60 {
		end, yes := "N", 0
		if i%2 == 0 {
			end, yes = "O", 1
		}
		part := "train"
		if i%4 == 3 || i%8 == 0 {
			part = "test"
		}
		smiles := strings.Repeat("C", 1+i/4) + end
		fmt.Fprintf(&number, "%s,%v,%s\n", smiles, 0.5*float64(i/4), part)
		fmt.Fprintf(&rings, "C1C%s1%s,%v\n", strings.Repeat("C", 1+i/4), end, 0.5*float64(i/4))
		fmt.Fprintf(&answer, "%s,%d,%s\n", smiles, yes, part)
	}
	number.WriteString("C1CC,1,train\n") // which is no molecule
	for name, text := range map[string]string{"caco2_wang": number.String(), "clearance_microsome_az": number.String(), "herg": answer.String(), "esol": rings.String()} {
		if err := os.WriteFile(filepath.Join(dir, name+".csv"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestRun: what a fingerprint counts can be told from it, and not from the mean; the same from the
// journal.
func TestRun(t *testing.T) {
	data, out := made(t), filepath.Join(t.TempDir(), "run")
	args := []string{"-data", data, "-dataset", "caco2_wang,clearance_microsome_az,herg", "-method", "mean,counts,vectors", "-seeds", "2", "-out", out}
	var first, again, stderr bytes.Buffer
	if err := execute(t.Context(), args, &first, &stderr); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stderr.String(), "caco2_wang: 1 molecules cannot be used") {
		t.Errorf("what is left out is not said:\n%s", stderr.String())
	}
	rows := runtest.Results(t, out)
	value := func(set, method string) float64 {
		r, ok := runtest.Find(rows, set, method, "tdc")
		if !ok || len(r.PerSeed) != 2 {
			t.Fatalf("%s on %s: %+v", method, set, r)
		}
		return r.Mean
	}
	if v := value("herg", "counts"); v != 100 {
		t.Errorf("an oxygen is told with ROC-AUC %v", v)
	}
	if v := value("herg", "mean"); v != 50 {
		t.Errorf("the mean has ROC-AUC %v", v)
	}
	if v := value("clearance_microsome_az", "mean"); v != 0 {
		t.Errorf("the mean has a rank correlation of %v", v)
	}
	for _, m := range []string{"counts", "vectors"} {
		if v, mean := value("caco2_wang", m), value("caco2_wang", "mean"); !(v < 0.5*mean) || math.IsNaN(mean) {
			t.Errorf("%s has an error of %v, the mean of %v", m, v, mean)
		}
	}
	if err := execute(t.Context(), args, &again, io.Discard); err != nil || again.String() != first.String() {
		t.Errorf("a finished run prints something else when it is repeated, error %v", err)
	}
}

// TestScaffolds: a set of MoleculeNet is divided by scaffold.
func TestScaffolds(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	args := []string{"-data", made(t), "-dataset", "esol", "-method", "mean,counts,counts-near,vectors-near,counts-scaffold", "-seeds", "2", "-out", out}
	var stdout bytes.Buffer
	if err := execute(t.Context(), args, &stdout, io.Discard); err != nil {
		t.Fatal(err)
	}
	rows := runtest.Results(t, out)
	mean, _ := runtest.Find(rows, "esol", "mean", "scaffold")
	for _, m := range []string{"counts", "counts-near", "vectors-near"} {
		if r, ok := runtest.Find(rows, "esol", m, "scaffold"); !ok || !(r.Mean < mean.Mean) || len(r.PerSeed) != 2 {
			t.Errorf("%s: %+v, the mean %v", m, r, mean.Mean)
		}
	}
	if r, _ := runtest.Find(rows, "esol", "counts-scaffold", "scaffold"); !(r.Mean > 50 && r.Mean <= 100) || r.Metric != "scaffold_recall" {
		t.Errorf("scaffolds: %+v", r)
	}
	if !strings.Contains(stdout.String(), "10 % to test on: mean ± standard error") {
		t.Error(stdout.String())
	}
	// The error of vectors-near is subtracted from that of counts-near.
	a, _ := runtest.Find(rows, "esol", "counts-near", "scaffold")
	b, _ := runtest.Find(rows, "esol", "vectors-near", "scaffold")
	d := compare.Seeds(a.PerSeed, b.PerSeed)
	gain := fmt.Sprintf("%.2f ± %.2f", d.Mean, d.Err)
	if _, gains, ok := strings.Cut(stdout.String(), "vectors-near over counts-near"); !ok || d.Mean == 0 || strings.Count(gains, "±") != 1 || !strings.Contains(gains, strings.ReplaceAll(gain, "-", "−")) {
		t.Errorf("want one gain, %s, in\n%s", gain, stdout.String())
	}
}

// TestTuned: fine-tuned models tell an oxygen, too.
func TestTuned(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	args := []string{"-data", made(t), "-dataset", "herg", "-method", "tuned-hu,tuned-default,light-rdkit,light-auto,forest", "-seeds", "1", "-out", out}
	if err := execute(t.Context(), args, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	rows := runtest.Results(t, out)
	for _, m := range []string{"tuned-hu", "tuned-default", "light-rdkit", "light-auto", "forest"} {
		if r, ok := runtest.Find(rows, "herg", m, "tdc"); !ok || r.Mean < 95 {
			t.Errorf("%s: %+v", m, r)
		}
	}
}

// TestInTime: the orders of endpoints are merged, and the later of two molecules comes later wherever an endpoint
// tells.
func TestInTime(t *testing.T) {
	column := func(smiles ...string) *measured {
		c := &measured{smiles: smiles, position: map[string]int{}}
		for i, s := range smiles {
			c.position[s] = i
		}
		return c
	}
	for want, columns := range map[string][]*measured{
		"A B C D E": {column("B", "D"), column("A", "B", "C"), column("C", "D", "E")},
		"A D B C":   {column("D", "B"), column("A", "D"), column("B", "C")},
		"A B":       {column("A", "B"), column("B", "A")}, // which contradict each other
	} {
		if got := strings.Join(inTime(columns), " "); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	predicted := []float64{1, 5, 2, 0, 4, 7}
	observed := []float64{1, 5, 3, math.NaN(), 5, 9} // errors 0, 1, 1 of 2, 0, 2 and 0, 2 of 2, 2
	if e := relativeErrors(predicted, observed, 2); e[0] != 0.5 || e[1] != 0.5 {
		t.Errorf("relative errors %v", e)
	}
}

// TestExpansionrx: endpoints with gaps are joined, the latest molecules are tested on, and each endpoint has a row.
func TestExpansionrx(t *testing.T) {
	dir := t.TempDir()
	s := set{expansionrx, relativeError, false}
	for k, endpoint := range s.endpoints() {
		text := "smiles,y,split\n"
		for i := range 80 {
			if (i+k)%3 > 0 {
				text += fmt.Sprintf("%s,%d,train\n", strings.Repeat("C", 1+i/2)+strings.Repeat("O", i%2), 9+i)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, expansionrx+"_"+endpoint+".csv"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	l, err := s.load(t.Context(), dir)
	if err != nil || len(l.molecules) != 80 || len(l.test) != 16 || l.y[9] != 10 || l.y[10] != math.Log10(11) || !math.IsNaN(l.y[11]) {
		t.Fatalf("%v: %d molecules, targets of the second %v", err, len(l.molecules), l.y[9:18])
	}
	for i, m := range l.molecules {
		if len(m.Atoms) != 1+i/2+i%2 {
			t.Fatalf("molecule %d has %d atoms", i, len(m.Atoms))
		}
	}
	out := filepath.Join(t.TempDir(), "run")
	methods := "mean,descriptors"
	large := os.Getenv("SPECMATCH_LARGE") != ""
	if large { // nine fits
		methods += ",tuned-alone"
	}
	args := []string{"-data", dir, "-dataset", expansionrx, "-method", methods, "-seeds", "1", "-out", out}
	if err := execute(t.Context(), args, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	table, err := os.ReadFile(filepath.Join(out, expansionrx+".csv"))
	lines := strings.Split(string(table), "\n")
	if err != nil || len(lines) != 82 || lines[2] != "CO,train,10,1.04139,,1.04139,1.04139,,1.04139,1.04139," ||
		!strings.Contains(lines[80], ",test,") {
		t.Errorf("the joined table, error %v:\n%s", err, table)
	}
	rows := runtest.Results(t, out)
	mean, _ := runtest.Find(rows, expansionrx, "mean", "time")
	linear, _ := runtest.Find(rows, expansionrx, "descriptors", "time")
	if !(linear.Mean < 0.5*mean.Mean) {
		t.Errorf("errors %v of the mean, %v by descriptors", mean.Mean, linear.Mean)
	}
	for _, endpoint := range s.endpoints() {
		tuned, _ := runtest.Find(rows, expansionrx+" "+endpoint, "tuned-alone", "time")
		if large && !(tuned.Mean > 0 && tuned.Mean < mean.Mean) {
			t.Errorf("%s: errors %v of the mean, %v fine-tuned", endpoint, mean.Mean, tuned.Mean)
		}
	}
}

func TestKilled(t *testing.T) {
	runtest.Kill(t, 5, "-data", made(t), "-dataset", "herg", "-method", "mean,counts", "-seeds", "2")
}

func TestUsage(t *testing.T) {
	data := made(t)
	for name, text := range map[string]string{"ames": "smiles,y,split\nC,1,valid\n", "hia_hou": "smiles,y,split\nC,yes,test\n", "bbb_martins": "smiles,y,split\nC,1,test\n"} {
		if err := os.WriteFile(filepath.Join(data, name+".csv"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for want, c := range map[string]struct {
		args  []string
		usage bool
	}{
		"-data is needed":             {nil, true},
		"no such set (have: caco2":    {[]string{"-data", data, "-dataset", "qm9"}, true},
		"-method":                     {[]string{"-data", data, "-method", "magic"}, true},
		"cyp2d6_veith":                {[]string{"-data", data, "-dataset", "cyp2d6_veith"}, false},
		`ames.csv:2: split "valid"`:   {[]string{"-data", data, "-dataset", "ames"}, false},
		`hia_hou.csv:2: y "yes"`:      {[]string{"-data", data, "-dataset", "hia_hou"}, false},
		"0 records to train on and 1": {[]string{"-data", data, "-dataset", "bbb_martins"}, false},
	} {
		err := execute(t.Context(), append([]string{"-out", filepath.Join(t.TempDir(), "run")}, c.args...), io.Discard, io.Discard)
		var usage *cli.UsageError
		if err == nil || !strings.Contains(err.Error(), want) || errors.As(err, &usage) != c.usage {
			t.Errorf("%v: got %v, want %q", c.args, err, want)
		}
	}
}
