package run

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/shard"
	"github.com/specmatch/specmatch/tensor/files"
)

// Output holds the flags of the run directory: -out, -checkpoint, -mixed, -list, -shard, -collect and
// -tensorboard.
type Output struct {
	Dir     string
	Every   time.Duration // between two checkpoints of a training; 0 becomes 20 s
	Mixed   bool          // the run may mix instruction sets and versions
	List    bool          // print the units and end
	Shard   shard.Shard   // of the units to run; the zero Shard is all
	Collect []string      // run directories whose finished units are copied; none is run

	TensorBoard bool // also write metrics for TensorBoard
}

func (o *Output) Register(f *cli.FlagSet) {
	cli.Var(f, &o.Dir, "out", setting.Text,
		"run `directory`; an existing run is resumed with its own flags, and further flags, such as more\n"+
			"seeds or methods, are added to it; the default is a new runs/EXPERIMENT-DATASET-TIME")
	if o.Every == 0 {
		o.Every = 20 * time.Second
	}
	f.DurationVar(&o.Every, "checkpoint", o.Every,
		"`time` between two checkpoints of a training; a killed process loses about this much")
	f.BoolVar(&o.Mixed, "mixed", false,
		"resume a run on another instruction set (processor or SPECMATCH_CPU), and collect runs of other\n"+
			"versions, although results may then differ")
	f.BoolVar(&o.List, "list", false,
		"list the units of the run with their times, measured or estimated from -out, and end")
	cli.Var(f, &o.Shard, "shard", shard.Parse,
		"run shard `i/n` of the units, i from 0, in its own run directory below -out;\n"+shard.Usage+";\n"+
			"to join the shards, repeat the command without -shard or with -collect")
	cli.Var(f, &o.Collect, "collect", setting.List(setting.Text),
		"copy the finished units of the run `directories` A,B and of their shards to -out, run nothing,\n"+
			"and print the tables or the missing units")
	f.BoolVar(&o.TensorBoard, "tensorboard", false,
		"also write the metrics to OUT/tensorboard, for tensorboard -logdir")
	f.AfterParse(func(given map[string]bool) error { return o.takeUp(f, given) })
	f.SkipsData(func() bool { return len(o.Collect) > 0 })
	f.Free("out", "checkpoint", "tensorboard")
	f.Once("mixed", "list", "shard", "collect")
	f.Check(func() error {
		switch {
		case (o.Shard != shard.Shard{}) && o.Dir == "":
			return cli.Usagef("-shard %v needs -out: the common directory of all shards", o.Shard)
		case len(o.Collect) > 0 && o.Dir == "":
			return cli.Usagef("-collect needs -out: the directory to collect into")
		case len(o.Collect) > 0 && (o.Shard != shard.Shard{}):
			return cli.Usagef("-collect runs nothing, -shard runs a shard: want one of them")
		case isFile(o.Dir):
			return cli.Usagef("-out %s: this is a file; want a directory for the run, which may be new", o.Dir)
		}
		return nil
	})
}

// isFile reports whether a path exists and is no directory.
func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// Path returns the run directory, which for a shard lies below -out.
func (o *Output) Path() string {
	if o.Shard == (shard.Shard{}) {
		return o.Dir
	}
	return filepath.Join(o.Dir, shards, fmt.Sprintf("%d-of-%d", o.Shard.I, o.Shard.N))
}

// shards is the folder in a run directory that holds the run's shards.
const shards = "shards"

// Shards returns the run directories of the shards below a run directory.
func Shards(dir string) []string {
	// the pattern is well formed
	found, _ := filepath.Glob(filepath.Join(files.Pattern(dir), shards, "*-of-*", "config.json"))
	for i, path := range found {
		found[i] = filepath.Dir(path)
	}
	return found
}
