package library

import (
	"context"
	"fmt"
	"math"

	"gonum.org/v1/gonum/mathext/prng"
)

// Pick is a molecule that [MaxMin] picks.
type Pick struct {
	Index int
	// Distance is 1 minus the similarity to the most similar earlier pick; 1 for the first one, and for those
	// that were given.
	Distance float64
}

// MaxMin picks count molecules of a set, or all if there are fewer. Each is as different as
// possible from the picks before it: its similarity to the most similar of them is the smallest. Of
// equal ones the first is picked. first are picks to begin with; without any, [FirstPick] gives
// one. It is an error if one of first is not in the set, or is there twice.
//
//	M. Ashton et al., Identification of diverse database subsets using property-based and fragment-based molecular
//	descriptions, Quant. Struct.-Act. Relat. 21 (2002) 598–604.
//
// done, unless nil, is called after each pick.
func MaxMin(
	ctx context.Context, s Set, count int, first []int, seed uint32, done func(picks int),
) ([]Pick, error) {
	n := s.Len()
	if len(first) == 0 && n > 0 {
		first = []int{FirstPick(n, seed)}
	}
	picked := make([]bool, n)
	var picks []Pick
	for _, i := range first {
		if i < 0 || i >= n {
			return nil, fmt.Errorf("library: the first pick %d is not one of %d molecules", i, n)
		}
		if picked[i] {
			return nil, fmt.Errorf("library: molecule %d is picked twice", i)
		}
		picked[i] = true
		picks = append(picks, Pick{i, 1})
	}
	// A molecule's distance to the picks before compared[i] bounds its distance to all of them.
	// Most molecules are rarely compared again, since their bound is below the best distance.
	distance := make([]float64, n)
	for i := range distance {
		distance[i] = math.Inf(1)
	}
	compared := make([]int, n)
	for len(picks) < min(count, n) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		best := Pick{Index: -1, Distance: -1}
		for i := range n {
			for !picked[i] && distance[i] > best.Distance && compared[i] < len(picks) {
				distance[i] = min(distance[i], 1-s.Similarity(i, picks[compared[i]].Index))
				compared[i]++
			}
			if !picked[i] && distance[i] > best.Distance {
				best = Pick{i, distance[i]}
			}
		}
		picked[best.Index] = true
		picks = append(picks, best)
		if done != nil {
			done(1)
		}
	}
	return picks[:min(count, len(picks))], nil
}

// FirstPick returns a random molecule of n, the one that RDKit's pickers begin with for the same seed.
func FirstPick(n int, seed uint32) int {
	if n == 1 { // whose range has 2³² numbers, more than a uint32 holds
		return 0
	}
	source := prng.NewMT19937()
	source.Seed(uint64(seed))
	// The 32-bit numbers are divided into n ranges of equal size; one beyond the last range is drawn again.
	size := uint32(math.MaxUint32 / uint64(n))
	if math.MaxUint32%uint64(n) == uint64(n)-1 {
		size++
	}
	for {
		if i := source.Uint32() / size; i < uint32(n) {
			return int(i)
		}
	}
}
