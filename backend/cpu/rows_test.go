package cpu_test

import (
	"math/rand/v2"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/tensor"
)

// TestRowKeeper: rows are pooled in their order, by any number of workers.
func TestRowKeeper(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		for _, workers := range []int{1, 3} {
			be := cpu.New(p, cpu.Workers(workers))
			keeper := backend.CapabilitiesOf(be).Rows
			for _, shape := range [][3]int{{5, 1, 2}, {40, 7, 9}, {3000, 130, 400}} {
				rows, cols, graphs := shape[0], shape[1], shape[2]
				values := make([]float64, rows*cols)
				for i := range values {
					values[i] = float64(float32(rng.NormFloat64()))
				}
				x, sum, largest := be.Alloc(rows, cols), be.Alloc(graphs, cols), be.Alloc(graphs, cols)
				be.Upload(x, values)
				ptr, list := []int32{0}, []int32{}
				for range graphs {
					for range rng.IntN(30) {
						list = append(list, int32(rng.IntN(rows)))
					}
					ptr = append(ptr, int32(len(list)))
				}
				keeper.PoolRows(sum, largest, x, be.Indices(list), be.Indices(ptr))
				haveSum, haveLargest := make([]float64, graphs*cols), make([]float64, graphs*cols)
				be.Download(haveSum, sum)
				be.Download(haveLargest, largest)
				for i := range haveSum {
					g, wantSum, wantLargest := i/cols, 0., 0.
					for k, row := range list[ptr[g]:ptr[g+1]] {
						v := values[int(row)*cols+i%cols]
						if wantSum += v; p == tensor.Float32 {
							wantSum = float64(float32(wantSum))
						}
						if wantLargest = max(wantLargest, v); k == 0 {
							wantLargest = v
						}
					}
					if haveSum[i] != wantSum || haveLargest[i] != wantLargest {
						t.Fatalf("%v: graph %d: %v and %v, want %v and %v", shape, g, haveSum[i], haveLargest[i], wantSum, wantLargest)
					}
				}
			}
			be.Close()
		}
	}
}
