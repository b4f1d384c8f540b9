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
	pick := func(idx []int) (y []int) {
		for _, i := range idx {
			y = append(y, d.Y[i])
		}
		return y
	}
	for _, p := range []Protocol{GraphCL, Linear} {
		accuracy := func(train, test []int, c float64) float64 {
			alone := Data{X: rows(d, train), Dim: d.Dim, Y: pick(train)}
			var got []int
			if p == GraphCL {
				got = fitSVC(t, alone, svcOptions{c: c}).predict(rows(d, test))
			} else {
				got = fitLinear(t, alone, c).predict(rows(d, test))
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
			right := 0
			for _, correct := range res.Correct[o] {
				if correct {
					right++
				}
			}
			if len(res.Correct[o]) != len(fold.Test) || float64(right)/float64(len(fold.Test)) != want {
				t.Errorf("%s: fold %d: %d of %d correct, accuracy %v", p, o, right, len(res.Correct[o]), want)
			}
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

// expiring is a context that is cancelled once it has been asked as often as left says.
type expiring struct {
	context.Context
	left atomic.Int64
}

func (c *expiring) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func TestCancellation(t *testing.T) {
	d := blobs(47, 120, 4, 2, 0.3)
	outer := stratified(t, d.Y, 6)
	for _, p := range Protocols() {
		whole := expiring{Context: context.Background()}
		whole.left.Store(1 << 40)
		if _, err := Evaluate(&whole, p, d, outer, Options{Workers: 2}); err != nil {
			t.Fatal(err)
		}
		asked := 1<<40 - whole.left.Load()
		for _, left := range []int64{0, 1, asked / 2, asked - 1} {
			ctx := expiring{Context: context.Background()}
			ctx.left.Store(left)
			res, err := Evaluate(&ctx, p, d, outer, Options{Workers: 2})
			if err != context.Canceled || res != nil {
				t.Errorf("%s, cancelled after %d of %d: result %v, error %v, want context.Canceled", p, left, asked, res, err)
			}
			if after := -ctx.left.Load(); after > 2 {
				t.Errorf("%s: two workers went on for %d steps when cancelled", p, after)
			}
		}
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
			(*f)[0].Train = slices.DeleteFunc((*f)[0].Train, func(i int) bool { return d.Y[i] != 2 })
		}, "outer fold 0: its training points are all of class 2"},
		{"too many inner folds", func(_ *Data, _ *[]dataset.Fold, o *Options) { o.InnerFolds = 21 }, "outer fold 0: grid search"},
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
	if _, err := Evaluate(context.Background(), "svm", d, outer, Options{}); err == nil || !strings.Contains(err.Error(), "graphcl, linear") {
		t.Errorf("unknown protocol: error %v does not name the protocols", err)
	}
	if _, err := Evaluate(context.Background(), Linear, d, outer, Options{Cs: []float64{1e308}}); err == nil {
		t.Error("C = 1e308: no error")
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
		{[]int{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}, 3, Options{InnerFolds: 2}, "training points are all of class 0"},
		{good, 3, Options{InnerFolds: 9}, "outer fold 0: grid search"},
		{append(make([]int, 20), 1, 1), 2, Options{}, "outer fold 0, inner fold 0: the training part has only class 0"},
		{append(make([]int, 20), 1, 1), 2, Options{Cs: []float64{1}}, ""},
		{good, 3, Options{}, ""}, // 5 inner folds of 4 a class
		// As in MSRC_21C, a class of one, and as in FIRSTMM_DB, classes smaller than the folds.
		{[]int{0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2}, 3, Options{}, ""},
		{[]int{0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4}, 10, Options{}, ""},
	} {
		err := GraphCL.Check(tc.labels, tc.folds, tc.opt)
		_, evaluated := GraphCL.Accuracy(context.Background(), make([]float64, len(tc.labels)), tc.labels, tc.folds, 0, tc.opt)
		if tc.want == "" {
			if err != nil || evaluated != nil {
				t.Errorf("%v in %d folds: %v, %v", tc.labels, tc.folds, err, evaluated)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || evaluated == nil || evaluated.Error() != err.Error() {
			t.Errorf("Check: %v, Evaluate: %v; want %s", err, evaluated, tc.want)
		}
	}
	rare := append(make([]int, 20), 1, 1)
	for _, p := range []Protocol{GraphCLC10, HoldOutKernels} { // which do not search within Train
		if err := p.Check(rare, 2, Options{}); err != nil {
			t.Errorf("%s: %v", p, err)
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

// fake is a machine that takes every point for class 0, after f.
type fake struct {
	f func(train []int) error
}

func (m fake) predict(_ context.Context, _ int, p part, test []int, cs []float64) ([][]int, error) {
	return slices.Repeat([][]int{make([]int, len(test))}, len(cs)), m.f(p.train)
}

// runNested runs a search with a fake machine on 4 outer folds of 12 points, 3 of them
// in each test part, and 3 inner folds.
func runNested(t *testing.T, opt Options, f func(train []int) error) error {
	t.Helper()
	var y []int
	for i := range 12 {
		y = append(y, i%2)
	}
	opt.Cs, opt.InnerFolds = []float64{1, 10}, 3
	s, err := newSearch(y, 1, stratified(t, y, 4), nil, opt)
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.run(context.Background(), func() machine { return fake{f} })
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
		err := runNested(t, Options{Workers: 1}, func(train []int) error {
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
			err := runNested(t, Options{Slots: slots, Workers: 3}, func([]int) error {
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
	for p, tc := range map[Protocol]struct {
		n, dim int
		want   string
	}{GraphCL: {maxPoints + 1, 1, "20001 points"}, Linear: {20, maxColumns + 1, "8193 features"}} {
		d := Data{X: make([]float64, tc.n*tc.dim), Dim: tc.dim}
		for i := range tc.n {
			d.Y = append(d.Y, i%2)
		}
		_, err := Evaluate(context.Background(), p, d, stratified(t, d.Y, 2), Options{})
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: error %v, want one about %s", p, err, tc.want)
		}
	}
}

// The smallest subnormal spread has a variance of 0 in floating point, a slightly
// larger one a variance whose inverse overflows.
func TestTinyVariance(t *testing.T) {
	if _, err := scaleGamma(Data{X: []float64{0, 1e-160, 0, 1e-160}, Dim: 1}, upTo(4)); err == nil {
		t.Error("an infinite gamma was accepted")
	}
	if gamma, err := scaleGamma(Data{X: []float64{3, 3, 3, 3}, Dim: 1}, upTo(4)); err != nil || gamma != 1 {
		t.Errorf("equal points: gamma %v, error %v, want 1", gamma, err)
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
		d := Data{Dim: int(dim % 5)}
		number := map[byte]int{} // of a class, in the order in which they appear
		for i, v := range b {
			d.X = append(d.X, scale*float64(int8(v)))
			if class := (v >> 2) % 3; d.Dim > 0 && i%d.Dim == d.Dim-1 {
				if _, ok := number[class]; !ok {
					number[class] = len(number)
				}
				d.Y = append(d.Y, number[class])
			}
		}
		if _, err := (Options{Cs: []float64{c}}).withDefaults(); err != nil || d.Validate() != nil {
			return
		}
		if m, err := trySVC(d, svcOptions{c: c, maxIter: 20000}); err == nil {
			m.predict(d.X)
		}
		if m, err := tryLinear(d, c); err == nil {
			m.predict(d.X)
		} else if errors.Is(err, ErrNotConverged) && scale < 1e6 && c < 1e4 {
			t.Errorf("linear: %v", err)
		}
	})
}
