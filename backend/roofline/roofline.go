// Package roofline bounds the time of a piece of work from below, by the rates of bytes,
// products and launches measured on an engine's device.
//
//	rates, err := roofline.Measure(be)
//	floor := rates.Floor(work, 1, false, milliseconds)
//
// The engine's [backend.Meter] counts the work. Data that stays in cache between two
// launches moves faster than the copies that give the rate, so work bound by bytes can
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

// Rates are the best rates of an engine's device, as measured.
type Rates struct {
	Bytes    float64 // a millisecond
	Flops    float64 // a millisecond
	Launch   float64 // milliseconds of a launch by itself
	Replayed float64 // milliseconds of a launch in a recorded step
}

// Floor is a lower bound on the time of some work: the largest of the times that its
// bytes, its products and its launches take at the rates of the device.
type Floor struct {
	Launches   float64 `json:"launches"`
	MBytes     float64 `json:"mbytes"`
	MFlops     float64 `json:"mflops"`
	BytesMS    float64 `json:"ms_bytes"`
	ProductsMS float64 `json:"ms_products"`
	LaunchesMS float64 `json:"ms_launches"`
	MS         float64 `json:"ms"`
	Binds      string  `json:"binds"` // the largest: "bytes", "products" or "launches"
	Share      float64 `json:"share"` // MS / measured time
}

// Floor returns the floor of one call out of several, which together did the work w.
// Each took the given number of milliseconds.
func (r Rates) Floor(
	w backend.Work, calls int, replayed bool, took float64,
) *Floor {
	n := float64(calls)
	launch := r.Launch
	if replayed {
		launch = r.Replayed
	}
	f := &Floor{
		Launches: float64(w.Launches) / n,
		MBytes:   float64(w.Bytes) / n / 1e6,
		MFlops:   float64(w.Flops) / n / 1e6,
	}
	f.BytesMS = 1e6 * f.MBytes / r.Bytes
	f.ProductsMS = 1e6 * f.MFlops / r.Flops
	f.LaunchesMS = f.Launches * launch
	f.MS = max(f.BytesMS, f.ProductsMS, f.LaunchesMS)
	switch f.MS {
	case f.BytesMS:
		f.Binds = "bytes"
	case f.ProductsMS:
		f.Binds = "products"
	default:
		f.Binds = "launches"
	}
	f.Share = f.MS / took
	return f
}

// Clock times calls that may return before the engine has done their work.
type Clock struct {
	be    backend.Backend
	probe *tensor.Tensor
}

// NewClock returns a clock for an engine. The caller closes it.
func NewClock(be backend.Backend) *Clock {
	return &Clock{be, be.Alloc(1, 1)}
}

// Close frees the clock's memory on the device.
func (c *Clock) Close() {
	c.be.Free(c.probe)
}

// wait returns once the engine has done everything that it was given.
func (c *Clock) wait() {
	var v [1]float64
	c.be.Fill(c.probe, 1)
	c.be.Download(v[:], c.probe)
}

// Time returns the milliseconds of a call: the mean over two or more calls in a row that
// together take over 30 ms.
func (c *Clock) Time(call func()) float64 {
	call()
	c.wait()
	for n := 2; ; n *= 2 {
		start := time.Now()
		for range n {
			call()
		}
		c.wait()
		took := float64(time.Since(start)) / float64(time.Millisecond)
		if took > 30 {
			return took / float64(n)
		}
	}
}

// job is a call that does an amount of work on tensors.
type job struct {
	call    func()
	amount  float64
	tensors []*tensor.Tensor
}

// rate returns the amount that a job does in a millisecond, and frees the tensors. It
// takes the first size that needs over 2 ms, where launches and caches hardly count, or
// else the last size.
func (c *Clock) rate(sizes []int, prepare func(size int) job) (perMS float64) {
	for _, size := range sizes {
		j := prepare(size)
		ms := c.Time(j.call)
		for _, t := range j.tensors {
			c.be.Free(t)
		}
		perMS = j.amount / ms
		if ms > 2 {
			break
		}
	}
	return perMS
}

// randomMatrix returns a matrix of random numbers. Constants would take less power, and
// a device that is not limited by power is faster.
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

// Measure measures the rates of an engine's device: copies of up to 64 M elements,
// products of up to 4096 squared, and launches that do almost nothing.
func Measure(be backend.Backend) (Rates, error) {
	c := NewClock(be)
	defer c.Close()
	bytes := be.Precision().Bytes()
	var r Rates
	r.Bytes = c.rate([]int{1 << 14, 1 << 18, 1 << 22, 1 << 26},
		func(n int) job {
			x := be.Alloc(n, 1)
			y := be.Alloc(n, 1)
			be.Fill(x, 0.5)
			return job{
				call: func() {
					be.CopyBlock(y, 0, 0, x, 0, 0, n, 1)
				},
				amount:  float64(2 * n * bytes),
				tensors: []*tensor.Tensor{x, y},
			}
		})
	r.Flops = c.rate([]int{128, 512, 2048, 4096}, func(n int) job {
		x := randomMatrix(be, n, n)
		y := randomMatrix(be, n, n)
		z := be.Alloc(n, n)
		return job{
			call: func() {
				be.Gemm(z, false, false, 1, x, y, 0)
			},
			amount:  2 * float64(n) * float64(n) * float64(n),
			tensors: []*tensor.Tensor{x, y, z},
		}
	})
	r.Launch = c.Time(func() {
		be.Fill(c.probe, 1)
	})
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
