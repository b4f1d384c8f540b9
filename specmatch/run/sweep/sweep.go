// Package sweep runs an experiment with many settings, on this machine or as a Slurm job array.
//
// A sweep is a small file. Its first line is the experiment with the flags of all runs. Each line
// "grid" lists values of one flag; the runs are all combinations. Each line "run" is one more run:
//
//	unsupervised -method infonce,specmatch -seeds 3
//	grid -beta 0.05 1
//	grid -p 50 80
//	run -beta 0.5 -p 90   # outside of the grid
//
// A word that starts with # starts a comment. Words with blanks or a leading # need single or double
// quotes, without escapes inside: grid -data "my sets" 'other sets'.
//
// Data sets and seeds are ordinary flags: in the first line they are rows and seeds of every run, in a
// grid they make separate runs.
//
// The mental model: every run is a run directory below that of the sweep, named by its flags. It is
// computed in shards, each a process of the experiment with -shard. The journals tell what remains to
// be done, so that a sweep that was interrupted, or whose file has grown, resumes when it is started
// again. There is no server. Locks keep two processes from the same sweep and the same run directory;
// a sweep waits for shards that an earlier start has left running.
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
	Name  string   // of its directory: the flags that differ from other runs
	Args  []string // without -out
	Units []string // names; see [Sweep.Prepare]
}

// Sweep is a list of runs of one experiment.
type Sweep struct {
	Dir        string `json:"-"`
	Experiment string
	Program    string // the experiment's executable; Prepare finds it
	Runs       []Run

	unlock func() error // of the directory, between Prepare and Close
}

// Limits of a sweep: the number of runs, since listing the units of each takes a start of the program,
// and the bytes of the file.
const (
	maxRuns  = 10000
	maxBytes = 1 << 20
)

// Parse reads the file of a sweep. Errors name the file and the line.
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
	p := &parser{grid: []Run{{}}}
	number := 0
	for line := range strings.Lines(string(data)) {
		number++
		if err := p.add(line); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, number, err)
		}
	}
	s, err := p.sweep()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return s, nil
}

// parser collects the lines of a sweep's file.
type parser struct {
	experiment string
	common     []string // flags of all runs
	grid       []Run    // all combinations of the lines "grid"
	gridded    bool     // there is such a line
	single     []Run    // of the lines "run"
}

// add parses a line.
func (p *parser) add(line string) error {
	words, err := split(line)
	if err != nil || len(words) == 0 {
		return err
	}
	if err := plain(words...); err != nil {
		return err
	}
	switch {
	case p.experiment == "":
		p.experiment = words[0]
		p.common = words[1:]
		return reserved(p.common)
	case words[0] == "grid":
		p.gridded = true
		if n := len(p.grid) * (len(words) - 2); n > maxRuns {
			return fmt.Errorf("the grid has %d runs: want at most %d", n, maxRuns)
		}
		p.grid, err = times(p.grid, words[1:])
	case words[0] == "run":
		var r Run
		r, err = one(words[1:])
		p.single = append(p.single, r)
	default:
		err = fmt.Errorf("%q: want grid or run", words[0])
	}
	return err
}

// sweep returns the sweep of all lines.
func (p *parser) sweep() (*Sweep, error) {
	if p.experiment == "" {
		return nil, errors.New("the file names no experiment")
	}
	s := &Sweep{Experiment: p.experiment, Runs: p.single}
	if p.gridded || len(p.single) == 0 {
		s.Runs = append(p.grid, p.single...)
	}
	if len(s.Runs) > maxRuns {
		return nil, fmt.Errorf("%d runs: want at most %d", len(s.Runs), maxRuns)
	}
	names := map[string]bool{}
	for i := range s.Runs {
		r := &s.Runs[i]
		r.Name = cmp.Or(r.Name, s.Experiment)
		r.Args = append(slices.Clone(p.common), r.Args...)
		if names[r.Name] {
			return nil, fmt.Errorf("two runs have the name %s", r.Name)
		}
		names[r.Name] = true
	}
	return s, nil
}

// split returns the words of a line, up to a comment. Quoted words may contain blanks and #.
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

// cutWord returns the first word of a line, without its quotes, and the rest of the line.
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

// times combines runs with the values of a flag.
func times(runs []Run, words []string) ([]Run, error) {
	if len(words) < 2 {
		return nil, errors.New("want a flag and its values, as in grid -beta 0.05 1")
	}
	var product []Run
	for _, r := range runs {
		for _, value := range words[1:] {
			next, err := one([]string{words[0], value})
			if err != nil {
				return nil, err
			}
			flag, _, _ := strings.Cut(next.Args[0], "=")
			if slices.ContainsFunc(r.Args, func(a string) bool { return strings.HasPrefix(a, flag+"=") }) {
				return nil, fmt.Errorf("%s already has a grid: write all its values in one line", flag)
			}
			next.Name = strings.TrimPrefix(r.Name+"+"+next.Name, "+")
			next.Args = append(slices.Clone(r.Args), next.Args...)
			product = append(product, next)
		}
	}
	return product, nil
}

// one parses the flags of a line "run".
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

// reserved returns an error for a flag that the sweep itself sets, or that asks for help.
func reserved(words []string) error {
	for _, w := range words {
		name, _, _ := strings.Cut(strings.TrimLeft(w, "-"), "=")
		switch {
		case !strings.HasPrefix(w, "-"):
		case slices.Contains([]string{"out", "shard", "list", "collect"}, name):
			return fmt.Errorf("-%s is set by the sweep itself", name)
		case name == "h" || name == "help":
			return fmt.Errorf("%s prints help and runs nothing", w)
		}
	}
	return nil
}

// plain returns an error if a word has control characters or is not UTF-8, and so cannot stand in a
// script.
func plain(words ...string) error {
	for _, w := range words {
		if !utf8.ValidString(w) || strings.ContainsFunc(w, unicode.IsControl) {
			return fmt.Errorf("%q has control characters or is not UTF-8", w)
		}
	}
	return nil
}

// experiments lists the programs that have -shard.
var experiments = []string{
	"ablation", "admet", "kernels", "selection", "semisupervised", "specmatch", "theory",
	"transfer", "unsupervised",
}

// find sets the program of the experiment, from the folder of this program or the PATH.
func (s *Sweep) find() error {
	if !slices.Contains(experiments, s.Experiment) {
		return fmt.Errorf("%q is no experiment: want one of %s; a command of specmatch is written with its "+
			"program, as in specmatch finetune",
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
		return fmt.Errorf("no program %s in this program's folder or the PATH: build both into one folder, "+
			"with go build -o bin ./experiments/%[1]s ./specmatch/cmd/specmatch", s.Experiment)
	}
	s.Program, err = filepath.Abs(path)
	return err
}

// plan is the file in its directory that stores a sweep.
const plan = "sweep.json"

// Files are the names of the files that a sweep writes in its directory.
var Files = []string{plan, costs}

// Prepare finds the program, creates the sweep's directory, and lists the units of runs that an
// earlier start has not listed. It locks the directory until Close; it returns an error if another
// process has it.
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
	if s.unlock != nil { // a killed start may have left files
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
			return earlier.Experiment == s.Experiment && o.Name == r.Name && slices.Equal(o.Args, r.Args)
		})
		if k >= 0 {
			r.Units = earlier.Runs[k].Units
		} else if err := s.list(r); err != nil {
			return err
		}
	}
	return files.WriteJSON(filepath.Join(dir, plan), s)
}

// Close unlocks the directory.
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

// Has reports whether the sweep has a run of that name. A run that was removed from the file does not
// count, although its directory remains.
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

// independent counts the units of a run that are not below another one (a/b is below a). About as many
// shards can run in parallel.
func (r Run) independent() int {
	n := 0
	for _, unit := range r.Units {
		if !slices.ContainsFunc(r.Units, func(o string) bool { return strings.HasPrefix(unit, o+"/") }) {
			n++
		}
	}
	return n
}

// Task is shard Share of N of a run. With N = 0 it is the whole run, which joins the shards.
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

// units returns the number of units of a task, or a bound if the shards of its run differ.
func (t Task) units() int {
	n := max(1, t.N)
	return (len(t.Run.Units) + n - 1) / n
}

func (s *Sweep) args(t Task) []string {
	args := append(slices.Clone(t.Run.Args), "-out", s.path(t.Run))
	if t.N > 0 {
		args = append(args, "-shard", fmt.Sprintf("%d/%d", t.Share, t.N))
	}
	return args
}

// Tasks splits every run into a number of shards, at most one per independent unit; 0 means one per
// independent unit.
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

// Gather returns the tasks that join the shards of each run.
func (s *Sweep) Gather() (tasks []Task) {
	for _, r := range s.Runs {
		tasks = append(tasks, Task{Run: r})
	}
	return tasks
}

// finished returns the number of finished units of a run, and their hours.
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
