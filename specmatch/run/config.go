package run

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/specmatch/cli"
)

// config is config.json.
type config struct {
	Experiment string                     `json:"experiment"`
	Flags      map[string]json.RawMessage `json:"flags"` // by name, without the hyphen
	Seeds      []int                      `json:"seeds"`
	// SHA-256 of the files that were read
	Inputs map[string]string `json:"inputs,omitempty"`
	// Checksums says that every record of the journal has one, as it has if the run began with this
	// version.
	Checksums bool    `json:"checksums,omitempty"`
	start             // the first one
	Resumed   []start `json:"resumed,omitempty"` // the later ones
}

type start struct {
	Engine  string    `json:"engine"`
	Build   build     `json:"build"`
	Machine machine   `json:"machine"`
	Started time.Time `json:"started"`
}

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

type machine struct {
	CPU        string `json:"cpu,omitempty"`
	NumCPU     int    `json:"num_cpu"`
	GOMAXPROCS int    `json:"gomaxprocs"`
	// InstructionSet selects the kernels, see package simd. Results depend on it.
	InstructionSet string `json:"instruction_set,omitempty"`
}

func newConfig(o Options) *config {
	c := &config{
		Experiment: o.Experiment,
		Flags:      o.Flags.All(),
		Seeds:      make([]int, o.Seeds),
		Inputs:     maps.Clone(o.Flags.Inputs()),
		Checksums:  true,
		start: start{
			Engine: o.Engine,
			Build:  build{Go: runtime.Version(), GOOS: runtime.GOOS, GOARCH: runtime.GOARCH},
			Machine: machine{
				CPU:            cpu(),
				NumCPU:         runtime.NumCPU(),
				GOMAXPROCS:     runtime.GOMAXPROCS(0),
				InstructionSet: instructionSet(),
			},
			Started: time.Now().Truncate(time.Second),
		},
	}
	for i := range c.Seeds {
		c.Seeds[i] = o.FirstSeed + i
	}
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

// instructionSet returns the instruction set of the kernels; tests replace it.
var instructionSet = func() string { return simd.Level().String() }

// cpu returns the processor's name on Linux, "" elsewhere.
func cpu() string {
	info, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func readConfig(path string) (*config, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	c := &config{Inputs: map[string]string{}}
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

// after returns the configuration of the run c once it is resumed by the current start. The error
// says why it cannot be: another experiment, flag, input or instruction set.
func (c *config) after(current *config, flags *cli.FlagSet, mixed bool) (*config, error) {
	if err := c.mixes(current, flags, mixed); err != nil {
		return nil, err
	}
	next := *current
	next.Inputs = maps.Clone(c.Inputs)
	maps.Copy(next.Inputs, current.Inputs)
	next.Resumed = slices.Concat(c.Resumed, []start{current.start})
	next.Checksums = c.Checksums
	next.start = c.start
	return &next, nil
}

// mixes returns an error unless results of the run c may be mixed with those of the current start.
// It does not compare the flags in mayDiffer.
func (c *config) mixes(current *config, flags *cli.FlagSet, mixed bool, mayDiffer ...string) error {
	if c.Experiment != current.Experiment {
		return fmt.Errorf("it is of experiment %s, not %s", cli.Shorten(c.Experiment), current.Experiment)
	}
	if err := flags.Compare(c.Flags, mayDiffer...); err != nil {
		return err
	}
	if err := sameInputs(c.Inputs, current.Inputs, flags); err != nil {
		return err
	}
	var sets []string // earlier versions did not record theirs
	for _, s := range append([]start{c.start}, c.Resumed...) {
		if set := s.Machine.InstructionSet; set != "" {
			sets = append(sets, set)
		}
	}
	if set := current.Machine.InstructionSet; len(sets) > 0 && !mixed && !slices.Contains(sets, set) {
		return fmt.Errorf("its results were computed with the instruction set %s, and these would be with %s; "+
			"set %s=%[1]s if this processor has it, or accept the difference with -mixed",
			sets[0], set, simd.EnvVar)
	}
	return nil
}

// code returns the commits of the run's builds, in order, and marks those with changes; "" if unknown.
func (c *config) code() string {
	var list []string
	for _, s := range append([]start{c.start}, c.Resumed...) {
		name := s.Build.Revision[:min(len(s.Build.Revision), 7)]
		if s.Build.Modified {
			name += " with changes"
		}
		if name != "" && !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return strings.Join(list, ", ")
}

func (c *config) last() start {
	if n := len(c.Resumed); n > 0 {
		return c.Resumed[n-1]
	}
	return c.start
}

// sameInputs returns an error if a file is in both maps with different sums. Earlier versions recorded none for a
// file that was read from a pipe. The name of a file may be that of its flag.
func sameInputs(previous, current map[string]string, flags *cli.FlagSet) error {
	for _, name := range slices.Sorted(maps.Keys(current)) {
		if sum := previous[name]; sum != "" && sum != current[name] {
			return otherInput(name, flags, sum, current[name])
		}
	}
	return nil
}

// otherInput returns the error that an input, by its name, is another one than that of the run. The path that the
// run had is not known, so that a file of a flag may have changed, or be another one.
func otherInput(name string, flags *cli.FlagSet, previous, current string) error {
	flag := flags.Lookup(name)
	if flag == nil {
		return fmt.Errorf("the file %s has changed: its SHA-256 was %s, now it is %s; restore the file",
			name, previous, current)
	}
	path := flag.Value.String()
	if path == "-" {
		return fmt.Errorf("the data from standard input are not those that the run was started with (SHA-256 %s "+
			"there, %s here): give those, or a new -out", previous, current)
	}
	noun := "file"
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		noun = "folder"
	}
	return fmt.Errorf("-%s %s is not the %s that the run was started with (SHA-256 %s there, %s here): "+
		"give that %[3]s, or a new -out", name, path, noun, previous, current)
}

// CheckPretrained returns a usage error of -pretrained unless the directory path holds a run of the
// experiment with the same flags, and its weights files are unchanged. An empty path is accepted. The
// instruction set, flags that pre-training does not depend on, and those in mayDiffer may differ.
func CheckPretrained(path string, flags *cli.FlagSet, mayDiffer, weights []string) error {
	if path == "" {
		return nil
	}
	c, err := readConfig(filepath.Join(path, "config.json"))
	if err != nil {
		return cli.Usagef("-pretrained: %w", err)
	}
	current := newConfig(Options{Experiment: flags.Name(), Flags: flags})
	mayDiffer = append(
		mayDiffer, "pretrained", "dataset", "method", "seeds", "first-seed", "finetune-epochs",
		"finetune-lr", "backend", "tf32", "bf16",
	)
	if err := c.mixes(current, flags, true, mayDiffer...); err != nil {
		return cli.Usagef("-pretrained: %s holds another run: %w", path, err)
	}
	done, err := readJournal(filepath.Join(path, "done.jsonl"))
	if err != nil {
		return cli.Usagef("-pretrained: %w", err)
	}
	sums := map[string]string{} // of the files that its units wrote
	for _, u := range done {
		maps.Copy(sums, u.Files)
	}
	for _, file := range weights {
		rel, err := filepath.Rel(path, file)
		if err == nil {
			err = intact(path, filepath.ToSlash(rel), sums[filepath.ToSlash(rel)])
		}
		if err != nil {
			return cli.Usagef("-pretrained: %w", err)
		}
	}
	return nil
}
