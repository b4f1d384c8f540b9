package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/shard"
)

// Unit is one part of an experiment. T must survive JSON, see [Do].
type Unit[T any] struct {
	Name   string      // unique in the experiment
	Engine *cli.Engine // opened for Run alone, from its beginning to its end; nil is none
	Run    func(ctx context.Context, be backend.Backend, status Status) (T, error)
	Files  []string // that Run writes in the run directory, by path there
	// With names the unit of an earlier stage whose files this one reads, and which
	// therefore runs in the same shard. "" is none.
	With string
}

// Status sets the text after the progress bar, which says what the unit is doing.
type Status func(format string, args ...any)

// Plan is a list of stages of units. A stage needs the stages before it.
type Plan struct {
	dir    *Dir
	stages []stage
	keys   map[string]int // numbers of units; those that must share a shard have the same
	count  int            // of numbers

	positions map[string]int // of the units
}

// stage is a list of units of one type.
type stage interface {
	names() []string
	run(ctx context.Context, dir *Dir, bar *progress.Bar, keep []int) error
}

type units[T any] struct {
	list    []Unit[T]
	results *[]T
}

// NewPlan returns a plan without units for a run directory.
func NewPlan(dir *Dir) *Plan {
	return &Plan{dir: dir, keys: map[string]int{}, positions: map[string]int{}}
}

// Add adds a stage and returns its results, in the order of the units. They are set when [Plan.Run]
// calls report.
func Add[T any](p *Plan, list []Unit[T]) *[]T {
	results := new([]T)
	for _, u := range list {
		k, ok := p.keys[u.With]
		if !ok {
			k = p.count
			p.count++
		}
		p.keys[u.Name] = k
		p.positions[u.Name] = len(p.positions)
	}
	p.stages = append(p.stages, &units[T]{list, results})
	return results
}

func (s *units[T]) names() (names []string) {
	for _, u := range s.list {
		names = append(names, u.Name)
	}
	return names
}

// run computes the results of the units whose indices are in keep, one on each core.
func (s *units[T]) run(ctx context.Context, dir *Dir, bar *progress.Bar, keep []int) error {
	*s.results = make([]T, len(s.list))
	return Parallel(ctx, runtime.GOMAXPROCS(0), len(keep), func(ctx context.Context, k int) (err error) {
		u := s.list[keep[k]]
		if (*s.results)[keep[k]], err = u.do(ctx, dir, bar); err != nil {
			err = fmt.Errorf("%s: %w", u.Name, err)
		}
		return err
	})
}

// Run computes the results of all units, or of those of the shard with -shard, and calls report,
// unless this is a shard. It first copies finished units from other directories, see [Dir.Absorb].
// The first error ends the run; finished units are kept. Progress goes to stderr, the list of -list
// to stdout.
func (p *Plan) Run(ctx context.Context, stdout, stderr io.Writer, report func() error) error {
	o := p.dir.Output
	for _, dir := range p.sources() {
		if err := p.dir.Absorb(dir, func(unit string) bool {
			k, ok := p.keys[unit]
			return ok && o.Shard.Has(k)
		}, p.unitOf); err != nil {
			return err
		}
	}
	switch {
	case o.List:
		return p.list(stdout)
	case len(o.Collect) > 0:
		if err := p.whole(); err != nil {
			return err
		}
	}
	ran := 0
	for _, s := range p.stages {
		keep := p.shard(s)
		if err := p.runStage(ctx, stderr, s, keep); err != nil {
			return err
		}
		ran += len(keep)
	}
	if err := p.dir.sortMetrics(p.rank); err != nil {
		return err
	}
	if o.Shard != (shard.Shard{}) {
		_, err := fmt.Fprintf(stdout, "%s: shard %v is finished: %d units; repeat without -shard to join all shards\n",
			p.dir.Path, o.Shard, ran)
		return err
	}
	return report()
}

// rank returns the position in the plan of the unit of some rows of metrics.csv; rows of no unit come last.
func (p *Plan) rank(row string) int {
	if position, ok := p.positions[p.unitOf(row)]; ok {
		return position
	}
	return len(p.positions)
}

// unitOf returns the unit that rows under a name of metrics.csv belong to: the one of that name, or the nearest one
// above it, such as seed=0 above seed=0/fold=1; "" if there is none.
func (p *Plan) unitOf(row string) string {
	for {
		if _, ok := p.positions[row]; ok {
			return row
		}
		slash := strings.LastIndexByte(row, '/')
		if slash < 0 {
			return ""
		}
		row = row[:slash]
	}
}

// sources returns the directories that may hold results of this run: the common directory of the
// shards, other shards, and the directories of -collect.
func (p *Plan) sources() []string {
	o := p.dir.Output
	return slices.DeleteFunc(o.directories(), func(dir string) bool {
		return dir == p.dir.Path && !o.List
	}) // not from itself
}

// Remains reports whether a unit is one of this shard and not yet in the run directory. Run may find it in others.
func (p *Plan) Remains(unit string) bool {
	k, ok := p.keys[unit]
	return ok && p.dir.Output.Shard.Has(k) && !p.dir.Done(unit)
}

func (p *Plan) shard(s stage) (keep []int) {
	for i, name := range s.names() {
		if p.dir.Output.Shard.Has(p.keys[name]) {
			keep = append(keep, i)
		}
	}
	return keep
}

// list prints a line for each unit: its name and its measured or estimated time.
func (p *Plan) list(stdout io.Writer) error {
	for _, s := range p.stages {
		names := s.names()
		for _, i := range p.shard(s) {
			seconds, done := p.dir.Seconds(names[i])
			cost := "?"
			switch {
			case done:
				cost = fmt.Sprintf("done in %.1f s", seconds)
			case seconds > 0:
				cost = fmt.Sprintf("about %.1f s", seconds)
			}
			if _, err := fmt.Fprintf(stdout, "%s\t%s\n", names[i], cost); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole returns an error unless all units have a result. It lists the missing units as shards of the
// smallest size.
func (p *Plan) whole() error {
	missing := make([]bool, p.count)
	units := 0
	for _, s := range p.stages {
		for _, name := range s.names() {
			if !p.dir.Done(name) {
				missing[p.keys[name]] = true
				units++
			}
		}
	}
	if units == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d of %d units are missing; run -shard i/%d for i = %s, for example with sbatch "+
		"--array=%[5]s and -shard auto/%[4]d",
		p.dir.Path, units, len(p.keys), p.count, ranges(missing))
}

// ranges formats the indices that are set as Slurm writes job arrays: 0-3,7.
func ranges(set []bool) string {
	var parts []string
	for i := 0; i < len(set); i++ {
		if !set[i] {
			continue
		}
		first := i
		for i+1 < len(set) && set[i+1] {
			i++
		}
		parts = append(parts, fmt.Sprint(first))
		if i > first {
			parts[len(parts)-1] += fmt.Sprint("-", i)
		}
	}
	return strings.Join(parts, ",")
}

func (p *Plan) runStage(ctx context.Context, stderr io.Writer, s stage, keep []int) error {
	if len(keep) == 0 {
		return s.run(ctx, p.dir, nil, nil)
	}
	bar := progress.Start(stderr, progress.Options{
		Label: p.dir.Experiment,
		Unit:  "unit",
		Total: len(keep),
	})
	defer bar.Stop()
	printed := make(chan struct{})
	// The message comes at once, since running units may not stop in time.
	cancelMessage := context.AfterFunc(ctx, func() {
		defer close(printed)
		fmt.Fprintf(bar, "finished units are kept; resume with -out %s\n",
			cmp.Or(p.dir.Output.Dir, p.dir.Path))
	})
	err := s.run(ctx, p.dir, bar, keep)
	if !cancelMessage() {
		<-printed
	}
	return err
}

// Parallel calls run for 0 to n-1 on a number of workers, until the first error.
func Parallel(ctx context.Context, workers, n int, run func(ctx context.Context, k int) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	slots := make(chan struct{}, workers)
	var wg sync.WaitGroup
	for k := range n {
		slots <- struct{}{}
		if ctx.Err() != nil {
			break
		}
		wg.Go(func() {
			if err := run(ctx, k); err != nil {
				cancel(err)
			}
			<-slots
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// do returns the unit's result from the journal, or else runs the unit.
func (u Unit[T]) do(ctx context.Context, dir *Dir, bar *progress.Bar) (result T, err error) {
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	if dir.Done(u.Name) {
		if err = reuse(dir, u.Name, &result, u.Files); err == nil {
			bar.Skip(1)
		}
		return result, err
	}
	bar.Message("%s", u.Name)
	begin := time.Now()
	result, err = u.Compute(ctx, func(format string, args ...any) {
		bar.Message("%s: %s", u.Name, fmt.Sprintf(format, args...))
	})
	if err != nil {
		return result, err
	}
	if err = dir.finish(u.Name, result, u.Files, time.Since(begin)); err == nil {
		bar.Add(1)
	}
	return result, err
}

// Compute opens the engine and runs the unit, without the journal.
func (u Unit[T]) Compute(ctx context.Context, status Status) (result T, err error) {
	var be backend.Backend
	if u.Engine != nil {
		if be, err = u.Engine.Open(); err != nil {
			return result, err
		}
		defer be.Close()
	}
	return u.Run(ctx, be, status)
}
