package specmatch_test

import (
	"reflect"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

// offering is an engine that offers every fused form and counts their calls, which
// do nothing.
type offering struct {
	backend.Backend
	calls *int
}

func (o offering) BiasReLU(y, x, b *tensor.Tensor)                                 { *o.calls++ }
func (o offering) BiasReLUBackward(dx, db, dy, y *tensor.Tensor)                   { *o.calls++ }
func (o offering) Normalize(y, r, x *tensor.Tensor, floor float64)                 { *o.calls++ }
func (o offering) NormalizeBackward(dx, dy, y, r *tensor.Tensor, floor float64)    { *o.calls++ }
func (o offering) NormForward(*backend.Norm)                                       { *o.calls++ }
func (o offering) NormBackward(*backend.Norm, *backend.NormGradients)              { *o.calls++ }
func (o offering) NormOperands() (bias, weights bool)                              { *o.calls++; return true, true }
func (o offering) GINForward(*backend.GINLayer)                                    { *o.calls++ }
func (o offering) GINBackward(*backend.GINLayer, *backend.GINGradients)            { *o.calls++ }
func (o offering) GCNForward(*backend.GCNLayer)                                    { *o.calls++ }
func (o offering) GCNBackward(*backend.GCNLayer, *backend.GCNGradients)            { *o.calls++ }
func (o offering) ContrastTiles() bool                                             { *o.calls++; return true }
func (o offering) ContrastForward(*backend.Contrast)                               { *o.calls++ }
func (o offering) ContrastBackward(c *backend.Contrast, dc, dg, du *tensor.Tensor) { *o.calls++ }
func (o offering) Messages(y *tensor.Tensor, a *backend.CSR, x *tensor.Tensor, self float64, c *tensor.Tensor, ws []*tensor.Tensor) {
	*o.calls++
}
func (o offering) MessagesBackward(dx *tensor.Tensor, dws []*tensor.Tensor, dy *tensor.Tensor, at *backend.CSR, self float64, c *tensor.Tensor) {
	*o.calls++
}
func (o offering) SquaredNorm(*tensor.Tensor, []*tensor.Tensor) { *o.calls++ }
func (o offering) AdamAll(p, g, m, v []*tensor.Tensor, rate, step *tensor.Tensor, c backend.AdamConfig) {
	*o.calls++
}
func (o offering) TrackStatistics(rm, rv, m, v *tensor.Tensor, groups *backend.Indices, momentum float64) {
	*o.calls++
}

// TestComposedComposesEverything: a step of a trainer with that option calls nothing
// of what its engine offers, Adam and the running statistics included, and is the
// step of an engine that offers nothing.
func TestComposedComposesEverything(t *testing.T) {
	for _, e := range encoders {
		step := func(be backend.Backend, opts ...autodiff.Option) (*specmatch.Model, error) {
			rng, b := newRand(3), randomBatch(1, 7)
			e.take(b)
			m := specmatch.NewModel(be, e.new(be, rng), rng)
			_, err := specmatch.NewTrainer(be, m, objective(0.1), 0.01, opts...).Step(b, false)
			return m, err
		}
		calls := 0
		be := offering{ref.New(), &calls}
		got, err := step(be, autodiff.Composed())
		if err != nil || calls != 0 {
			t.Errorf("%s: a composed step calls %d fused forms, error %v", e.name, calls, err)
		}
		plain := ref.New()
		want, err := step(plain)
		if err != nil {
			t.Fatal(err)
		}
		wanted := append(weights(want), runningStatistics(plain, want)...)
		for i, v := range append(weights(got), runningStatistics(be, got)...) {
			if v != wanted[i] {
				t.Fatalf("%s: number %d is %v, want %v", e.name, i, v, wanted[i])
			}
		}
		calls = 0
		if step(be); calls == 0 {
			t.Errorf("%s: a step calls no fused form", e.name)
		}
	}
	fused := reflect.ValueOf(backend.CapabilitiesOf(offering{}).Fused)
	for i := range fused.NumField() {
		if fused.Field(i).IsNil() {
			t.Errorf("the engine of this test does not offer %s", fused.Type().Field(i).Name)
		}
	}
}
