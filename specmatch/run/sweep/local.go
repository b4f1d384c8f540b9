package sweep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/shard"
	"github.com/specmatch/specmatch/tensor/files"
)

// Local runs tasks on this machine, stage by stage, with a number of workers, and shows progress. A
// task that fails does not end the others of its stage; the error names all that failed. The output
// of a task goes to a file in the folder logs.
func (s *Sweep) Local(ctx context.Context, stderr io.Writer, workers int, stages ...[]Task) error {
	if err := os.MkdirAll(filepath.Join(s.Dir, "logs"), 0o777); err != nil {
		return err
	}
	total := 0
	for _, r := range s.Runs {
		total += len(r.Units)
	}
	finished, err := s.done()
	if err != nil {
		return err
	}
	bar := progress.Start(stderr, progress.Options{Label: "sweep", Unit: "unit", Total: total})
	defer bar.Stop()
	bar.Skip(finished)
	watching, stop := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	watcher.Go(func() { s.watch(watching, bar, finished) })
	for _, tasks := range stages {
		err = s.stage(ctx, bar, tasks, workers)
		if err != nil {
			break
		}
	}
	stop()
	watcher.Wait()
	if err := ctx.Err(); err != nil {
		fmt.Fprintf(bar, "finished units are kept; repeat the command to resume\n")
		return err
	}
	return err
}

// watch adds finished units to the bar until ctx ends.
func (s *Sweep) watch(ctx context.Context, bar *progress.Bar, finished int) {
	interval := time.Second
	for ended := false; !ended; {
		select {
		case <-time.After(interval):
		case <-ctx.Done():
			ended = true
		}
		begin := time.Now()
		if count, err := s.done(); err == nil && count > finished {
			bar.Add(count - finished)
			finished = count
		}
		interval = max(time.Second, 20*time.Since(begin)) // journals may be long
	}
}

// stage runs the tasks of a stage.
func (s *Sweep) stage(ctx context.Context, bar *progress.Bar, tasks []Task, workers int) error {
	failed := make([]error, len(tasks))
	err := run.Parallel(ctx, workers, len(tasks), func(ctx context.Context, k int) error {
		bar.Message("%s", tasks[k].name())
		err := s.free(ctx, bar, tasks[k])
		if err == nil {
			err = s.do(ctx, tasks[k], workers)
		}
		if ctx.Err() == nil {
			failed[k] = err
		}
		return nil
	})
	return errors.Join(append(failed, err)...)
}

// free waits until no process has the run directory of a task open. A sweep that was killed may have
// left such processes.
func (s *Sweep) free(ctx context.Context, bar *progress.Bar, t Task) error {
	o := run.Output{Dir: s.path(t.Run), Shard: shard.Shard{I: t.Share, N: t.N}}
	path := o.Path()
	for told := false; ; told = true {
		unlock, err := files.Lock(path)
		switch {
		case errors.Is(err, files.ErrLocked):
		case err != nil || unlock == nil: // there is no directory, or there are no locks
			return nil
		default:
			return unlock()
		}
		if !told {
			fmt.Fprintf(bar, "%s: waiting for the process that has it open; an earlier start may have left it\n",
				path)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func (s *Sweep) do(ctx context.Context, t Task, workers int) error {
	log := filepath.Join(s.Dir, "logs", t.name()+".log")
	f, err := os.OpenFile(log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	defer f.Close()
	c := exec.CommandContext(ctx, s.Program, s.args(t)...)
	c.Stdout = f
	c.Stderr = f
	c.Env = append(os.Environ(), fmt.Sprint("GOMAXPROCS=", max(1, runtime.GOMAXPROCS(0)/workers)))
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) }
	c.WaitDelay = 10 * time.Second
	alone(c)
	begin := time.Now()
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w: see %s", t.name(), err, log)
	}
	return s.measured(cost{t.name(), time.Since(begin).Seconds(), peak(c.ProcessState), t.units()})
}

// cost is the time and memory of a task: a line of the file costs.
type cost struct {
	Task    string  `json:"task"`
	Seconds float64 `json:"seconds"`
	Bytes   int64   `json:"bytes,omitempty"` // peak memory; 0 if unknown
	Units   int     `json:"units,omitempty"` // of the task; 0 in files of earlier versions
}

const costs = "costs.jsonl"

func (s *Sweep) measured(c cost) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(s.Dir, costs), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	return errors.Join(err, f.Close())
}
