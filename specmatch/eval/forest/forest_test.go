package forest_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/specmatch/specmatch/specmatch/eval/forest"
)

// sample returns Friedman's function of the first five of ten uniform columns, with a little noise.
func sample(n int, seed uint64) (x []float32, y []float64) {
	rng := rand.New(rand.NewPCG(seed, 1))
	for range n {
		row := make([]float32, 10)
		for k := range row {
			row[k] = rng.Float32()
		}
		v := func(k int) float64 { return float64(row[k]) }
		x = append(x, row...)
		y = append(y, 10*math.Sin(math.Pi*v(0)*v(1))+20*(v(2)-0.5)*(v(2)-0.5)+10*v(3)+5*v(4)+0.1*rng.NormFloat64())
	}
	return x, y
}

// TestFriedman: scikit-learn's RandomForestRegressor(100, max_features=1/3) has R² of 0.822 to 0.836 on five
// such samples (scikit-learn 1.9.1).
func TestFriedman(t *testing.T) {
	x, y := sample(500, 1)
	testX, testY := sample(500, 2)
	f, err := forest.Fit(t.Context(), x, 10, y, 1, forest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	mean := 0.0
	for _, v := range testY {
		mean += v / float64(len(testY))
	}
	var residual, total float64
	for i, p := range f.Predict(testX) {
		residual += (p - testY[i]) * (p - testY[i])
		total += (testY[i] - mean) * (testY[i] - mean)
	}
	r2 := 1 - residual/total
	t.Logf("R² %.3f", r2)
	if r2 < 0.80 || r2 > 0.86 {
		t.Errorf("R² %.3f", r2)
	}
	for _, p := range f.Predict(x) {
		if p < slices.Min(y) || p > slices.Max(y) {
			t.Errorf("%g is beyond the targets", p)
		}
	}
}

// TestCores: the number of cores does not change a bit.
func TestCores(t *testing.T) {
	x, y := sample(200, 3)
	var first []float64
	for _, cores := range []int{1, 2, 5} {
		before := runtime.GOMAXPROCS(cores)
		f, err := forest.Fit(t.Context(), x, 10, y, 1, forest.Options{Trees: 20, Seed: 7})
		runtime.GOMAXPROCS(before)
		if err != nil {
			t.Fatal(err)
		}
		p := f.Predict(x)
		if first == nil {
			first = p
		}
		if !slices.Equal(p, first) {
			t.Errorf("%d cores give other predictions", cores)
		}
	}
}

// TestClasses: probabilities of three classes sum to 1, and one column decides.
func TestClasses(t *testing.T) {
	x, y := []float32{}, []float64{}
	for i := range 90 {
		row := make([]float64, 3)
		row[i%3] = 1
		x = append(x, float32(i%3), float32(i%7), 5)
		y = append(y, row...)
	}
	f, err := forest.Fit(t.Context(), x, 3, y, 3, forest.Options{Share: 0.1})
	if err != nil {
		t.Fatal(err)
	}
	p := f.Predict([]float32{2, 0, 5, 0, 6, 5})
	if math.Abs(p[0]+p[1]+p[2]-1) > 1e-9 || p[2] < 0.9 || p[3] < 0.9 {
		t.Error(p)
	}
	for _, bad := range [][]float64{{1}, {math.NaN(), 1}} {
		if _, err := forest.Fit(t.Context(), []float32{1, 2}, 1, bad, 1, forest.Options{}); err == nil {
			t.Error(bad)
		}
	}
	f, err = forest.Fit(t.Context(), []float32{1, 1}, 1, []float64{1, 2}, 1, forest.Options{})
	if err != nil || f.Predict([]float32{3})[0] < 1 {
		t.Error(err)
	}
}

// TestJSON: a stored forest predicts the same bits, and damage is an error.
func TestJSON(t *testing.T) {
	x, y := sample(200, 5)
	for i := range y {
		y = append(y, math.Round(y[i]))
	}
	f, err := forest.Fit(t.Context(), x, 10, y, 2, forest.Options{Trees: 5})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var stored forest.Forest
	if err := json.Unmarshal(text, &stored); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(stored.Predict(x), f.Predict(x)) {
		t.Error("the stored forest predicts something else")
	}
	var bytes []byte
	if err := json.Unmarshal(text, &bytes); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range 400 {
		damaged := slices.Clone(bytes)
		if i < 200 {
			damaged = damaged[:i*len(bytes)/200]
		} else {
			damaged[i%len(bytes)] = 0xff
		}
		text, _ := json.Marshal(damaged)
		if json.Unmarshal(text, new(forest.Forest)) != nil {
			refused++
		}
	}
	if refused < 200 {
		t.Errorf("%d of 400 damaged forests are refused", refused)
	}
}
