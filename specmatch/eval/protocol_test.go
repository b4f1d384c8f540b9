package eval

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/specmatch/specmatch/gnn/dataset"
)

func stratified(t testing.TB, y []int, k int) []dataset.Fold {
	t.Helper()
	folds, err := dataset.StratifiedKFold(y, k, true, 1)
	if err != nil {
		t.Fatal(err)
	}
	return folds
}

func TestEvaluateDoesNotDependOnWorkers(t *testing.T) {
	d := blobs(41, 180, 6, 3, 0.5)
	outer := stratified(t, d.Y, 5)
	for _, p := range Protocols() {
		var want *Result
		for _, workers := range []int{1, 2, 3, 8} {
			got, err := Evaluate(context.Background(), p, d, outer, Options{Workers: workers})
			if err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s: %d workers: %+v, one worker: %+v", p, workers, got, want)
			}
		}
	}
}

// Evaluate shares distances, kernels and warm starts among folds; the fits that
// it stands for, one by one, must give the same.
func TestEvaluateIsTheNestedLoop(t *testing.T) {
	d := blobs(43, 120, 5, 3, 0.6)
	outer := stratified(t, d.Y, 4)
	cs := []float64{0.01, 1, 100}
	ctx := context.Background()
	predict := map[Protocol]func(x []float64, y []int, c float64, test []float64) ([]int, error){
		GraphCL: func(x []float64, y []int, c float64, test []float64) ([]int, error) {
			m, err := FitSVC(ctx, x, d.Dim, y, SVCConfig{C: c})
			if err != nil {
				return nil, err
			}
			return m.Predict(test)
		},
		Linear: func(x []float64, y []int, c float64, test []float64) ([]int, error) {
			m, err := FitLinearSVC(ctx, x, d.Dim, y, c)
			if err != nil {
				return nil, err
			}
			return m.Predict(test)
		},
	}
	pick := func(idx []int) (y []int) {
		for _, i := range idx {
			y = append(y, d.Y[i])
		}
		return y
	}
	for p, f := range predict {
		accuracy := func(train, test []int, c float64) float64 {
			got, err := f(rows(d.X, d.Dim, train), pick(train), c, rows(d.X, d.Dim, test))
			if err != nil {
				t.Fatal(err)
			}
			right := 0
			for i, y := range pick(test) {
				if got[i] == y {
					right++
				}
			}
			return float64(right) / float64(len(test))
		}
		res, err := Evaluate(ctx, p, d, outer, Options{Cs: cs, InnerFolds: 3})
		if err != nil {
			t.Fatal(err)
		}
		mean := 0.0
		for o, fold := range outer {
			inner, err := dataset.StratifiedKFold(pick(fold.Train), 3, false, 0)
			if err != nil {
				t.Fatal(err)
			}
			best, bestC := -1.0, 0.0
			for c, price := range cs {
				sum := 0.0
				for _, in := range inner {
					train, test := make([]int, len(in.Train)), make([]int, len(in.Test))
					for i, at := range in.Train {
						train[i] = fold.Train[at]
					}
					for i, at := range in.Test {
						test[i] = fold.Train[at]
					}
					sum += accuracy(train, test, price)
				}
				if got := res.InnerAccuracies[o][c]; got != sum/3 {
					t.Errorf("%s: fold %d, C=%g: validation accuracy %v, want %v", p, o, price, got, sum/3)
				}
				if sum/3 > best {
					best, bestC = sum/3, price
				}
			}
			want := accuracy(fold.Train, fold.Test, bestC)
			if res.ChosenC[o] != bestC || res.FoldAccuracies[o] != want {
				t.Errorf("%s: fold %d: C=%g, accuracy %v, want C=%g, %v", p, o, res.ChosenC[o], res.FoldAccuracies[o], bestC, want)
			}
			mean += want
		}
		if !(math.Abs(res.Mean-mean/4) <= 1e-15) {
			t.Errorf("%s: mean %v, want %v", p, res.Mean, mean/4)
		}
	}
}

func TestTiesGoToTheSmallestC(t *testing.T) {
	// Far apart, every C is right about everything.
	d := Data{Dim: 1}
	for i := range 40 {
		d.Y = append(d.Y, i%2)
		d.X = append(d.X, float64(100*(i%2))+0.01*float64(i))
	}
	for _, p := range Protocols() {
		res, err := Evaluate(context.Background(), p, d, stratified(t, d.Y, 4), Options{Cs: []float64{10, 100, 1000}})
		if err != nil {
			t.Fatal(err)
		}
		if res.Mean != 1 || slices.Max(res.ChosenC) != 10 {
			t.Errorf("%s: mean %v with C %v, want 1 with the first C, 10", p, res.Mean, res.ChosenC)
		}
	}
}

func TestProgress(t *testing.T) {
	d := blobs(45, 60, 3, 2, 0.5)
	var calls []int
	_, err := Evaluate(context.Background(), Linear, d, stratified(t, d.Y, 4), Options{Workers: 3, Progress: func(done, total int) {
		if total != 4 {
			t.Errorf("total is %d, want 4", total)
		}
		calls = append(calls, done)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if want := []int{1, 2, 3, 4}; !slices.Equal(calls, want) {
		t.Errorf("progress %v, want %v", calls, want)
	}
}

func TestCancellation(t *testing.T) {
	d := blobs(47, 120, 4, 2, 0.3)
	outer := stratified(t, d.Y, 6)
	for _, p := range Protocols() {
		ctx, cancel := context.WithCancel(context.Background())
		folds := 0
		res, err := Evaluate(ctx, p, d, outer, Options{Workers: 2, Progress: func(done, total int) {
			folds = done
			cancel()
		}})
		if err != context.Canceled || res != nil {
			t.Errorf("%s: result %v, error %v, want context.Canceled", p, res, err)
		}
		if folds == 0 || folds > 3 {
			t.Errorf("%s: %d folds done; cancelled at the first", p, folds)
		}
		if _, err := Evaluate(ctx, p, d, outer, Options{}); err != context.Canceled {
			t.Errorf("%s: cancelled before the start: error %v", p, err)
		}
		if _, err := FitSVC(ctx, d.X, d.Dim, d.Y, SVCConfig{C: 1}); err != context.Canceled {
			t.Errorf("FitSVC: error %v", err)
		}
		if _, err := FitLinearSVC(ctx, d.X, d.Dim, d.Y, 1); err != context.Canceled {
			t.Errorf("FitLinearSVC: error %v", err)
		}
	}
}

func TestParseProtocol(t *testing.T) {
	for _, p := range Protocols() {
		if got, err := ParseProtocol(string(p)); err != nil || got != p {
			t.Errorf("%s: %v, %v", p, got, err)
		}
	}
	if _, err := ParseProtocol("rbf"); err == nil || !strings.Contains(err.Error(), "graphcl, linear") {
		t.Errorf("error %v does not name the protocols", err)
	}
}

func TestBadInputIsAnError(t *testing.T) {
	good := func() (Data, []dataset.Fold, Options) {
		d := Data{Dim: 2}
		for i := range 30 {
			d.Y = append(d.Y, i%3)
			d.X = append(d.X, float64(i%7), float64(i%3))
		}
		return d, stratified(t, d.Y, 3), Options{}
	}
	for _, tc := range []struct {
		name string
		harm func(d *Data, outer *[]dataset.Fold, o *Options)
		want string // part of the message
	}{
		{"NaN", func(d *Data, _ *[]dataset.Fold, _ *Options) { d.X[13] = math.NaN() }, "NaN in row 6, column 1"},
		{"infinity", func(d *Data, _ *[]dataset.Fold, _ *Options) { d.X[4] = math.Inf(-1) }, "-Inf in row 2, column 0"},
		{"overflow", func(d *Data, _ *[]dataset.Fold, _ *Options) { d.X[4] = 1e200 }, "1e+200 in row 2, column 0"},
		{"negative overflow", func(d *Data, _ *[]dataset.Fold, _ *Options) { d.X[4] = -1e200 }, "-1e+200 in row 2, column 0"},
		{"no points", func(d *Data, _ *[]dataset.Fold, _ *Options) { d.X, d.Y = nil, nil }, "no points"},
		{"no features", func(d *Data, _ *[]dataset.Fold, _ *Options) { d.Dim = 0 }, "number of features 0"},
		{"ragged rows", func(d *Data, _ *[]dataset.Fold, _ *Options) { d.X = d.X[:59] }, "59 numbers are not rows of 2"},
		{"too few labels", func(d *Data, _ *[]dataset.Fold, _ *Options) { d.Y = d.Y[:29] }, "30 rows of features but 29 labels"},
		{"negative label", func(d *Data, _ *[]dataset.Fold, _ *Options) { d.Y[3] = -1 }, "label -1 of point 3"},
		{"large label", func(d *Data, _ *[]dataset.Fold, _ *Options) { d.Y[3] = math.MaxInt }, "out of range"},
		{"missing class", func(d *Data, _ *[]dataset.Fold, _ *Options) {
			for i := range d.Y {
				d.Y[i] &= 2
			}
		}, "no point has class 1"},
		{"one class", func(d *Data, _ *[]dataset.Fold, _ *Options) { clear(d.Y) }, "needs two classes"},
		{"no folds", func(_ *Data, f *[]dataset.Fold, _ *Options) { *f = nil }, "no outer folds"},
		{"empty test part", func(_ *Data, f *[]dataset.Fold, _ *Options) { (*f)[1].Test = nil }, "outer fold 1 has 20 training and 0 test"},
		{"point out of range", func(_ *Data, f *[]dataset.Fold, _ *Options) { (*f)[1].Test[0] = 30 }, "outer fold 1: point 30 is out of range"},
		{"point in both parts", func(_ *Data, f *[]dataset.Fold, _ *Options) { (*f)[2].Test[0] = (*f)[2].Train[5] }, "occurs twice"},
		{"class missing in training", func(d *Data, f *[]dataset.Fold, _ *Options) {
			(*f)[0].Train = slices.DeleteFunc((*f)[0].Train, func(i int) bool { return d.Y[i] == 2 })
		}, "outer fold 0: no training point of class 2"},
		{"too many inner folds", func(_ *Data, _ *[]dataset.Fold, o *Options) { o.InnerFolds = 8 }, "outer fold 0: grid search"},
		{"one inner fold", func(_ *Data, _ *[]dataset.Fold, o *Options) { o.InnerFolds = 1 }, "outer fold 0: grid search"},
		{"empty grid", func(_ *Data, _ *[]dataset.Fold, o *Options) { o.Cs = []float64{} }, "no C"},
		{"C of zero", func(_ *Data, _ *[]dataset.Fold, o *Options) { o.Cs = []float64{0, 1} }, "C is 0"},
		{"C not a number", func(_ *Data, _ *[]dataset.Fold, o *Options) { o.Cs = []float64{math.NaN()} }, "C is NaN"},
		{"C not ascending", func(_ *Data, _ *[]dataset.Fold, o *Options) { o.Cs = []float64{1, 1} }, "does not ascend"},
	} {
		for _, p := range Protocols() {
			d, outer, o := good()
			tc.harm(&d, &outer, &o)
			res, err := Evaluate(context.Background(), p, d, outer, o)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s, %s: result %v, error %v, want one with %q", tc.name, p, res, err, tc.want)
			}
		}
	}
	d, outer, _ := good()
	if _, err := Evaluate(context.Background(), "svm", d, outer, Options{}); err == nil {
		t.Error("unknown protocol: no error")
	}
	for _, cfg := range []SVCConfig{{}, {C: -1}, {C: math.Inf(1)}, {C: 1, Gamma: -1}, {C: 1, Gamma: math.NaN()}, {C: 1, Tol: -1}, {C: 1, MaxIter: -1}} {
		if _, err := FitSVC(context.Background(), d.X, 2, d.Y, cfg); err == nil {
			t.Errorf("FitSVC with %+v: no error", cfg)
		}
	}
	for _, c := range []float64{0, -1, math.NaN(), math.Inf(1), 1e308} {
		if _, err := FitLinearSVC(context.Background(), d.X, 2, d.Y, c); err == nil {
			t.Errorf("FitLinearSVC with C=%g: no error", c)
		}
	}
	m, err := FitSVC(context.Background(), d.X, 2, d.Y, SVCConfig{C: 1})
	if err != nil {
		t.Fatal(err)
	}
	l, err := FitLinearSVC(context.Background(), d.X, 2, d.Y, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range [][]float64{nil, {1}, {1, math.NaN()}} {
		if _, err := m.Predict(x); err == nil {
			t.Errorf("SVC.Predict(%v): no error", x)
		}
		if _, err := l.Predict(x); err == nil {
			t.Errorf("LinearSVC.Predict(%v): no error", x)
		}
	}
}

// TestCheck: labels and folds are refused without features just as with them.
func TestCheck(t *testing.T) {
	good := []int{0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}
	for _, tc := range []struct {
		labels []int
		folds  int
		opt    Options
		want   string
	}{
		{good, 3, Options{InnerFolds: 2}, ""},
		{make([]int, 12), 3, Options{InnerFolds: 2}, "all 12 points have class 0"},
		{[]int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 3, Options{InnerFolds: 2}, "no training point of class 1"},
		{good, 3, Options{}, "outer fold 0: grid search"}, // 5 inner folds of 4 a class
	} {
		err := Check(tc.labels, tc.folds, tc.opt)
		_, evaluated := GraphCL.Accuracy(context.Background(), make([]float64, len(tc.labels)), tc.labels, tc.folds, 0, tc.opt)
		if tc.want == "" {
			if err != nil {
				t.Errorf("good labels: %v", err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || evaluated == nil || evaluated.Error() != err.Error() {
			t.Errorf("Check: %v, Evaluate: %v; want %s", err, evaluated, tc.want)
		}
	}
}

// TestFixedC: with one C nothing is searched, and the accuracies are those of a search
// that has chosen it.
func TestFixedC(t *testing.T) {
	d := blobs(47, 120, 5, 3, 0.6)
	outer := stratified(t, d.Y, 4)
	evaluate := func(p Protocol, cs []float64) *Result {
		t.Helper()
		r, err := Evaluate(context.Background(), p, d, outer, Options{Cs: cs})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	fixed, searched := evaluate(GraphCLC10, nil), evaluate(GraphCL, []float64{10, 10.000001})
	if !slices.Equal(fixed.FoldAccuracies, searched.FoldAccuracies) || !slices.Equal(fixed.ChosenC, []float64{10, 10, 10, 10}) {
		t.Errorf("C = 10 gives %v with C = %v, the search %v with %v", fixed.FoldAccuracies, fixed.ChosenC, searched.FoldAccuracies, searched.ChosenC)
	}
	if fixed.InnerAccuracies != nil || searched.InnerAccuracies == nil {
		t.Errorf("inner accuracies %v without a search, %v with one", fixed.InnerAccuracies, searched.InnerAccuracies)
	}
}

func TestErrorNamesTheFold(t *testing.T) {
	// Class 1 has one training point; the inner fold that tests it trains on class
	// 0 only.
	d := Data{X: []float64{0, 1, 2, 3, 4, 5, 6, 7}, Dim: 1, Y: []int{0, 0, 0, 1, 0, 0, 0, 1}}
	outer := []dataset.Fold{{Train: []int{0, 1, 2, 3, 4, 5}, Test: []int{6, 7}}}
	for _, p := range []Protocol{GraphCL, Linear} {
		_, err := Evaluate(context.Background(), p, d, outer, Options{InnerFolds: 3})
		if err == nil || !strings.Contains(err.Error(), "outer fold 0, inner fold") || !strings.Contains(err.Error(), "only class 0") {
			t.Errorf("%s: error %v", p, err)
		}
	}
}

// fake is a scorer that gets everything wrong, after f.
type fake struct {
	f func(train []int) error
}

func (s fake) score(_ context.Context, train, _ []int, lo, hi int) ([]int, error) {
	return make([]int, hi-lo), s.f(train)
}

// runNested runs a search with a fake scorer on 4 outer folds of 12 points, 3 of them
// in each test part, and 3 inner folds.
func runNested(t *testing.T, opt Options, workers int, f func(train []int) error) error {
	t.Helper()
	d := Data{X: make([]float64, 12), Dim: 1}
	for i := range 12 {
		d.Y = append(d.Y, i%2)
	}
	outer := stratified(t, d.Y, 4)
	opt.Cs, opt.InnerFolds = []float64{1, 10}, 3
	inner, err := splitInner(d, outer, opt.InnerFolds)
	if err != nil {
		t.Fatal(err)
	}
	_, err = search{outer: outer, inner: inner, settings: 2, opt: opt, workers: workers, newScorer: func() scorer { return fake{f} }}.run(context.Background())
	return err
}

// The error of any fit becomes that of the evaluation; the error of a context is
// returned unchanged, for callers that compare it.
func TestNestedPassesErrorsOn(t *testing.T) {
	boom := errors.New("boom")
	for _, tc := range []struct {
		name  string
		train int // size of the training part that fails
		err   error
		want  string
	}{
		{"inner fit", 6, boom, "eval: outer fold 0, inner fold 0: boom"},
		{"final fit", 9, boom, "eval: outer fold 0, final fit: boom"},
		{"cancelled", 6, context.Canceled, context.Canceled.Error()},
		{"too late", 9, context.DeadlineExceeded, context.DeadlineExceeded.Error()},
	} {
		err := runNested(t, Options{}, 1, func(train []int) error {
			if len(train) == tc.train {
				return tc.err
			}
			return nil
		})
		if err == nil || err.Error() != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: error %v, want %q", tc.name, err, tc.want)
		}
	}
}

func TestSlotsBoundAllEvaluations(t *testing.T) {
	slots := make(chan struct{}, 2)
	var busy, most atomic.Int64
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			err := runNested(t, Options{Slots: slots}, 3, func([]int) error {
				if n := busy.Add(1); n > most.Load() {
					most.Store(n)
				}
				time.Sleep(time.Millisecond)
				busy.Add(-1)
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if most.Load() > 2 || len(slots) != 0 {
		t.Errorf("%d workers were busy with 2 slots, %d slots are taken in the end", most.Load(), len(slots))
	}
}

func TestSizeLimits(t *testing.T) {
	y := make([]int, maxPoints+1)
	y[0] = 1
	if _, err := FitSVC(context.Background(), make([]float64, len(y)), 1, y, SVCConfig{C: 1}); err == nil || !strings.Contains(err.Error(), "20001 points") {
		t.Errorf("too many points: error %v", err)
	}
	if _, err := FitLinearSVC(context.Background(), make([]float64, 2*(maxColumns+1)), maxColumns+1, []int{0, 1}, 1); err == nil || !strings.Contains(err.Error(), "8193 features") {
		t.Errorf("too many features: error %v", err)
	}
}

// The smallest subnormal spread has a variance of 0 in floating point, a slightly
// larger one a variance whose inverse overflows.
func TestTinyVariance(t *testing.T) {
	y := []int{0, 1, 0, 1}
	if _, err := FitSVC(context.Background(), []float64{0, 1e-160, 0, 1e-160}, 1, y, SVCConfig{C: 1}); err == nil {
		t.Error("an infinite gamma was accepted")
	}
	m, err := FitSVC(context.Background(), []float64{3, 3, 3, 3}, 1, y, SVCConfig{C: 1})
	if err != nil || m.Gamma != 1 {
		t.Errorf("equal points: gamma %v, error %v, want 1", m, err)
	}
}

func TestParallelReportsTheFirstError(t *testing.T) {
	// The error is that of the lowest task that failed, and no task starts after it.
	begun := make(chan struct{})
	err := parallel(context.Background(), 2, 2, func(_, task int) error {
		if task == 0 {
			<-begun
		} else {
			close(begun)
			time.Sleep(10 * time.Millisecond)
		}
		return fmt.Errorf("task %d", task)
	})
	if err == nil || err.Error() != "task 0" {
		t.Errorf("error %v, want that of task 0", err)
	}
	var calls atomic.Int64
	err = parallel(context.Background(), 500, 2, func(_, task int) error {
		calls.Add(1)
		if task == 0 {
			return errors.New("task 0")
		}
		time.Sleep(time.Millisecond)
		return nil
	})
	if err == nil || calls.Load() > 250 {
		t.Errorf("error %v, %d of 500 tasks were begun after task 0 had failed", err, calls.Load())
	}
	boom := errors.New("boom")
	for _, workers := range []int{1, 4} {
		err := parallel(context.Background(), 100, workers, func(_, task int) error {
			if task == 17 {
				return boom
			}
			return nil
		})
		if err != boom {
			t.Errorf("%d workers: error %v", workers, err)
		}
	}
}

// FuzzFit feeds small, odd problems to both machines: they must answer or refuse,
// never panic, and never run on.
func FuzzFit(f *testing.F) {
	f.Add([]byte{1, 2, 3, 4, 5, 6, 7, 8}, uint8(2), 1.0, 1.0)
	f.Add([]byte{0, 0, 0, 0, 255, 255}, uint8(1), 1e3, 1e-3)
	f.Add([]byte{9, 9, 9, 9, 9, 9, 9, 9, 9}, uint8(3), 1e-3, 1e100)
	f.Add([]byte{1, 0, 1, 0, 128, 127}, uint8(1), 1e300, 1e139)
	f.Fuzz(func(t *testing.T, b []byte, dim uint8, c, scale float64) {
		if len(b) > 64 {
			return
		}
		var x []float64
		var y []int
		d := int(dim % 5)
		for i, v := range b {
			x = append(x, scale*float64(int8(v)))
			if d > 0 && i%d == d-1 {
				y = append(y, int(v>>2)%3)
			}
		}
		if m, err := FitSVC(context.Background(), x, d, y, SVCConfig{C: c, MaxIter: 20000}); err == nil {
			if _, err := m.Predict(x); err != nil {
				t.Errorf("SVC: %v", err)
			}
		}
		if m, err := FitLinearSVC(context.Background(), x, d, y, c); err == nil {
			if _, err := m.Predict(x); err != nil {
				t.Errorf("LinearSVC: %v", err)
			}
		} else if errors.Is(err, ErrNotConverged) && scale < 1e6 && c < 1e4 {
			t.Errorf("LinearSVC: %v", err)
		}
	})
}
