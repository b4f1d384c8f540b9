package rundir

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/specmatch/specmatch/experiments/internal/cli"
)

// config is config.json.
type config struct {
	Experiment string                     `json:"experiment"`
	Flags      map[string]json.RawMessage `json:"flags"` // by name, without the hyphen
	Seeds      []int                      `json:"seeds"`
	Engine     string                     `json:"engine"`
	Build      build                      `json:"build"`
	Machine    machine                    `json:"machine"`
	Started    time.Time                  `json:"started"`
}

// build is where the program comes from.
type build struct {
	Version  string `json:"version"`            // of the module; "(devel)" in a checkout
	Revision string `json:"revision,omitempty"` // of the checkout, if the go command recorded it
	Modified bool   `json:"modified,omitempty"` // the checkout had changes
	Tags     string `json:"tags,omitempty"`
	Go       string `json:"go"`
	GOOS     string `json:"goos"`
	GOARCH   string `json:"goarch"`
	GOAMD64  string `json:"goamd64,omitempty"` // v3 fuses x*y+z, so results differ from v1's
}

// machine is where the program runs.
type machine struct {
	CPU        string `json:"cpu,omitempty"`
	NumCPU     int    `json:"num_cpu"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

func newConfig(o Options) *config {
	c := &config{
		Experiment: o.Experiment,
		Flags:      map[string]json.RawMessage{},
		Seeds:      make([]int, o.Seeds),
		Engine:     o.Engine,
		Build:      build{Go: runtime.Version(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH},
		Machine:    machine{CPU: cpu(), NumCPU: runtime.NumCPU(), GOMAXPROCS: runtime.GOMAXPROCS(0)},
		Started:    time.Now().Truncate(time.Second),
	}
	for i := range c.Seeds {
		c.Seeds[i] = o.FirstSeed + i
	}
	o.Flags.VisitAll(func(f *flag.Flag) { c.Flags[f.Name] = resolved(f) })
	if info, ok := debug.ReadBuildInfo(); ok {
		c.Build.Version = info.Main.Version
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				c.Build.Revision = s.Value
			case "vcs.modified":
				c.Build.Modified = s.Value == "true"
			case "-tags":
				c.Build.Tags = s.Value
			case "GOAMD64":
				c.Build.GOAMD64 = s.Value
			}
		}
	}
	return c
}

// resolved encodes a flag's value as its type, as in 128 or ["MUTAG"], unless
// the type names itself, as in "float32".
func resolved(f *flag.Flag) json.RawMessage {
	var v any = f.Value.String()
	if g, ok := f.Value.(flag.Getter); ok {
		switch x := g.Get().(type) {
		case json.Marshaler:
			v = x
		case fmt.Stringer:
			v = x.String()
		default:
			v = x
		}
	}
	data, err := json.Marshal(v)
	if err != nil { // JSON has no NaN, so its text must do
		data, _ = json.Marshal(f.Value.String())
	}
	return data
}

// cpu returns the processor's name, where the system tells it as Linux does.
func cpu() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (c *config) write(path string) error {
	data, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(append(data, '\n'))
		return err
	})
}

func readConfig(path string) (*config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := new(config)
	if err := json.Unmarshal(data, c); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for name, value := range c.Flags { // undo the indentation
		var b bytes.Buffer
		json.Compact(&b, value) // it is valid: it has just been read
		c.Flags[name] = b.Bytes()
	}
	return c, nil
}

// CheckPretrained returns a usage error of -pretrained unless the run directory
// path is of a run of the experiment with the settings in flags, but for those that
// no pre-training depends on and the names in mayDiffer, and the files of weights
// are there.
func CheckPretrained(path, experiment string, flags *cli.FlagSet, mayDiffer, weights []string) error {
	c, err := readConfig(filepath.Join(path, "config.json"))
	if err != nil {
		return cli.Usagef("-pretrained: %w", err)
	}
	always := []string{"pretrained", "dataset", "method", "seeds", "first-seed", "finetune-epochs", "finetune-lr", "backend", "tf32"}
	if err := c.same(newConfig(Options{Experiment: experiment, Flags: flags.FlagSet}), slices.Concat(always, mayDiffer)...); err != nil {
		return cli.Usagef("-pretrained: %s holds another run: %w", path, err)
	}
	for _, file := range weights {
		if _, err := os.Stat(file); err != nil {
			return cli.Usagef("-pretrained: %w", err)
		}
	}
	return nil
}

// neutral are the flags without influence on results.
var neutral = []string{"out", "cache", "checkpoint"}

// same returns an error that names the first difference, if a run of now would
// not be the run of c but for some flags and the neutral ones.
func (c *config) same(now *config, mayDiffer ...string) error {
	if c.Experiment != now.Experiment {
		return fmt.Errorf("of experiment %s, not %s", c.Experiment, now.Experiment)
	}
	names := slices.Concat(slices.Collect(maps.Keys(c.Flags)), slices.Collect(maps.Keys(now.Flags)))
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		was, is := "unknown", "unknown" // a flag that one of the two programs does not have
		if v, ok := c.Flags[name]; ok {
			was = string(v)
		}
		if v, ok := now.Flags[name]; ok {
			is = string(v)
		}
		if was != is && !slices.Contains(neutral, name) && !slices.Contains(mayDiffer, name) {
			return fmt.Errorf("-%s was %s, now it is %s", name, was, is)
		}
	}
	return nil
}

// WriteFile writes a file that appears whole or not at all: to a temporary file
// beside it, flushed to the disk, then renamed.
func WriteFile(path string, write func(w io.Writer) error) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close() // a second Close does no harm
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	// The rename itself is on the disk when the directory is. Not every
	// system can flush one, and the file is whole in any case.
	if d, err := os.Open(dir); err == nil {
		d.Sync()
		d.Close()
	}
	return nil
}
