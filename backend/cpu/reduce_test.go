package cpu

import (
	"testing"

	"github.com/specmatch/specmatch/tensor"
)

// TestLongSegments: no segment falls between those that are summed whole and those
// that are summed in chunks.
func TestLongSegments(t *testing.T) {
	const cols = 64
	be := New(tensor.Float64)
	lengths := []int{longSegment/cols - 1, longSegment / cols, longSegment/cols + 1}
	ptr := []int32{0}
	for _, n := range lengths {
		ptr = append(ptr, ptr[len(ptr)-1]+int32(n))
	}
	x, sums := be.Alloc(int(ptr[3]), cols), be.Alloc(3, cols)
	be.Fill(x, 1)
	be.Fill(sums, -1)
	be.SegmentSum(sums, be.Indices(ptr), x)
	got := make([]float64, sums.Len())
	be.Download(got, sums)
	for i, v := range got {
		if want := float64(lengths[i/cols]); v != want {
			t.Fatalf("element (%d, %d) is %v, want %v", i/cols, i%cols, v, want)
		}
	}
}
