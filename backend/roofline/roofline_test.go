package roofline

import (
	"math"
	"testing"

	"github.com/specmatch/specmatch/backend"
)

// TestFloor: the largest part is the floor, of one call.
func TestFloor(t *testing.T) {
	r := Rates{Bytes: 1e6, Flops: 1e9, Launch: 0.01, Replayed: 0.002}
	for _, c := range []struct {
		work     backend.Work
		replayed bool
		ms       float64
		binds    string
	}{
		{backend.Work{Launches: 20, Bytes: 4e6, Flops: 2e9}, false, 2, "bytes"},
		{backend.Work{Launches: 20, Bytes: 4e6, Flops: 10e9}, false, 5, "products"},
		{backend.Work{Launches: 800, Bytes: 4e6, Flops: 2e9}, false, 4, "launches"},
		{backend.Work{Launches: 800, Bytes: 1e6, Flops: 1e9}, true, 0.8, "launches"},
	} {
		f := r.Floor(c.work, 2, c.replayed, 10)
		if math.Abs(f.MS-c.ms) > 1e-12 || f.Binds != c.binds || math.Abs(f.Share-c.ms/10) > 1e-12 {
			t.Errorf("%+v, replayed %v: %+v, want %v ms bound by %s", c.work, c.replayed, f, c.ms, c.binds)
		}
	}
}
