package model

import (
	"encoding/binary"
	"math"
)

// Residuals are the errors of a model on records that it was not trained on, so that models can be compared on
// those that several of them have. Package finetune makes them.
type Residuals struct {
	Keys []uint32 `json:"keys"` // of the records
	// Errors [n×tasks] are the predictions less the answers on the scale of the task, as float32; NaN without
	// an answer.
	Errors []byte `json:"errors"`
}

// NewResiduals returns the residuals of records with these keys; errors are [n×tasks].
func NewResiduals(keys []uint32, errors []float64) *Residuals {
	r := &Residuals{Keys: keys}
	for _, v := range errors {
		r.Errors = binary.LittleEndian.AppendUint32(r.Errors, math.Float32bits(float32(v)))
	}
	return r
}

// error returns the error of a task on the i-th record.
func (r *Residuals) error(i, task int) float64 {
	tasks := len(r.Errors) / 4 / len(r.Keys)
	start := 4 * (i*tasks + task)
	return float64(math.Float32frombits(binary.LittleEndian.Uint32(r.Errors[start : start+4])))
}

// doubt is how many records more are as good as seen on which models err alike.
const doubt = 2

// meanFactor returns how large the errors of the mean prediction of some models are for a task, as a part of
// those of one of them: √((1+(n-1)·ρ)/n) for n models whose errors have the correlation ρ about 0. It is 1
// where no record tells ρ.
func meanFactor(task int, calibrations []*Calibration) float64 {
	products := 0.0
	squares := 0.0
	count := 0.0
	for k, c := range calibrations {
		if c.Residuals == nil {
			return 1
		}
		places := map[uint32]int{}
		for i, key := range c.Residuals.Keys {
			places[key] = i
		}
		for _, earlier := range calibrations[:k] {
			for j, key := range earlier.Residuals.Keys {
				i, ok := places[key]
				if !ok {
					continue
				}
				a := c.Residuals.error(i, task)
				b := earlier.Residuals.error(j, task)
				if math.IsNaN(a + b) {
					continue
				}
				products += a * b
				squares += (a*a + b*b) / 2
				count++
			}
		}
	}
	if squares == 0 {
		return 1
	}
	alike := doubt * squares / count
	correlation := (products + alike) / (squares + alike)
	n := float64(len(calibrations))
	return math.Sqrt(max(0, (1+(n-1)*correlation)/n))
}
