package run

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/shard"
)

// Output is where the run directory goes, how it is kept, and how much of the run to
// do: -out, -checkpoint, -mixed, -list, -shard, -collect and -tensorboard.
type Output struct {
	Dir     string
	Every   time.Duration // between two checkpoints of a training; 0 becomes 20 s
	Mixed   bool          // the run may go on with another instruction set or version than it began with
	List    bool          // print the units and end
	Shard   shard.Shard   // of the units to run; the zero Shard is all
	Collect []string      // run directories whose finished units to take over, running none

	TensorBoard bool // write metrics for TensorBoard, too
}

func (o *Output) Register(f *cli.FlagSet) {
	cli.Var(f, &o.Dir, "out", setting.Text,
		"run `directory`; a run that is there is resumed with its own flags, and what else is given,\n"+
			"such as more seeds or methods, is added to it; the default is a new "+
			"runs/EXPERIMENT-DATASET-TIME")
	if o.Every == 0 {
		o.Every = 20 * time.Second
	}
	f.DurationVar(&o.Every, "checkpoint", o.Every,
		"`time` between two checkpoints of a training, about the most that a killed process loses")
	f.BoolVar(&o.Mixed, "mixed", false,
		"resume a run even if this processor, or SPECMATCH_CPU, computes with another instruction "+
			"set\n"+
			"than the run so far, and collect runs of other versions: results differ by it")
	f.BoolVar(&o.List, "list", false,
		"list the parts of the run, with the time that each took or that the like of it "+
			"took in -out, and end")
	cli.Var(f, &o.Shard, "shard", shard.Parse,
		"run a share `i/n` of the parts, i from 0, in a run directory of its own below -out; auto "+
			"takes i and n\n"+
			"from SLURM_ARRAY_TASK_ID and _COUNT, auto/n the i from there or from "+
			"JOB_COMPLETION_INDEX.\n"+
			"The same command without -shard, or -collect, puts the shares together")
	cli.Var(f, &o.Collect, "collect", setting.List(setting.Text),
		"take the finished parts of the run `directories` A,B and of their shares into -out, run "+
			"nothing,\n"+
			"and print the tables, or which parts are missing")
	f.BoolVar(&o.TensorBoard, "tensorboard", false,
		"write what metrics.csv holds to OUT/tensorboard, too, for tensorboard -logdir")
	f.AfterParse(func(given map[string]bool) error { return o.takeUp(f, given) })
	f.SkipsData(func() bool { return len(o.Collect) > 0 })
	f.Free("out", "checkpoint")
	f.Once("mixed", "list", "shard", "collect", "tensorboard")
	f.Check(func() error {
		switch {
		case (o.Shard != shard.Shard{}) && o.Dir == "":
			return cli.Usagef("-shard %v: want -out, the directory that all shares have in common",
				o.Shard)
		case len(o.Collect) > 0 && o.Dir == "":
			return cli.Usagef("-collect: want -out, the directory to collect into")
		case len(o.Collect) > 0 && (o.Shard != shard.Shard{}):
			return cli.Usagef("-collect runs nothing, and -shard a share: want one of them")
		}
		return nil
	})
}

// Path returns the run directory: that of a share lies below -out.
func (o *Output) Path() string {
	if o.Shard == (shard.Shard{}) {
		return o.Dir
	}
	return filepath.Join(o.Dir, shards, fmt.Sprintf("%d-of-%d", o.Shard.I, o.Shard.N))
}

// shards is the folder, in a run directory, of the shares of the run.
const shards = "shards"

// Shards returns the run directories of shards below a run directory.
func Shards(dir string) []string {
	// the pattern is well formed
	found, _ := filepath.Glob(filepath.Join(dir, shards, "*-of-*", "config.json"))
	for i, path := range found {
		found[i] = filepath.Dir(path)
	}
	return found
}
