package dataset

import (
	"fmt"
	"slices"
)

// Split is a division of the samples 0..n-1 into three parts.
type Split struct {
	Train, Valid, Test []int
}

// ScaffoldSplit divides molecules so that those of one scaffold stay together:
// the test set then holds scaffolds that training has not seen. scaffolds[i]
// identifies that of molecule i; train and valid are the shares of the parts,
// 0.8 and 0.1 in the literature.
//
// Groups of equal scaffold are taken from the largest to the smallest, of those
// of one size the one with the last first member first. Each goes to Train if
// that stays within its share, otherwise to Valid if both together stay within
// theirs, otherwise to Test. Nothing is random. Parts list their groups in the
// order they came. It is the split of Hu et al. (2020), index by index.
//
// It is an error if a share is negative or both together exceed 1.
func ScaffoldSplit[S comparable](scaffolds []S, train, valid float64) (Split, error) {
	if !(train >= 0 && valid >= 0 && train+valid <= 1+1e-9) {
		return Split{}, fmt.Errorf("dataset: ScaffoldSplit: shares %v and %v; want two that are not negative and at most 1 together", train, valid)
	}
	index := make(map[S]int)
	var groups [][]int
	for i, s := range scaffolds {
		g, ok := index[s]
		if !ok {
			g = len(groups)
			index[s] = g
			groups = append(groups, nil)
		}
		groups[g] = append(groups[g], i)
	}
	slices.SortFunc(groups, func(a, b []int) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return b[0] - a[0]
	})
	n := float64(len(scaffolds))
	var s Split
	for _, g := range groups {
		switch {
		case float64(len(s.Train)+len(g)) <= train*n:
			s.Train = append(s.Train, g...)
		case float64(len(s.Train)+len(s.Valid)+len(g)) <= (train+valid)*n:
			s.Valid = append(s.Valid, g...)
		default:
			s.Test = append(s.Test, g...)
		}
	}
	return s, nil
}
