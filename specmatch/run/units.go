package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/shard"
)

// Unit is one part of an experiment. T must survive JSON, see [Do].
type Unit[T any] struct {
	Name  string // unique in the experiment
	Run   func(ctx context.Context, status Status) (T, error)
	Files []string // that Run writes in the run directory, by path there
	// With names the unit of an earlier stage that must run in the same directory,
	// because this one reads its files: both are in the same shard. "" is none.
	With string
}

// OnEngine returns the Run of a unit that has an engine to itself, from its beginning
// to its end.
func OnEngine[T any](
	e cli.Engine, run func(ctx context.Context, be backend.Backend, status Status) (T, error),
) func(context.Context, Status) (T, error) {
	return func(ctx context.Context, status Status) (result T, err error) {
		be, err := e.Open()
		if err != nil {
			return result, err
		}
		defer be.Close()
		return run(ctx, be, status)
	}
}

// Status shows what a unit is doing, as text after the progress bar.
type Status func(format string, args ...any)

// Plan is the units of an experiment in stages, each of which needs those before it.
type Plan struct {
	dir    *Dir
	stages []stage
	keys   map[string]int // the units that share directories have one number
	count  int            // of keys
}

type stage struct {
	names []string
	run   func(ctx context.Context, bar *progress.Bar, keep []int) error
}

// NewPlan returns a plan without units for a run directory.
func NewPlan(dir *Dir) *Plan { return &Plan{dir: dir, keys: map[string]int{}} }

// Add adds a stage and returns its results, in the order of the units, which are there
// when the report of [Plan.Run] is written.
func Add[T any](p *Plan, list []Unit[T]) *[]T {
	results := new([]T)
	s := stage{run: func(ctx context.Context, bar *progress.Bar, keep []int) error {
		*results = make([]T, len(list))
		return Parallel(ctx, runtime.GOMAXPROCS(0), len(keep), func(ctx context.Context, k int) (err error) {
			u := list[keep[k]]
			(*results)[keep[k]], err = do(ctx, p.dir, bar, u)
			if err != nil {
				err = fmt.Errorf("%s: %w", u.Name, err)
			}
			return err
		})
	}}
	for _, u := range list {
		s.names = append(s.names, u.Name)
		k, ok := p.keys[u.With]
		if !ok {
			k = p.count
			p.count++
		}
		p.keys[u.Name] = k
	}
	p.stages = append(p.stages, s)
	return results
}

// Run returns when all units have a result, those of the shard if -shard asks for one:
// it takes over what other directories have of them, see [Dir.Absorb], and runs
// the rest. Then it writes the report, unless there is but a shard. The first error
// ends the run; what has finished by then is kept. Progress goes to stderr, and what
// -list prints to stdout.
func (p *Plan) Run(ctx context.Context, stdout, stderr io.Writer, report func() error) error {
	o := p.dir.Output
	for _, dir := range o.Collect {
		if _, err := os.Stat(dir); err != nil {
			return fmt.Errorf("-collect: %w", err)
		}
		if _, err := os.Stat(filepath.Join(dir, "config.json")); err != nil && len(Shards(dir)) == 0 {
			return fmt.Errorf("-collect: %s holds no run: it has neither a config.json nor shares", dir)
		}
	}
	for _, dir := range p.sources() {
		if err := p.dir.Absorb(dir, func(unit string) bool {
			k, ok := p.keys[unit]
			return ok && o.Shard.Has(k)
		}); err != nil {
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
	if o.Shard != (shard.Shard{}) {
		_, err := fmt.Fprintf(stdout, "shard %v is finished, %d units: %s\n", o.Shard, ran, p.dir.Path)
		return err
	}
	return report()
}

// sources are the directories that may have results of this run: the one of which it
// is a shard, other shards, and what is collected.
func (p *Plan) sources() []string {
	o := p.dir.Output
	if o.Dir == "" {
		return nil
	}
	var dirs []string
	for _, dir := range append([]string{o.Dir}, o.Collect...) {
		dirs = append(append(dirs, dir), Shards(dir)...)
	}
	return slices.DeleteFunc(dirs, func(dir string) bool {
		return dir == p.dir.Path && !o.List
	}) // not from itself
}

func (p *Plan) shard(s stage) (keep []int) {
	for i, name := range s.names {
		if p.dir.Output.Shard.Has(p.keys[name]) {
			keep = append(keep, i)
		}
	}
	return keep
}

// list prints a line for each unit: its name, and what it took or may take.
func (p *Plan) list(stdout io.Writer) error {
	for _, s := range p.stages {
		for _, i := range p.shard(s) {
			seconds, done := p.dir.Seconds(s.names[i])
			cost := "?"
			switch {
			case done:
				cost = fmt.Sprintf("done in %.1f s", seconds)
			case seconds > 0:
				cost = fmt.Sprintf("about %.1f s", seconds)
			}
			if _, err := fmt.Fprintf(stdout, "%s\t%s\n", s.names[i], cost); err != nil {
				return err
			}
		}
	}
	return nil
}

// whole returns an error unless all units have a result: which shards, each as small as
// can be, are missing.
func (p *Plan) whole() error {
	missing := make([]bool, p.count)
	units := 0
	for _, s := range p.stages {
		for _, name := range s.names {
			if !p.dir.Done(name) {
				missing[p.keys[name]] = true
				units++
			}
		}
	}
	if units == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d of %d units are missing; run -shard i/%d for i = %s, as with sbatch "+
		"--array=%[5]s and -shard auto/%[4]d",
		p.dir.Path, units, len(p.keys), p.count, ranges(missing))
}

// ranges writes which are set as job arrays have it: 0-3,7.
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
		return s.run(ctx, nil, nil)
	}
	bar := progress.Start(stderr, progress.Options{Label: p.dir.Experiment, Unit: "run", Total: len(keep)})
	defer bar.Stop()
	printed := make(chan struct{})
	unsaid := context.AfterFunc(ctx, func() { // at once: what runs may not stop in time
		defer close(printed)
		fmt.Fprintf(bar, "finished runs are kept: continue with -out %s\n",
			cmp.Or(p.dir.Output.Dir, p.dir.Path))
	})
	err := s.run(ctx, bar, keep)
	if !unsaid() {
		<-printed
	}
	return err
}

// Parallel calls run for 0 to n-1, so many at a time, until an error.
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

// do runs one unit, unless the journal has it.
func do[T any](ctx context.Context, dir *Dir, bar *progress.Bar, u Unit[T]) (result T, err error) {
	if ctx.Err() != nil {
		return result, ctx.Err()
	}
	count := bar.Add
	if dir.Done(u.Name) {
		count = bar.Skip
	}
	defer func() {
		if err == nil {
			count(1)
		}
	}()
	return Do(dir, u.Name, func() (T, error) {
		bar.Message("%s", u.Name)
		return u.Run(ctx, func(format string, args ...any) {
			bar.Message("%s: %s", u.Name, fmt.Sprintf(format, args...))
		})
	}, u.Files...)
}
