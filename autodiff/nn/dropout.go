package nn

import (
	"fmt"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Dropout zeroes entries with probability P while training and scales the rest
// by 1/(1-P); see [autodiff.Var.Dropout]. Every use needs its own layer with
// its own seed, so that masks differ.
type Dropout struct {
	P    float64
	Seed uint64
	step *tensor.Tensor
	be   backend.Backend
}

// NewDropout returns a layer whose masks come from seed. It panics unless 0 ≤ p < 1.
func NewDropout(be backend.Backend, p float64, seed uint64) *Dropout {
	if !(p >= 0 && p < 1) {
		panic(fmt.Sprintf("nn: NewDropout: P = %v is outside [0, 1)", p))
	}
	d := &Dropout{
		P:    p,
		Seed: seed,
		step: be.Alloc(1, 1),
		be:   be,
	}
	be.Fill(d.step, 0)
	return d
}

// Forward drops entries of x in Train mode, with a new mask at every call, and
// returns x itself in Eval mode.
func (d *Dropout) Forward(x *autodiff.Var, mode Mode) *autodiff.Var {
	if mode == Eval || d.P == 0 {
		return x
	}
	d.be.Affine(d.step, 1, d.step, 1)
	return x.Dropout(1-d.P, d.Seed, d.step)
}

// State returns the number of masks drawn so far as a buffer, for checkpoints:
// resumed training continues with the next mask. It is not a weight of the model, so
// modules do not list it among their Buffers.
func (d *Dropout) State(name string) *Buffer {
	return BufferOf(d.be, name, d.step)
}
