package doctor

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/tensor"
)

func TestDoctor(t *testing.T) {
	var out strings.Builder
	if err := Run(context.Background(), []string{"-precision", "float64"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"binary ", "cuda build ", "cpu            products in float64 agree"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("doctor does not say %q:\n%s", want, out.String())
		}
	}
	if slices.Contains(backend.Names(), "cuda") {
		return
	}
	out.Reset()
	if err := Run(context.Background(), []string{"-backend", "cuda"}, &out, io.Discard); err == nil || !strings.Contains(err.Error(), "rebuild with -tags cuda") {
		t.Errorf("without CUDA the error is %v", err)
	}
	if !strings.Contains(out.String(), "cuda           NO: ") {
		t.Errorf("doctor does not say that there is no cuda:\n%s", out.String())
	}
}

// wrong is an engine whose products are a little too large.
type wrong struct{ backend.Backend }

func (w wrong) Gemm(dst *tensor.Tensor, transA, transB bool, alpha float64, a, b *tensor.Tensor, beta float64) {
	w.Backend.Gemm(dst, transA, transB, alpha*(1+1e-4), a, b, beta)
}

func TestDoctorSeesErrors(t *testing.T) {
	backend.Register("wrong", func(tensor.Precision) (backend.Backend, error) { return wrong{ref.New()}, nil })
	for name, want := range map[string]string{"wrong": "is wrong: element", "none": "unknown"} {
		if err := check(name, tensor.Float32); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want an error about %q", name, err, want)
		}
	}
}
