package memory

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/tensor"
)

func TestAvailable(t *testing.T) {
	const meminfo = "Buffers: 1 kB\nMemTotal:       16000000 kB\nMemFree: 5 kB\n"
	for _, c := range []struct {
		name  string
		files map[string]string
		want  float64
	}{
		{"a system that does not tell", nil, unknown},
		{"a machine", map[string]string{"proc/meminfo": meminfo}, 16384e6},
		{"no limit", map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "max\n"}, 16384e6},
		{"a container", map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "1000000000\n"}, 1e9},
		{"version 1, no limit", map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 16384e6},
		{"a job within a slice", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "0::/slice/job\n",
			"sys/fs/cgroup/slice/job/memory.max": "max\n", "sys/fs/cgroup/slice/memory.max": "2000000000\n",
		}, 2e9},
		{"version 1, a job", map[string]string{
			"proc/meminfo": meminfo, "proc/self/cgroup": "3:cpu,cpuacct:/x\n5:memory:/job\n",
			"sys/fs/cgroup/memory/job/memory.limit_in_bytes": "3000000000\n",
		}, 3e9},
	} {
		root := t.TempDir()
		for name, text := range c.files {
			path := filepath.Join(root, name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		if got := available(root); got != c.want {
			t.Errorf("%s: %v bytes, want %v", c.name, got, c.want)
		}
	}
	if have := Available(); runtime.GOOS == "linux" && !(have > 1<<28 && have < 1<<50) {
		t.Errorf("this machine has %v bytes", have)
	}
}

func TestTrainingFits(t *testing.T) {
	graphs := dataset.Default().Graphs
	cpu := cli.Engine{Backend: "cpu"}
	chem := func(hidden, layers int) gnn.Architecture {
		return gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: hidden, Layers: layers}
	}
	if err := TrainingFits("-hidden 300", cpu, chem(300, 5), graphs, 256); err != nil {
		t.Error(err)
	}
	if err := TrainingFits("-batch", cpu, chem(300, 5), graphs, math.MaxInt); err != nil { // the set is the batch
		t.Error(err)
	}
	for _, a := range []gnn.Architecture{chem(1_000_000_000_000, 5), chem(1_000_000, 5), chem(300, 1_000_000_000), chem(1<<20, 1<<20), chem(100_000, 100)} {
		err := TrainingFits("-hidden", cpu, a, graphs, 256)
		var usage *cli.UsageError
		if !errors.As(err, &usage) || !strings.HasPrefix(err.Error(), "-hidden: ") {
			t.Errorf("%+v: %v", a, err)
		}
	}
	// Where the device has the memory, it says so itself.
	if err := TrainingFits("-hidden", cli.Engine{Backend: "cuda"}, chem(1_000_000, 5), graphs, 256); err != nil {
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
	if err := Fits("-batch 7", "a step", 1e18); err == nil || !strings.HasPrefix(err.Error(), "-batch 7: a step needs about 1e+03 PB of memory, and this machine has ") {
		t.Error(err)
	}
}
