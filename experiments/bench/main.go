// Command bench times one training step on synthetic graphs, for comparison
// with other implementations of the same work:
//
//	go run ./experiments/bench -workload unsupervised -steps 100 -json
//
// A step is one iteration of a training loop: it augments and collates both views of the next mini-batch,
// runs the model forward, computes the losses L_C + β·L_G and their gradients, and updates the weights
// with Adam. With more than one thread, the next mini-batch is prepared while this one trains, as in the
// experiments; ms_augment is measured separately. The number of threads is GOMAXPROCS.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/backend/roofline"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

func main() { cli.Main(execute) }

var workloads = map[string]workload{
	"unsupervised": {
		stats: dataset.NCI1Like, batch: 512,
		encoder: func(be backend.Backend, rng *rand.Rand) gnn.Encoder {
			return gnn.NewGIN(be, gnn.GINConfig{In: dataset.NCI1Like.Labels, Hidden: 32, Layers: 3}, rng)
		},
	},
	"semisupervised": {
		stats: dataset.NCI1Like, batch: 512,
		encoder: func(be backend.Backend, rng *rand.Rand) gnn.Encoder {
			return gnn.NewResGCN(be, gnn.PaperResGCN(dataset.NCI1Like.Labels), rng)
		},
	},
	"transfer": {
		stats: dataset.ZINCLike, batch: 256,
		encoder: func(be backend.Backend, rng *rand.Rand) gnn.Encoder {
			return gnn.NewChemGIN(be, gnn.ChemGINConfig{Hidden: 300, Layers: 5}, rng)
		},
	},
}

var views = []augment.Augmentation{augment.NodeDropping{Ratio: 0.2}, augment.Subgraph{Ratio: 0.2}}

const learningRate = 1e-3

type workload struct {
	stats   dataset.MoleculeStats
	batch   int
	encoder func(be backend.Backend, rng *rand.Rand) gnn.Encoder
}

func (w workload) model(be backend.Backend) *specmatch.Model {
	rng := random.Stream(0, purposeInit, 0, 0)
	return specmatch.NewModel(be, w.encoder(be, rng), rng)
}

// The random streams of the weights and of the data.
const (
	purposeInit random.Purpose = 1<<32 + iota
	purposeData
)

// result is the line that scripts read. Times are medians.
type result struct {
	Workload        string  `json:"workload"`
	Backend         string  `json:"backend"`
	Precision       string  `json:"precision"`
	Threads         int     `json:"threads"`
	Batch           int     `json:"batch"`
	Nodes           int     `json:"nodes"` // of both views, in the last step
	Recorded        bool    `json:"recorded"`
	StepMS          float64 `json:"ms_per_step"`
	TrainMS         float64 `json:"ms_train"`    // a step on batches that are ready
	DeviceMS        float64 `json:"ms_device"`   // the device's part of it; 0 unless recorded
	DeviceBusy      float64 `json:"device_busy"` // of the time of a step
	AugmentMS       float64 `json:"ms_augment"`
	ForwardMS       float64 `json:"ms_forward"`
	BackwardMS      float64 `json:"ms_backward"`
	OptimizerMS     float64 `json:"ms_optimizer"`
	GraphsPerSecond float64 `json:"graphs_per_second"`
	AllocsPerStep   float64 `json:"allocs_per_step"`
	AllocKBPerStep  float64 `json:"alloc_kb_per_step"` // of the Go heap
	PeakRSSMB       float64 `json:"peak_rss_mb"`       // 0 where the system does not tell
	Loss            float64 `json:"loss"`              // of the last step
	// of ms_device, or of ms_train unless recorded; not of every engine
	Floor *roofline.Floor `json:"floor,omitempty"`

	Losses []float64 `json:"losses,omitempty"` // of the timed steps, with -losses
}

func execute(ctx context.Context, args []string, stdout, _ io.Writer) error {
	engine := cli.Engine{}
	name := "unsupervised"
	steps := 100
	warmup := 10
	batch := 0
	var asJSON, composed, recorded, losses bool
	flags := cli.NewFlagSet("bench", "Times one training step on synthetic graphs.", "-steps 200 -json")
	names := slices.Sorted(maps.Keys(workloads))
	cli.Var(flags, &name, "workload", setting.OneOf(names...),
		"`workload` to time: "+strings.Join(names, ", "))
	cli.Var(flags, &batch, "batch", setting.Int(0), "batch `size`; 0 uses the workload's")
	cli.Var(flags, &steps, "steps", setting.Int(1), "number of `steps` to time")
	cli.Var(flags, &warmup, "warmup", setting.Int(0), "number of `steps` before timing starts")
	flags.BoolVar(&asJSON, "json", asJSON, "print one JSON object")
	flags.BoolVar(&composed, "composed", composed,
		"run every operator by its definition instead of its fused form")
	flags.BoolVar(&recorded, "recorded", recorded,
		"replay recorded steps, as training on a GPU does; their phases are not timed")
	flags.BoolVar(&losses, "losses", losses, "add the loss of every timed step to the JSON")
	flags.Add(&engine)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	if err := train.MemoryFits("storing the times", 5*8*float64(steps)); err != nil {
		return cli.Usagef("-steps %d: %w", steps, err)
	}
	be, err := engine.Open()
	if err != nil {
		return err
	}
	defer be.Close()
	w := workloads[name]
	if batch > 0 {
		w.batch = batch
	}
	if w.batch > 1<<14 {
		return cli.Usagef("-batch %d: want at most %d graphs", w.batch, 1<<14)
	}
	w.stats.Graphs = max(w.stats.Graphs, w.batch)
	var opts []autodiff.Option
	if composed {
		opts = append(opts, autodiff.Composed())
	}
	r, err := measure(ctx, be, w, steps, warmup, recorded, opts)
	if err != nil {
		return err
	}
	r.Workload = name
	if !losses {
		r.Losses = nil
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(r)
	}
	_, err = fmt.Fprintf(
		stdout,
		"%s on %s (%s), %d threads: %.2f ms per step, %.2f on prepared batches (augment %.2f, forward %.2f, "+
			"backward %.2f, update %.2f), %.0f graphs/s, %.0f allocations per step, peak %.0f MB\n",
		r.Workload, r.Backend, r.Precision, r.Threads, r.StepMS, r.TrainMS, r.AugmentMS,
		r.ForwardMS, r.BackwardMS, r.OptimizerMS, r.GraphsPerSecond, r.AllocsPerStep, r.PeakRSSMB,
	)
	return err
}

func measure(
	ctx context.Context,
	be backend.Backend,
	w workload,
	steps, warmup int,
	record bool,
	opts []autodiff.Option,
) (result, error) {
	graphs := w.stats.Generate(random.Stream(0, purposeData, 0, 0))
	o := specmatch.Objective{
		Contrast: specmatch.InfoNCE{Tau: 0.2},
		Match:    specmatch.DefaultLaplacianMatch(),
	}
	o.Beta.Weight = 0.01
	trainer := specmatch.NewTrainer(be, w.model(be), o, learningRate, opts...)
	loader := &augment.Loader{
		Graphs:   graphs,
		Batch:    w.batch,
		DropLast: true,
		Collator: augment.Collator{Views: views},
	}

	step := func(b *graph.Batch) (train.Stats, error) {
		s, err := trainer.Step(b, false)
		return s.Stats, err
	}
	var recorded *specmatch.Recorded
	if record {
		var err error
		recorded, err = specmatch.NewRecorded(trainer)
		if err != nil {
			return result{}, err
		}
		defer recorded.Close()
		step = func(b *graph.Batch) (train.Stats, error) {
			return known(recorded.Step(b))
		}
	}

	r := result{
		Backend:   be.Name(),
		Precision: be.Precision().String(),
		Threads:   runtime.GOMAXPROCS(0),
		Batch:     w.batch,
	}
	if err := r.time(ctx, loader, steps, warmup, step); err != nil {
		return result{}, err
	}
	if recorded != nil {
		stats, err := known(recorded.Last())
		if err != nil {
			return result{}, err
		}
		r.Loss = stats.Loss
	}
	r.AugmentMS = augmentTime(loader, w.batch)
	r.PeakRSSMB = peakRSS()
	meter := backend.CapabilitiesOf(be).Meter
	var work backend.Work
	var err error
	r.TrainMS, r.DeviceMS, work, err = trainingTime(ctx, loader, w.batch, steps, step, recorded, meter)
	if err != nil {
		return result{}, err
	}
	if meter != nil {
		rates, err := roofline.Measure(be)
		if err != nil {
			return result{}, err
		}
		took := r.TrainMS
		if record {
			took = r.DeviceMS
		}
		r.Floor = rates.Floor(work, steps, record, took)
	}
	r.Recorded = record
	r.DeviceBusy = min(1, r.DeviceMS/r.StepMS)
	r.GraphsPerSecond = 1000 * float64(w.batch) / r.StepMS
	return r, nil
}

// time takes steps on the loader's batches, and sets their times, allocations and losses.
func (r *result) time(
	ctx context.Context, l *augment.Loader, steps, warmup int, step func(*graph.Batch) (train.Stats, error),
) error {
	var whole, forward, backward, update []time.Duration
	var before, after runtime.MemStats
	for epoch := 0; len(whole) < steps; epoch++ {
		start := time.Now()
		for _, batch := range l.Epoch(ctx, epoch) {
			if warmup == 0 && len(whole) == 0 {
				runtime.ReadMemStats(&before)
				start = time.Now()
			}
			s, err := step(batch)
			if err != nil {
				return err
			}
			ended := time.Now()
			if warmup > 0 {
				warmup--
			} else {
				whole = append(whole, ended.Sub(start))
				forward = append(forward, s.Forward)
				backward = append(backward, s.Backward)
				update = append(update, s.Update)
				r.Losses = append(r.Losses, s.Loss)
				r.Loss = s.Loss
				r.Nodes = batch.Nodes()
			}
			start = ended
			if len(whole) == steps {
				break
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	runtime.ReadMemStats(&after)
	r.StepMS = median(whole)
	r.ForwardMS = median(forward)
	r.BackwardMS = median(backward)
	r.OptimizerMS = median(update)
	r.AllocsPerStep = float64(after.Mallocs-before.Mallocs) / float64(steps)
	r.AllocKBPerStep = float64(after.TotalAlloc-before.TotalAlloc) / float64(steps) / 1e3
	return nil
}

// known returns the stats of a recorded step, or zeros if there are none yet.
func known(s *train.Stats, err error) (train.Stats, error) {
	if s == nil {
		s = new(train.Stats)
	}
	return *s, err
}

// trainingTime returns the mean time of a step on batches that are ready and, if
// steps are recorded, of the device's part; and the work of all steps, if there is a
// meter.
func trainingTime(
	ctx context.Context,
	l *augment.Loader,
	batch, steps int,
	step func(*graph.Batch) (train.Stats, error),
	r *specmatch.Recorded,
	meter backend.Meter,
) (host, device float64, work backend.Work, err error) {
	ready := make([]*graph.Batch, 8)
	samples := make([]int, batch)
	for k := range ready {
		for i := range samples {
			samples[i] = (k*batch + i) % len(l.Graphs)
		}
		ready[k] = new(graph.Batch)
		l.Collator.Collate(ready[k], l.Graphs, samples, k)
		if _, err := step(ready[k]); err != nil { // records what is new
			return 0, 0, work, err
		}
	}
	mean := func(run func() error) (float64, error) {
		var before backend.Work
		if meter != nil {
			before = meter.Work()
		}
		start := time.Now()
		err := run()
		took := float64(time.Since(start)) / float64(time.Millisecond) / float64(steps)
		if meter != nil {
			work = meter.Work()
			work.Add(-1, before)
		}
		return took, err
	}
	host, err = mean(func() error {
		for k := range steps {
			if err := ctx.Err(); err != nil {
				return err
			}
			if _, err := step(ready[k%len(ready)]); err != nil {
				return err
			}
		}
		if r != nil {
			_, err := r.Last()
			return err
		}
		return nil
	})
	if err != nil || r == nil {
		return host, 0, work, err
	}
	device, err = mean(func() error { return r.Again(steps) })
	return host, device, work, err
}

// augmentTime is the median time to augment and collate one mini-batch on one
// thread.
func augmentTime(l *augment.Loader, batch int) float64 {
	samples := make([]int, batch)
	b := new(graph.Batch)
	c := augment.Collator{Views: l.Collator.Views, Workers: 1}
	var times []time.Duration
	for k := range 50 {
		for i := range samples {
			samples[i] = (k*batch + i) % len(l.Graphs)
		}
		start := time.Now()
		c.Collate(b, l.Graphs, samples, k)
		times = append(times, time.Since(start))
	}
	return median(times)
}

func median(d []time.Duration) float64 {
	return float64(slices.Sorted(slices.Values(d))[len(d)/2]) / float64(time.Millisecond)
}

// peakRSS returns the largest resident set of the process so far, in MB; 0 where the system
// does not tell.
func peakRSS() (mb float64) {
	text, _ := os.ReadFile("/proc/self/status")
	_, kilobytes, _ := strings.Cut(string(text), "VmHWM:")
	fmt.Sscan(kilobytes, &mb)
	return mb / 1024
}
