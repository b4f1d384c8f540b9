// Package roofline says what an engine's device cannot beat: the least time of some work
// at the rates of bytes, products and launches that are measured on it.
//
//	rates, err := roofline.Measure(be)
//	floor := rates.Floor(work, 1, false, milliseconds)
//
// The work is what the engine's [backend.Meter] counts. What stays in the cache between two
// launches is faster than the copies that the rates are of, so work that bytes bind can
// beat its floor.
//
// Reference: S. Williams et al., Roofline: an insightful visual performance model for
// multicore architectures, CACM 2009.
package roofline

import (
	"math/rand/v2"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// Rates are what an engine's device does at best, measured on it: bytes and flops
// a millisecond, and the milliseconds of a launch, alone and in a recorded step.
type Rates struct{ Bytes, Flops, Launch, Replayed float64 }

// Floor is the least time of some work at the rates of the device: the largest of
// what its bytes, its products and its launches take.
type Floor struct {
	Launches   float64 `json:"launches"`
	MBytes     float64 `json:"mbytes"`
	MFlops     float64 `json:"mflops"`
	BytesMS    float64 `json:"ms_bytes"`
	ProductsMS float64 `json:"ms_products"`
	LaunchesMS float64 `json:"ms_launches"`
	MS         float64 `json:"ms"`
	Binds      string  `json:"binds"` // which is the largest
	Share      float64 `json:"share"` // of the time that was measured
}

// Floor returns the floor of one of several calls, which together did the work w and
// took the given number of milliseconds each.
func (r Rates) Floor(w backend.Work, calls int, replayed bool, took float64) *Floor {
	n := float64(calls)
	f := &Floor{
		Launches: float64(w.Launches) / n, MBytes: float64(w.Bytes) / n / 1e6, MFlops: float64(w.Flops) / n / 1e6,
	}
	launch := r.Launch
	if replayed {
		launch = r.Replayed
	}
	f.BytesMS, f.ProductsMS, f.LaunchesMS = 1e6*f.MBytes/r.Bytes, 1e6*f.MFlops/r.Flops, f.Launches*launch
	f.MS, f.Binds = f.BytesMS, "bytes"
	if f.ProductsMS > f.MS {
		f.MS, f.Binds = f.ProductsMS, "products"
	}
	if f.LaunchesMS > f.MS {
		f.MS, f.Binds = f.LaunchesMS, "launches"
	}
	f.Share = f.MS / took
	return f
}

// Clock times calls that an engine may not have done when they return.
type Clock struct {
	be    backend.Backend
	probe *tensor.Tensor
}

// NewClock returns a clock for an engine. The caller closes it.
func NewClock(be backend.Backend) *Clock { return &Clock{be, be.Alloc(1, 1)} }

// Close frees the clock's memory on the device.
func (c *Clock) Close() { c.be.Free(c.probe) }

func (c *Clock) wait() {
	var v [1]float64
	c.be.Fill(c.probe, 1)
	c.be.Download(v[:], c.probe)
}

// Time returns the milliseconds of a call, averaged over as many in a row as take
// about 30 ms, but at least two.
func (c *Clock) Time(call func()) float64 {
	call()
	c.wait()
	for n := 2; ; n *= 2 {
		start := time.Now()
		for range n {
			call()
		}
		c.wait()
		if took := float64(time.Since(start)) / float64(time.Millisecond); took > 30 {
			return took / float64(n)
		}
	}
}

// rate returns how much of its amount, in a millisecond, a call does on the last of
// the sizes, or on the first that takes 2 ms: large enough that neither
// launches nor caches count, where the device is fast.
func (c *Clock) rate(sizes []int, prepare func(size int) (call func(), amount float64, free func())) (r float64) {
	for _, size := range sizes {
		call, amount, free := prepare(size)
		ms := c.Time(call)
		free()
		if r = amount / ms; ms > 2 {
			break
		}
	}
	return r
}

// randomMatrix returns a matrix of random numbers: constants take less power, and a
// device that is not short of it is faster.
func randomMatrix(be backend.Backend, rows, cols int) *tensor.Tensor {
	v := make([]float32, rows*cols)
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range v {
		v[i] = rng.Float32() - 0.5
	}
	t := be.Alloc(rows, cols)
	be.Upload32(t, v)
	return t
}

// Measure runs copies of up to 64 M elements, products of up to 4096 squared and
// launches that do nothing to speak of.
func Measure(be backend.Backend) (Rates, error) {
	c := NewClock(be)
	defer c.Close()
	free := func(ts ...*tensor.Tensor) func() {
		return func() {
			for _, t := range ts {
				be.Free(t)
			}
		}
	}
	bytes := be.Precision().Bytes()
	var r Rates
	r.Bytes = c.rate([]int{1 << 14, 1 << 18, 1 << 22, 1 << 26}, func(n int) (func(), float64, func()) {
		x, y := be.Alloc(n, 1), be.Alloc(n, 1)
		be.Fill(x, 0.5)
		return func() { be.CopyBlock(y, 0, 0, x, 0, 0, n, 1) }, float64(2 * n * bytes), free(x, y)
	})
	r.Flops = c.rate([]int{128, 512, 2048, 4096}, func(n int) (func(), float64, func()) {
		x, y, z := randomMatrix(be, n, n), randomMatrix(be, n, n), be.Alloc(n, n)
		return func() { be.Gemm(z, false, false, 1, x, y, 0) }, 2 * float64(n) * float64(n) * float64(n), free(x, y, z)
	})
	r.Launch = c.Time(func() { be.Fill(c.probe, 1) })
	const many = 100
	step, err := be.Capture(func() {
		for range many {
			be.Fill(c.probe, 1)
		}
	})
	if err != nil {
		return r, err
	}
	r.Replayed = c.Time(func() {
		if err == nil {
			err = step.Replay()
		}
	}) / many
	if e := step.Close(); err == nil {
		err = e
	}
	return r, err
}
