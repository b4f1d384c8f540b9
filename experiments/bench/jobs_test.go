//go:build unix

package main

import (
	"context"
	"flag"
	"fmt"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A job is what a user starts and waits for, here and in another implementation. Both are
// commands, split at blanks. The first word of ours is specmatch or a program of experiments;
// PYTHON, DATA, OUT and THREADS stand for the flags, an empty directory and the threads.
type job struct {
	name       string
	ours, peer string
}

// least is as little fine-tuning as there can be, where pre-training is timed.
const least = "-finetune-epochs 1 -folds 3 -protocol val"

var jobs = []job{
	{"SpecMatch-CL on NCI1, one seed, both protocols",
		"unsupervised -dataset NCI1 -data DATA -out OUT -method specmatch -seeds 1",
		"PYTHON peer/jobs.py unsupervised --dataset NCI1 --data DATA --threads THREADS"},
	{"SpecMatch-CL on NCI1, one seed, linear protocol",
		"unsupervised -dataset NCI1 -data DATA -out OUT -method specmatch -seeds 1 -protocol linear",
		"PYTHON peer/jobs.py unsupervised --dataset NCI1 --data DATA --threads THREADS --protocols linear"},
	{"five epochs of pre-training a ResGCN, NCI1",
		"semisupervised -dataset NCI1 -data DATA -out OUT -method specmatch -policy dropN,subgraph -seeds 1 -epochs 5 " + least,
		"PYTHON peer/jobs.py pretrain --epochs 5 --dataset NCI1 --data DATA --threads THREADS"},
	{"five epochs of pre-training a ResGCN, DD",
		"semisupervised -dataset DD -data DATA -out OUT -method specmatch -policy dropN,subgraph -seeds 1 -epochs 5 " + least,
		"PYTHON peer/jobs.py pretrain --epochs 5 --dataset DD --data DATA --threads THREADS"},
	{"fine-tuning one of ten folds, 100 epochs, NCI1",
		"semisupervised -dataset NCI1 -data DATA -out OUT -method none -protocol val -seeds 1 -shard 0/10",
		"PYTHON peer/jobs.py finetune --dataset NCI1 --data DATA --threads THREADS"},
	{"fine-tuning one of ten folds, 100 epochs, DD",
		"semisupervised -dataset DD -data DATA -out OUT -method none -protocol val -seeds 1 -shard 0/10",
		"PYTHON peer/jobs.py finetune --dataset DD --data DATA --threads THREADS"},
	// zinc20k.csv has the first 20,000 rows of zinc250k.csv, as head -n 20001 writes them.
	{"an epoch of pre-training a chem GIN, 20,000 of ZINC",
		"transfer -corpus DATA/zinc20k.csv -method specmatch -seeds 1 -epochs 1 -out OUT",
		"PYTHON peer/molecules.py pretrain --smiles DATA/zinc20k.csv --threads THREADS"},
	{"the same with bf16, 20,000 of ZINC",
		"transfer -bf16 -corpus DATA/zinc20k.csv -method specmatch -seeds 1 -epochs 1 -out OUT",
		"PYTHON peer/molecules.py pretrain --smiles DATA/zinc20k.csv --threads THREADS"},
	{"vectors of 20,000 of ZINC",
		"specmatch embed -in DATA/zinc20k.csv -out OUT/x.npy",
		"PYTHON peer/molecules.py embed --smiles DATA/zinc20k.csv --out OUT/x.npy --threads THREADS"},
	{"vectors of 250,000 of ZINC",
		"specmatch embed -in DATA/zinc250k.csv -out OUT/x.npy",
		"PYTHON peer/molecules.py embed --smiles DATA/zinc250k.csv --out OUT/x.npy --threads THREADS"},
	// chemprop.pt is what chemprop train leaves, with its defaults.
	{"vectors of 20,000 of ZINC by chemprop",
		"specmatch embed -in DATA/zinc20k.csv -out OUT/x.npy",
		"chemprop fingerprint --accelerator cpu --test-path DATA/zinc20k.csv --model-paths DATA/chemprop.pt --ffn-block-index 0 --output OUT/x.npz"},
}

var (
	python  = flag.String("python", "", "`command` of the Python that runs the peers of PeerJob")
	jobData = flag.String("data", "", "`DIR` with the data sets of PeerJob, an absolute path")
)

// BenchmarkPeerJob times whole jobs in turn with their peers and prints rows of a table:
//
//	go test -run '^$' -bench 'PeerJob/NCI1' -cpu 1 -benchtime 3x -timeout 0 ./experiments/bench -python python3 -data DIR
//
// Processor time and memory are what the system says of the processes.
func BenchmarkPeerJob(b *testing.B) {
	if *python == "" || *jobData == "" {
		b.Skip("without -python and -data there is nothing to compare with")
	}
	programs := b.TempDir()
	for i, j := range jobs {
		b.Run(j.name, func(b *testing.B) {
			threads := runtime.GOMAXPROCS(0)
			rounds, err := j.run(b.Context(), programs, threads, b.Loop, b.TempDir)
			if err != nil {
				b.Fatal(err)
			}
			header := ""
			if i == 0 {
				header = jobHeader
			}
			b.ReportMetric(0, "ns/op") // of a round: says nothing
			fmt.Printf("\n%s| %s | %d | %s |\n", header, j.name, threads, jobRow(rounds))
		})
	}
}

// jobHeader is that of the table whose rows end as jobRow says.
const jobHeader = `| job | threads | specmatch, s | processor, s | MB | peer, s | processor, s | MB | ratio | of processor time |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
`

// jobRow has the medians of both sides and of the ratios.
func jobRow(rounds [][2]cost) string {
	median := func(of func(r [2]cost) float64) float64 {
		var x []float64
		for _, r := range rounds {
			x = append(x, of(r))
		}
		return medianOf(x)
	}
	wall, processor, peak := [2]float64{}, [2]float64{}, [2]float64{}
	for side := range 2 {
		wall[side] = median(func(r [2]cost) float64 { return r[side].wall })
		processor[side] = median(func(r [2]cost) float64 { return r[side].processor })
		peak[side] = median(func(r [2]cost) float64 { return r[side].peak })
	}
	return fmt.Sprintf("%.1f | %.1f | %.0f | %.1f | %.1f | %.0f | %.2f | %.2f",
		wall[0], processor[0], peak[0], wall[1], processor[1], peak[1],
		median(func(r [2]cost) float64 { return r[1].wall / r[0].wall }),
		median(func(r [2]cost) float64 { return r[1].processor / r[0].processor }))
}

// packageOf returns the package of a program.
func packageOf(program string) string {
	folder := "experiments"
	if program == "specmatch" {
		folder = "specmatch/cmd"
	}
	return path.Join("github.com/specmatch/specmatch", folder, program)
}

// TestJobPrograms: the programs of the jobs exist.
func TestJobPrograms(t *testing.T) {
	for _, j := range jobs {
		program := packageOf(strings.Fields(j.ours)[0])
		if text, err := exec.CommandContext(t.Context(), "go", "list", program).CombinedOutput(); err != nil {
			t.Errorf("%s: %s", j.name, text)
		}
	}
}

// run runs both sides in turn while next returns true.
func (j job) run(
	ctx context.Context, programs string, threads int, next func() bool, empty func() string,
) (rounds [][2]cost, err error) {
	ours := strings.Fields(j.ours)
	build := exec.CommandContext(ctx, "go", "build", "-o", programs, packageOf(ours[0]))
	if text, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w: %s", build, err, text)
	}
	ours[0] = filepath.Join(programs, ours[0])
	for next() {
		var round [2]cost
		for side, command := range [][]string{ours, strings.Fields(j.peer)} {
			put := strings.NewReplacer("PYTHON", *python, "DATA", *jobData, "OUT", empty(), "THREADS", fmt.Sprint(threads))
			command = slices.Clone(command)
			for i := range command {
				command[i] = put.Replace(command[i])
			}
			if round[side], err = measureCommand(ctx, command, threads); err != nil {
				return nil, err
			}
		}
		rounds = append(rounds, round)
	}
	return rounds, nil
}

// cost is what a process took: seconds, seconds of processor time, MB at most.
type cost struct{ wall, processor, peak float64 }

func measureCommand(ctx context.Context, command []string, threads int) (cost, error) {
	c := exec.CommandContext(ctx, command[0], command[1:]...)
	c.Env = append(c.Environ(), fmt.Sprint("GOMAXPROCS=", threads))
	began := time.Now()
	if text, err := c.CombinedOutput(); err != nil {
		return cost{}, fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, text)
	}
	s := c.ProcessState
	unit := 1024.0 // bytes
	if runtime.GOOS == "darwin" {
		unit = 1
	}
	peak := float64(s.SysUsage().(*syscall.Rusage).Maxrss) * unit / (1 << 20)
	return cost{time.Since(began).Seconds(), (s.UserTime() + s.SystemTime()).Seconds(), peak}, nil
}

// TestPeerJob: what a command takes is known, and what it says when it fails.
func TestPeerJob(t *testing.T) {
	busy, loop := cost{}, "i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done"
	for try := 0; try < 3 && busy.processor < 0.01; try++ {
		var err error
		if busy, err = measureCommand(t.Context(), []string{"sh", "-c", loop}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if busy.processor < 0.01 || busy.wall <= 0 || busy.peak < 0.1 || busy.peak > 1e4 {
		t.Errorf("%+v", busy)
	}
	_, err := measureCommand(t.Context(), []string{"sh", "-c", "echo no torch >&2; exit 1"}, 1)
	if err == nil || !strings.Contains(err.Error(), "no torch") {
		t.Errorf("%v", err)
	}
	rows := [][2]cost{{{2, 1, 100}, {6, 4, 200}}, {{2, 1, 100}, {4, 4, 200}}, {{4, 2, 110}, {9, 6, 190}}}
	if got, want := jobRow(rows), "2.0 | 1.0 | 100 | 6.0 | 4.0 | 200 | 2.25 | 4.00"; got != want {
		t.Errorf("row %s, want %s", got, want)
	}
}
