package run

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// Options describe a run.
type Options struct {
	Experiment string
	Datasets   []string     // none is the embedded synthetic set
	Flags      *cli.FlagSet // parsed; all of its flags and inputs go into config.json
	FirstSeed  int
	Seeds      int    // seeds FirstSeed … FirstSeed+Seeds-1; 0 where the experiment has none
	Engine     string // name of the engine
	Out        string // the directory; "" is a new runs/<experiment>-<dataset>-<time>
	Mixed      bool   // an earlier start may have used another instruction set
}

// Dir is an open run directory. Its methods may be called concurrently. On file systems with locks,
// no other process can open it until Close.
type Dir struct {
	Experiment string
	Path       string
	Output     Output        // of the start, see [Start]
	Every      time.Duration // between two checkpoints of a training; see train.Options
	Resumed    bool          // the directory holds an earlier start of this run
	Log        *slog.Logger  // to log.jsonl

	flags   *cli.FlagSet
	mu      sync.Mutex
	config  *config
	unlock  func() error // nil where the file system has no locks
	log     *os.File
	metrics metrics
	journal journal
}

// Start calls [Open] with the flags of an experiment. It opens the engine once, so that a wrong
// one is reported before anything runs. With -list it creates nothing.
func Start(experiment string, f *cli.FlagSet, datasets []string, r cli.Recipe, e cli.Engine, o Output) (*Dir, error) {
	be, err := e.Open()
	if err != nil {
		return nil, err
	}
	if err := be.Close(); err != nil {
		return nil, err
	}
	return StartHost(experiment, f, datasets, r, e.Name(), o)
}

// StartHost is [Start] for experiments that use none of the engines; engine is the name to record.
func StartHost(
	experiment string, f *cli.FlagSet, datasets []string, r cli.Recipe, engine string, o Output,
) (d *Dir, err error) {
	if o.List {
		d = &Dir{Experiment: experiment, Path: o.Dir}
		d.journal.done = map[string]Record{}
	} else if d, err = Open(Options{
		Experiment: experiment,
		Datasets:   datasets,
		Flags:      f,
		FirstSeed:  r.FirstSeed,
		Seeds:      r.Seeds,
		Engine:     engine,
		Out:        o.Path(),
		Mixed:      o.Mixed,
	}); err != nil {
		return nil, err
	}
	d.Every = o.Every
	d.Output = o
	if o.TensorBoard && !o.List {
		if err := d.board(""); err != nil {
			return nil, errors.Join(err, d.Close())
		}
	}
	return d, nil
}

// Open creates the run directory, or opens an existing one to resume the run. It returns an error if
// another process has the directory open, or if results would not belong together: another flag
// value (lists and seeds may grow, see [cli.FlagSet.Grows]), a changed input file, or another
// instruction set. The error names the difference.
func Open(o Options) (*Dir, error) {
	config := newConfig(o)
	path, err := directory(o, config.Started)
	if err != nil {
		return nil, err
	}
	d := &Dir{Experiment: o.Experiment, Path: path, flags: o.Flags}
	d.unlock, err = files.Lock(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := d.open(o, config); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// open checks that an existing run can be resumed, and opens the files.
func (d *Dir) open(o Options, config *config) error {
	earlier, err := readConfig(d.Join("config.json"))
	d.Resumed = err == nil
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := notAnother(d.Path); err != nil {
			return err
		}
		// A process that was killed while it wrote config.json left nothing else.
		if err := errors.Join(
			files.Sweep(d.Join("config.json")), files.WriteJSON(d.Join("config.json"), config),
		); err != nil {
			return err
		}
	case err != nil:
		return err
	default:
		config, err = earlier.after(config, o.Flags, o.Mixed)
		if err != nil {
			return fmt.Errorf("the run in %s cannot be resumed: %w (a new -out starts another run)", d.Path, err)
		}
		d.sweep()
	}
	d.config = config

	d.log, err = openLines(d.Join("log.jsonl"))
	if err != nil {
		return err
	}
	d.Log = slog.New(handler(d.log))
	if err := errors.Join(d.journal.open(d.Join("done.jsonl")), d.metrics.open(d.Join("metrics.csv"))); err != nil {
		return err
	}
	d.Log.Info("start", "dir", d.Path, "resumed", d.Resumed, "done", len(d.journal.done))
	if !d.Resumed {
		return nil
	}
	before := earlier.last()
	current := config.last()
	if before.Build != current.Build || before.Machine != current.Machine ||
		before.Engine != current.Engine {
		d.Log.Warn("resumed by another build or on another machine: results may differ in the last digits",
			"build", current.Build, "machine", current.Machine, "engine", current.Engine)
	}
	return files.WriteJSON(d.Join("config.json"), config)
}

// written are the endings of the files of a run directory that are written whole. Event files of
// TensorBoard end in .specmatch.
var written = []string{
	".json", ".jsonl", ".csv", ".md", ".svg", ".html", ".safetensors", ".specmatch",
}

// sweep removes half-written files of a killed process, which can be large. It does nothing without a
// lock, since that process might still be running. It skips the run directories of shards for the
// same reason.
func (d *Dir) sweep() {
	if d.unlock == nil {
		return
	}
	root, err := filepath.EvalSymlinks(d.Path) // since WalkDir does not follow a link
	if err != nil {
		return
	}
	filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
		case e.IsDir() && path != root:
			if _, err := os.Stat(filepath.Join(path, "config.json")); err == nil {
				return fs.SkipDir
			}
		case e.Type().IsRegular() && slices.Contains(written, filepath.Ext(files.Unfinished(e.Name()))):
			os.Remove(path)
		}
		return nil // a file that remains does no harm
	})
}

// Join returns the path of a file in the directory.
func (d *Dir) Join(name ...string) string {
	return filepath.Join(append([]string{d.Path}, name...)...)
}

// Training returns the training options of a unit, with its checkpoint.
func (d *Dir) Training(unit string, epochs int) (train.Options, error) {
	path, err := d.Checkpoint(unit)
	return train.Options{Epochs: epochs, Checkpoint: path, Every: d.Every}, err
}

// Checkpoint creates the folder of a unit's checkpoint and returns the path. The unit writes and reads
// the file; [Do] removes it.
func (d *Dir) Checkpoint(unit string) (string, error) {
	path := d.checkpoint(unit)
	return path, os.MkdirAll(filepath.Dir(path), 0o777)
}

func (d *Dir) checkpoint(unit string) string {
	return d.Join("checkpoints", strings.NewReplacer("/", "-", "=", "-").Replace(unit)+".safetensors")
}

func (d *Dir) forget(unit string) error {
	err := os.Remove(d.checkpoint(unit))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Close closes the files.
func (d *Dir) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, f := range []*os.File{d.log, d.journal.f, d.metrics.f} {
		if f != nil {
			errs = append(errs, f.Close())
		}
	}
	if d.unlock != nil {
		errs = append(errs, d.unlock())
	}
	return errors.Join(errs...)
}

func directory(o Options, now time.Time) (string, error) {
	if o.Out != "" {
		return o.Out, os.MkdirAll(o.Out, 0o777)
	}
	dataset := "synthetic"
	switch n := len(o.Datasets); {
	case n > 3:
		dataset = fmt.Sprintf("%d-datasets", n)
	case n > 0:
		dataset = strings.Join(o.Datasets, "+")
	}
	name := strings.Map(plain, fmt.Sprintf("%s-%s-%s",
		o.Experiment, dataset, now.Format("20060102-150405")))
	name = strings.ReplaceAll(name, "/", "_")
	if err := os.MkdirAll("runs", 0o777); err != nil {
		return "", err
	}
	// Runs that start in the same second get a number.
	path := filepath.Join("runs", name)
	err := os.Mkdir(path, 0o777)
	for n := 2; errors.Is(err, fs.ErrExist); n++ {
		path = filepath.Join("runs", fmt.Sprintf("%s-%d", name, n))
		err = os.Mkdir(path, 0o777)
	}
	return path, err
}

// notAnother returns an error if path holds results without a config.json, since nothing tells which
// run they belong to. Other files, such as the output of a shell redirection, do no harm.
func notAnother(path string) error {
	for _, name := range []string{"done.jsonl", "metrics.csv", "results.json"} {
		if _, err := os.Stat(filepath.Join(path, name)); err == nil {
			return fmt.Errorf("%s holds a %s but no config.json, so it cannot be resumed; give a new -out", path, name)
		}
	}
	return nil
}

// handler logs everything to file, as JSON.
func handler(file io.Writer) slog.Handler {
	return slog.NewJSONHandler(file, &slog.HandlerOptions{
		Level: slog.LevelDebug,
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Value.Kind() == slog.KindFloat64 && !finite(a.Value.Float64()) {
				a.Value = slog.AnyValue(nil)
			}
			return a
		}})
}

// Float is a float64 for JSON: NaN and ±Inf become null, which is read back as NaN. Results of units
// need it for numbers that may not be finite.
type Float float64

func (x Float) MarshalJSON() ([]byte, error) {
	if !finite(float64(x)) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(x))
}

func (x *Float) UnmarshalJSON(data []byte) error {
	if string(data) == "null" {
		*x = Float(math.NaN())
		return nil
	}
	return json.Unmarshal(data, (*float64)(x))
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
