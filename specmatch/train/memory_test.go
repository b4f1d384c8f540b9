package train

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/tensor"
)

// The control group's limit counts, and what a system says is plausible.
func TestMemory(t *testing.T) {
	if have := Memory(); runtime.GOOS == "linux" && !(have > 1<<28 && have < 1<<50) {
		t.Errorf("this machine has %v bytes", have)
	}
}

func TestFits(t *testing.T) {
	graphs := dataset.Default().Graphs
	chem := func(hidden, layers int) gnn.Architecture {
		return gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: hidden, Layers: layers}
	}
	if err := Fits("cpu", tensor.Float32, chem(300, 5), graphs, 256); err != nil {
		t.Error(err)
	}
	if err := Fits("cpu", tensor.Float32, chem(300, 5), graphs, math.MaxInt); err != nil { // the set is the batch
		t.Error(err)
	}
	for _, a := range []gnn.Architecture{chem(1_000_000_000_000, 5), chem(1_000_000, 5), chem(300, 1_000_000_000), chem(1<<20, 1<<20), chem(100_000, 100)} {
		err := Fits("cpu", tensor.Float32, a, graphs, 256)
		if err == nil {
			t.Errorf("%+v: %v", a, err)
		}
	}
	// Where the device has the memory, it says so itself.
	// Losses of pairs are tiled: a batch of all graphs keeps few similarities.
	many := slices.Repeat(graphs[:1], 60_000)
	if need := training(tensor.Float32, chem(8, 1), many, len(many)); need > 1e9 {
		t.Errorf("%v bytes for a batch of %d small graphs", need, len(many))
	}
	if err := Fits("cuda", tensor.Float32, chem(1_000_000, 5), graphs, 256); err != nil {
		t.Error(err)
	}
	narrow := training(tensor.Float32, chem(300, 5), graphs, 256)
	if wide := training(tensor.Float64, chem(300, 5), graphs, 256); wide != 2*narrow {
		t.Errorf("%v bytes in float64, %v in float32", wide, narrow)
	}
}

func TestSize(t *testing.T) {
	for bytes, want := range map[float64]string{0: "0 bytes", 512: "512 bytes", 999.6e3: "1 MB", 25.3e9: "25.3 GB", 80e12: "80 TB", 1e21: "1e+06 PB"} {
		if got := size(bytes); got != want {
			t.Errorf("%v is %s, want %s", bytes, got, want)
		}
	}
	if err := MemoryFits("a step", 1e18); err == nil || !strings.HasPrefix(err.Error(), "a step needs about 1e+03 PB of memory, but this machine has ") {
		t.Error(err)
	}
}
