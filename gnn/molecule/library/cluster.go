package library

import (
	"cmp"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// Butina divides a set into clusters. Neighbours are molecules whose similarity is at least least.
// The molecule with the most of them is the centre of the first cluster, which takes them; then
// that of the remaining ones with the most, and so on. Numbers of neighbours are those in the whole
// set, and of equal ones the last molecule is first, as in RDKit. Each cluster begins with its
// centre, and has the others by ascending index.
//
//	D. Butina, Unsupervised data base clustering based on Daylight's fingerprint and Tanimoto similarity,
//	J. Chem. Inf. Comput. Sci. 39 (1999) 747–750.
//
// done, unless nil, is called after some molecules have been compared with all before them.
func Butina(
	ctx context.Context, s Set, least float64, done func(molecules int),
) (clusters [][]int, err error) {
	neighbours, err := findNeighbours(ctx, s, least, done)
	if err != nil {
		return nil, err
	}
	order := make([]int, s.Len())
	for i := range order {
		order[i] = len(order) - 1 - i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Compare(len(neighbours[b]), len(neighbours[a]))
	})
	taken := make([]bool, s.Len())
	for _, centre := range order {
		if taken[centre] {
			continue
		}
		taken[centre] = true
		cluster := []int{centre}
		for _, j := range neighbours[centre] {
			if !taken[j] {
				taken[j] = true
				cluster = append(cluster, int(j))
			}
		}
		clusters = append(clusters, cluster)
	}
	return clusters, nil
}

// findNeighbours returns the neighbours of each molecule by ascending index.
func findNeighbours(ctx context.Context, s Set, least float64, done func(int)) ([][]int32, error) {
	before := make([][]int32, s.Len()) // of each molecule, those with a smaller index
	err := parallel(ctx, s.Len(), done, func(i int) {
		s.neighbours(i, least, func(j int, _ float64) { before[i] = append(before[i], int32(j)) })
	})
	if err != nil {
		return nil, err
	}
	counts := make([]int, s.Len())
	for i, list := range before {
		counts[i] += len(list)
		for _, j := range list {
			counts[j]++
		}
	}
	neighbours := make([][]int32, s.Len())
	for i, list := range before {
		neighbours[i] = append(make([]int32, 0, counts[i]), list...)
		for _, j := range list {
			neighbours[j] = append(neighbours[j], int32(i))
		}
	}
	return neighbours, nil
}

// block is the number of molecules that a goroutine takes at a time.
const block = 64

// parallel calls work for 0 to n-1 on all processors, and done with the number of calls after some
// of them, one call of done after the other. It returns the error of ctx, if that ends it.
func parallel(ctx context.Context, n int, done func(int), work func(i int)) error {
	var next atomic.Int64
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), n/block+1) {
		workers.Go(func() {
			for ctx.Err() == nil {
				begin := int(next.Add(block)) - block
				end := min(begin+block, n)
				if begin >= n {
					return
				}
				for i := begin; i < end; i++ {
					work(i)
				}
				if done != nil {
					mu.Lock()
					done(end - begin)
					mu.Unlock()
				}
			}
		})
	}
	workers.Wait()
	return ctx.Err()
}

// Group divides molecules by a key of each, such as its scaffold: the largest group first, and of
// equal ones that with the first molecule.
func Group(keys []string) (groups [][]int) {
	places := map[string]int{}
	for i, key := range keys {
		place, ok := places[key]
		if !ok {
			place = len(groups)
			places[key] = place
			groups = append(groups, nil)
		}
		groups[place] = append(groups[place], i)
	}
	slices.SortStableFunc(groups, func(a, b []int) int { return cmp.Compare(len(b), len(a)) })
	return groups
}
