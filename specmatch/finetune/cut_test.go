package finetune

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/model"
)

// inputOf returns the options to read a text.
func inputOf(text string) records.Options {
	return records.Options{Input: strings.NewReader(text)}
}

// TestBestCut: no cut has a better balanced accuracy, equal predictions are not divided, and of equally good cuts the
// one nearest to a half is taken.
func TestBestCut(t *testing.T) {
	balanced := func(p, y []float64, cut float64) float64 {
		var count, correct [2]float64
		for i := range y {
			count[int(y[i])]++
			if (p[i] >= cut) == (y[i] == 1) {
				correct[int(y[i])]++
			}
		}
		return correct[0]/count[0] + correct[1]/count[1]
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		p := make([]float64, 12)
		y := make([]float64, 12)
		for i := range p {
			p[i] = float64(rng.IntN(9)) / 10
			y[i] = float64(i % 2)
		}
		got := balanced(p, y, bestCut(p, y))
		for cut := 0.0; cut < 1; cut += 0.05 {
			if other := balanced(p, y, cut); other > got+1e-12 {
				t.Fatalf("%v, %v: the cut %v has %v, and %v has %v", p, y, bestCut(p, y), got, cut, other)
			}
		}
	}
	for want, c := range map[float64][2][]float64{
		0.5:  {{0.2, 0.9}, {1, 1}},
		0.55: {{0.1, 0.2, 0.9, 1}, {0, 0, 1, 1}},
		0.35: {{0.1, 0.3, 0.4, 0.6}, {0, 0, 1, 1}},
		0.2:  {{0.4, 0.6}, {1, 0}},
		0.6:  {{0.2, 0.2}, {1, 0}},
	} {
		if got := bestCut(c[0], c[1]); fmt.Sprintf("%.6f", got) != fmt.Sprintf("%.6f", want) {
			t.Errorf("%v: the cut is %v, want %v", c, got, want)
		}
	}
}

// TestCuts: sensitivity and specificity are those of the answers, by hand; missing targets do not count.
func TestCuts(t *testing.T) {
	x, err := Read(t.Context(), "t.csv", Task{Targets: []string{"a", "b"}, Positive: "yes"}, inputOf(
		"smiles,a,b\nC,yes,no\nCC,yes,\nCCC,no,yes\nCCCC,no,no\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(x.Head.Kind, x.Head.ClassValues, x.Y); got != "binary[no yes] [1 0 1 NaN 0 1 0 0]" {
		t.Errorf("the targets are %s", got)
	}
	p := Predictions{
		x:       x,
		head:    x.Head,
		samples: []int{0, 1, 2, 3},
		values:  []float64{0.9, 0.1, 0.2, 0.9, 0.1, 0.3, 0.4, 0.4},
	}
	got := p.Cuts(&model.Calibration{Cuts: []float64{0.3, 0.3}})
	if want := "[{0.3 50 50} {0.3 100 50}]"; fmt.Sprint(got) != want {
		t.Errorf("cuts %v, want %s", got, want)
	}
	for text, want := range map[string]string{
		"yes,no\nCC,no,maybe\nC,yes,": `column b: "maybe" is neither the positive answer "yes" nor "no"`,
		"no,no\nCC,no,no":             `no target is "yes"`,
		"yes,\nCC,none,yes":           `every target is "yes"`,
	} {
		_, err := Read(t.Context(), "t.csv", x.Task, inputOf("smiles,a,b\nC,"+text+"\n"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{"yes": "1 <nil>", "no": "0 <nil>", "NA": "NaN <nil>", "1": `-1 "1" is not a target of the model`} {
		y, err := Target(x.Head, text)
		if got := fmt.Sprint(y, err); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
