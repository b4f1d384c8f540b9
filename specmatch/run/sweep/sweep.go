// Package sweep runs an experiment with many settings: on this machine, or as a job
// array of Slurm.
//
// A sweep is a small file. Its first line is the experiment with the flags that all
// runs share; each line "grid" has values of one flag, and the runs are all
// combinations; each line "run" is one more run:
//
//	unsupervised -method infonce,specmatch -seeds 3
//	grid -beta 0.05 1
//	grid -p 50 80
//	run -beta 0.5 -p 90   # outside of the grid
//
// A # at the beginning of a word begins a comment. A word with blanks, or with a # at its beginning,
// stands in single or double quotes, which nothing within them escapes: grid -data "my sets" 'other sets'.
//
// Data sets and seeds are flags like others: in the first line they are rows and seeds
// of every run, in a grid they are runs of their own.
//
// The mental model: every run is a run directory below that of the sweep, named by its
// flags, and is done in shards, each a process of the experiment with -shard. What is
// left to do is what the journals do not have, so a sweep that was interrupted, or
// whose file has grown, goes on when it is started again. There is no server. Locks keep two
// processes from one sweep, and from one run directory: a shard that another start of the sweep
// has left running is waited for.
package sweep

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/tensor/files"
)

// Run is one setting.
type Run struct {
	Name  string   // of its directory: the flags in which it differs from others
	Args  []string // without -out
	Units []string // names; see [Sweep.Prepare]
}

// Sweep is the runs of one experiment.
type Sweep struct {
	Dir        string `json:"-"`
	Experiment string
	Program    string // the experiment's executable; Prepare finds it
	Runs       []Run

	unlock func() error // of the directory, between Prepare and Close
}

// The most that a sweep has: runs, as a start of the program lists the units of each, and bytes of its file.
const (
	maxRuns  = 10000
	maxBytes = 1 << 20
)

// Parse reads a sweep's file. Errors name it and the line.
func Parse(path string) (*Sweep, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s: more than %d bytes: is it a sweep?", path, maxBytes)
	}
	s := &Sweep{}
	var common []string
	grid := []Run{{}}
	var single []Run
	gridded := false
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		words, err := split(line)
		if err == nil && len(words) == 0 {
			continue
		}
		if err == nil {
			err = plain(words...)
		}
		switch {
		case err != nil:
		case s.Experiment == "":
			s.Experiment = words[0]
			common = words[1:]
			err = reserved(common)
		case words[0] == "grid":
			gridded = true
			if len(grid)*(len(words)-2) > maxRuns {
				err = fmt.Errorf("the grid has %d runs, and a sweep at most %d",
					len(grid)*(len(words)-2), maxRuns)
			} else {
				grid, err = times(grid, words[1:])
			}
		case words[0] == "run":
			var r Run
			r, err = one(words[1:])
			single = append(single, r)
		default:
			err = fmt.Errorf("%q: want grid or run", words[0])
		}
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	if s.Experiment == "" {
		return nil, fmt.Errorf("%s: there is no experiment in it", path)
	}
	s.Runs = single
	if gridded || len(single) == 0 {
		s.Runs = append(grid, single...)
	}
	if len(s.Runs) > maxRuns {
		return nil, fmt.Errorf("%s: %d runs are more than the %d that a sweep has at most",
			path, len(s.Runs), maxRuns)
	}
	names := map[string]bool{}
	for i := range s.Runs {
		r := &s.Runs[i]
		r.Name = cmp.Or(r.Name, s.Experiment)
		r.Args = append(slices.Clone(common), r.Args...)
		if names[r.Name] {
			return nil, fmt.Errorf("%s: two runs have the name %s", path, r.Name)
		}
		names[r.Name] = true
	}
	return s, nil
}

// split returns the words of a line, up to a comment. Quotes keep spaces and # in a word.
func split(line string) (words []string, err error) {
	for {
		line = strings.TrimLeftFunc(line, unicode.IsSpace)
		if line == "" || line[0] == '#' {
			return words, nil
		}
		var word string
		word, line, err = cutWord(line)
		if err != nil {
			return nil, err
		}
		words = append(words, word)
	}
}

// cutWord returns the word that a line begins with, without its quotes, and what follows it.
func cutWord(line string) (word, rest string, err error) {
	var b strings.Builder
	for line != "" {
		r, size := utf8.DecodeRuneInString(line)
		if unicode.IsSpace(r) {
			break
		}
		part := line[:size]
		line = line[size:]
		if part == `"` || part == "'" {
			var closed bool
			part, line, closed = strings.Cut(line, part)
			if !closed {
				return "", "", fmt.Errorf("the quote before %q has no end", strings.TrimSpace(part))
			}
		}
		b.WriteString(part)
	}
	return b.String(), line, nil
}

// times multiplies runs by the values of a flag.
func times(runs []Run, words []string) ([]Run, error) {
	if len(words) < 2 {
		return nil, errors.New("want a flag and its values, as in grid -beta 0.05 1")
	}
	var all []Run
	for _, r := range runs {
		for _, value := range words[1:] {
			next, err := one([]string{words[0], value})
			if err != nil {
				return nil, err
			}
			flag, _, _ := strings.Cut(next.Args[0], "=")
			if slices.ContainsFunc(
				r.Args, func(a string) bool { return strings.HasPrefix(a, flag+"=") },
			) {
				return nil, fmt.Errorf("%s has a grid already: write all its values in one line", flag)
			}
			next.Name = strings.TrimPrefix(r.Name+"+"+next.Name, "+")
			next.Args = append(slices.Clone(r.Args), next.Args...)
			all = append(all, next)
		}
	}
	return all, nil
}

func one(words []string) (r Run, err error) {
	if len(words) == 0 || len(words)%2 != 0 {
		return r, errors.New("want flags with values, as in run -beta 0.5 -p 90")
	}
	if err := reserved(words); err != nil {
		return r, err
	}
	var parts []string
	for i := 0; i < len(words); i += 2 {
		flag := strings.TrimLeft(words[i], "-")
		if flag == words[i] || flag == "" || strings.Contains(flag, "=") {
			return r, fmt.Errorf("%q: want a flag and its value as two words, as in -beta 1", words[i])
		}
		if slices.ContainsFunc(parts, func(p string) bool { return strings.HasPrefix(p, flag+"=") }) {
			return r, fmt.Errorf("-%s is given twice", flag)
		}
		parts = append(parts, flag+"="+words[i+1])
		r.Args = append(r.Args, "-"+flag+"="+words[i+1])
	}
	r.Name = strings.Map(func(c rune) rune {
		if strings.ContainsRune(`/\:*?"<>|, `, c) {
			return '_'
		}
		return c
	}, strings.Join(parts, "+"))
	return r, nil
}

// reserved returns an error if words have a flag that the sweep itself sets, or that asks for help.
func reserved(words []string) error {
	for _, w := range words {
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
		switch {
		case !strings.HasPrefix(w, "-"):
		case slices.Contains([]string{"out", "shard", "list", "collect"}, name):
			return fmt.Errorf("-%s is the sweep's own", name)
		case name == "h" || name == "help":
			return fmt.Errorf("%s explains an experiment and runs nothing", w)
		}
	}
	return nil
}

// plain returns an error if a word has control characters or is not UTF-8: it could not be a line
// of a script.
func plain(words ...string) error {
	for _, w := range words {
		if !utf8.ValidString(w) || strings.ContainsFunc(w, unicode.IsControl) {
			return fmt.Errorf("%q has control characters or is not UTF-8", w)
		}
	}
	return nil
}

// experiments are the programs that know shards.
var experiments = []string{
	"ablation", "admet", "kernels", "selection", "semisupervised", "specmatch", "theory",
	"transfer", "unsupervised",
}

// find sets the program of the experiment: beside this one, or in the PATH.
func (s *Sweep) find() error {
	if !slices.Contains(experiments, s.Experiment) {
		return fmt.Errorf("%q is no experiment: want one of %s",
			s.Experiment, strings.Join(experiments, ", "))
	}
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), s.Experiment+filepath.Ext(self))
		if _, err := os.Stat(beside); err == nil {
			s.Program = beside
			return nil
		}
	}
	path, err := exec.LookPath(s.Experiment)
	if err != nil {
		return fmt.Errorf(
			"there is no program %s beside this one, nor in the PATH: build both into one folder, as "+
				"by go build -o bin ./experiments/%[1]s ./specmatch/cmd/specmatch",
			s.Experiment,
		)
	}
	s.Program, err = filepath.Abs(path)
	return err
}

// plan is the file that holds a sweep in its directory.
const plan = "sweep.json"

// Prepare finds the program, makes the sweep's directory, and lists the units of all runs
// unless an earlier start has. It is an error if another process has the directory, until that
// calls Close or ends.
func (s *Sweep) Prepare(dir string) (err error) {
	if s.Program == "" {
		if err := s.find(); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	s.unlock, err = files.Lock(dir)
	if err != nil {
		return fmt.Errorf("%s: %w: is the sweep running already?", dir, err)
	}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.unlock != nil { // what a start that was killed has left
		if err := files.Sweep(filepath.Join(dir, plan)); err != nil {
			return err
		}
	}
	earlier, err := Open(dir)
	if errors.Is(err, os.ErrNotExist) {
		earlier = &Sweep{}
		err = nil
	}
	if err != nil {
		return err
	}
	s.Dir = dir
	for i := range s.Runs {
		r := &s.Runs[i]
		k := slices.IndexFunc(earlier.Runs, func(o Run) bool {
			return o.Name == r.Name && slices.Equal(o.Args, r.Args)
		})
		if k >= 0 {
			r.Units = earlier.Runs[k].Units
		} else if err := s.list(r); err != nil {
			return err
		}
	}
	return files.WriteJSON(filepath.Join(dir, plan), s)
}

// Close lets others have the directory.
func (s *Sweep) Close() error {
	if s.unlock == nil {
		return nil
	}
	return s.unlock()
}

// Open reads the sweep in a directory.
func Open(dir string) (*Sweep, error) {
	path := filepath.Join(dir, plan)
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s := &Sweep{Dir: dir}
	if err := json.Unmarshal(data, s); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// Has reports whether the sweep has a run of that name. A run that was taken out of the file
// is not one, though its directory stays.
func (s *Sweep) Has(name string) bool {
	return slices.ContainsFunc(s.Runs, func(r Run) bool { return r.Name == name })
}

func (s *Sweep) list(r *Run) error {
	c := exec.Command(s.Program, append(slices.Clone(r.Args), "-out", s.path(*r), "-list")...)
	var stdout, stderr bytes.Buffer
	c.Stdout = &stdout
	c.Stderr = &stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", r.Name, err, strings.TrimSpace(stderr.String()))
	}
	for line := range strings.Lines(stdout.String()) {
		name, _, ok := strings.Cut(line, "\t")
		if !ok {
			return fmt.Errorf("%s: %s -list prints %q, which is no unit", r.Name, s.Experiment, line)
		}
		r.Units = append(r.Units, name)
	}
	return nil
}

func (s *Sweep) path(r Run) string { return filepath.Join(s.Dir, r.Name) }

// independent counts the units of a run that are not below another one, a/b below a:
// about as many shards can work side by side.
func (r Run) independent() int {
	n := 0
	for _, unit := range r.Units {
		if !slices.ContainsFunc(r.Units, func(o string) bool { return strings.HasPrefix(unit, o+"/") }) {
			n++
		}
	}
	return n
}

// Task is a shard of a run. Of 0 is all of it: what puts the shards together.
type Task struct {
	Run      Run
	Share, N int
}

func (t Task) name() string {
	if t.N == 0 {
		return t.Run.Name
	}
	return fmt.Sprintf("%s-%d-of-%d", t.Run.Name, t.Share, t.N)
}

func (s *Sweep) args(t Task) []string {
	args := append(slices.Clone(t.Run.Args), "-out", s.path(t.Run))
	if t.N > 0 {
		args = append(args, "-shard", fmt.Sprintf("%d/%d", t.Share, t.N))
	}
	return args
}

// Tasks divides every run into that many shards, or into fewer if it has fewer units
// that can run side by side; 0 makes as many as there are of these.
func (s *Sweep) Tasks(shares int) (tasks []Task) {
	for _, r := range s.Runs {
		n := r.independent()
		if shares > 0 {
			n = min(n, shares)
		}
		for i := range n {
			tasks = append(tasks, Task{r, i, n})
		}
	}
	return tasks
}

// Gather are the tasks that put the shards of the runs together.
func (s *Sweep) Gather() (tasks []Task) {
	for _, r := range s.Runs {
		tasks = append(tasks, Task{Run: r})
	}
	return tasks
}

// finished returns how many units of a run are finished, and the hours that they took.
func (s *Sweep) finished(r Run) (units int, hours float64, err error) {
	seconds, err := run.Finished(s.path(r))
	for _, unit := range r.Units {
		if took, ok := seconds[unit]; ok {
			units++
			hours += took / 3600
		}
	}
	return units, hours, err
}

func (s *Sweep) done() (units int, err error) {
	for _, r := range s.Runs {
		n, _, e := s.finished(r)
		units += n
		err = cmp.Or(err, e)
	}
	return units, err
}
