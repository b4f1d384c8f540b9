// Package units runs the independent units that an experiment consists of: a
// method on a data set with a seed, and the like.
//
// The mental model: an experiment lists its units and gets their results back
// in the same order. In between they run side by side, one per core, which is
// the fastest way through many of them since they share nothing; each finished
// one goes into the journal of the run directory, so that an interrupted
// experiment started again with the same -out only runs what is left.
//
//	var list []units.Unit[outcome]
//	for seed := range recipe.Seeds {
//		list = append(list, units.Unit[outcome]{
//			Name: fmt.Sprintf("MUTAG/specmatch/seed=%d", seed),
//			Run: func(ctx context.Context, status units.Status) (outcome, error) { … },
//		})
//	}
//	outcomes, err := units.Run(ctx, dir, stderr, list)
//
// Results depend neither on the number of cores nor on the order in which units
// finish.
package units

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/specmatch/specmatch/experiments/internal/progress"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
)

// Unit is one part of an experiment. T must survive JSON, see [rundir.Do].
type Unit[T any] struct {
	Name  string // unique in the experiment
	Run   func(ctx context.Context, status Status) (T, error)
	Files []string // that Run writes in the run directory, by path there
}

// Status shows what a unit is doing, as text after the progress bar.
type Status func(format string, args ...any)

// Run returns the results of the units, in their order. It runs those that the
// journal of dir does not have. The first error ends the run; what has finished by
// then is kept. Progress goes to stderr.
func Run[T any](ctx context.Context, dir *rundir.Dir, stderr io.Writer, list []Unit[T]) ([]T, error) {
	if len(list) == 0 {
		return nil, nil
	}
	bar := progress.Start(stderr, progress.Options{Label: dir.Experiment, Unit: "run", Total: len(list)})
	defer bar.Stop()
	said := make(chan struct{})
	unsaid := context.AfterFunc(ctx, func() { // at once: what runs may not stop in time
		defer close(said)
		fmt.Fprintf(bar, "finished runs are kept: continue with -out %s\n", dir.Path)
	})
	results, err := run(ctx, dir, bar, list)
	if !unsaid() {
		<-said
	}
	return results, err
}

func run[T any](ctx context.Context, dir *rundir.Dir, bar *progress.Bar, list []Unit[T]) ([]T, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	results := make([]T, len(list))
	next := make(chan int) // indices into list
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(list)) {
		wg.Go(func() {
			for i := range next {
				var err error
				if results[i], err = do(ctx, dir, bar, list[i]); err != nil {
					cancel(fmt.Errorf("%s: %w", list[i].Name, err))
				}
			}
		})
	}
	for i := range list {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return results, nil
}

// do runs one unit, unless the journal has it.
func do[T any](ctx context.Context, dir *rundir.Dir, bar *progress.Bar, u Unit[T]) (result T, err error) {
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
	return rundir.Do(dir, u.Name, func() (T, error) {
		bar.Message("%s", u.Name)
		return u.Run(ctx, func(format string, args ...any) {
			bar.Message("%s: %s", u.Name, fmt.Sprintf(format, args...))
		})
	}, u.Files...)
}
