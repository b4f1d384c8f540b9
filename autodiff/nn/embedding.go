package nn

import (
	"math/rand/v2"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
)

// Embedding is a table [rows×width] from which Forward picks rows.
type Embedding struct{ Table *autodiff.Param }

// NewEmbedding returns a table with Xavier-uniform entries.
func NewEmbedding(
	be backend.Backend, name string, rows, width int, rng *rand.Rand,
) *Embedding {
	return &Embedding{autodiff.NewParam(
		be, name+".weight", rows, width, XavierUniform(rng, rows, width),
	)}
}

// Forward returns the rows idx of the table, [K×width].
func (e *Embedding) Forward(t *autodiff.Tape, idx []int32) *autodiff.Var {
	return t.Param(e.Table).GatherRows(idx)
}

// Parameters returns the table.
func (e *Embedding) Parameters() []*autodiff.Param {
	return []*autodiff.Param{e.Table}
}

// Buffers returns none.
func (e *Embedding) Buffers() []*Buffer {
	return nil
}
