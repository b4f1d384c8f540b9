package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/specmatch/specmatch/specmatch/setting"
)

// Beta is the weight β of the auxiliary loss in Main + β·Aux: a number or a rule. The zero
// value is the weight 0.
//
// The rule steers β so that ‖β·∇Aux‖ = Ratio·‖∇Main‖ over all parameters. [Minimizer.Step] computes β at
// the first step and at every probed one, and keeps it in between.
type Beta struct {
	Weight float64 // β, if Ratio is 0
	Ratio  float64 // the wanted ‖β·∇Aux‖ / ‖∇Main‖, if above 0
}

// ParseBeta accepts a number of at least 0, or "auto:" and a number above 0.
func ParseBeta(s string) (Beta, error) {
	if text, ok := strings.CutPrefix(s, "auto:"); ok {
		if ratio, err := setting.Positive(text); err == nil {
			return Beta{Ratio: ratio}, nil
		}
	} else if weight, err := setting.Float(0, math.MaxFloat64)(s); err == nil {
		return Beta{Weight: weight}, nil
	}
	return Beta{}, errors.New("want a number of at least 0, or auto:R with R above 0, such as 1 or auto:0.2")
}

// String is the inverse of [ParseBeta].
func (b Beta) String() string {
	if b.Ratio > 0 {
		return fmt.Sprintf("auto:%v", b.Ratio)
	}
	return fmt.Sprint(b.Weight)
}

// MarshalJSON encodes a weight as a number and a rule as a string.
func (b Beta) MarshalJSON() ([]byte, error) {
	if b.Ratio > 0 {
		return json.Marshal(b.String())
	}
	return json.Marshal(b.Weight)
}

// UnmarshalJSON is the inverse of [Beta.MarshalJSON].
func (b *Beta) UnmarshalJSON(data []byte) (err error) {
	*b, err = ParseBeta(strings.Trim(string(data), `"`))
	return err
}
