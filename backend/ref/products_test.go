package ref_test

import (
	"io"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

// wrong is an engine whose products are a little too large.
type wrong struct{ backend.Backend }

func (w wrong) Gemm(dst *tensor.Tensor, transA, transB bool, alpha float64, a, b *tensor.Tensor, beta float64) {
	w.Backend.Gemm(dst, transA, transB, alpha*(1+1e-4), a, b, beta)
}

// sick panics with an error of its device.
type sick struct{ backend.Backend }

func (sick) Alloc(rows, cols int) *tensor.Tensor {
	panic(&backend.Error{Backend: "sick", Op: "Alloc", Err: io.ErrShortBuffer})
}

func TestCheckProducts(t *testing.T) {
	if err := ref.CheckProducts(ref.New()); err != nil {
		t.Error(err)
	}
	for want, be := range map[string]backend.Backend{
		"is wrong: element": wrong{ref.New()}, "short buffer": sick{ref.New()},
	} {
		if err := ref.CheckProducts(be); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%T: %v, want an error about %q", be, err, want)
		}
	}
}

func ExampleCheckProducts() {
	be, err := backend.Open("ref", tensor.Float64)
	if err != nil {
		panic(err)
	}
	if err := ref.CheckProducts(be); err != nil {
		panic(err) // says which product is wrong, and by how much
	}
	// Output:
}
