package cli

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"

	"github.com/specmatch/specmatch/specmatch/setting"
)

// FlagSet is a [flag.FlagSet] that returns its errors and explains itself.
type FlagSet struct {
	*flag.FlagSet
	synopsis string
	command  string // what a user types; "" means go run of the experiment
	examples []string
	env      map[string]string // flag name → environment variable
	checks   []func() error    // of flags that depend on one another
	given    map[string]bool   // by the command line or the environment

	// For resuming a run: the roles of the flags, and the names of the flags with the
	// first seed and the number of seeds.
	roles        map[string]role
	words        []string // see Files
	first, count string
	inputs       map[string]string // see Input
	oldNames     map[string]string // former name → name
	shorts       map[string]string // short form → name
	earlier      map[string]string // flag name → value in runs that did not have it yet
	arguments    []string          // see Arguments
	help         help

	small []small

	afterParse []func(given map[string]bool) error
	skipsData  func() bool // nil is never
}

// small is a second set of defaults for some kind of run.
type small struct {
	when   string // describes the kind
	holds  func() bool
	values map[string]string
}

// NewFlagSet returns an empty flag set for the experiment of that name. The help text shows the
// synopsis and the examples, at least one; each is a list of flags.
func NewFlagSet(name, synopsis string, examples ...string) *FlagSet {
	f := &FlagSet{
		FlagSet:  flag.NewFlagSet(name, flag.ContinueOnError),
		synopsis: synopsis,
		examples: examples,
		env:      map[string]string{},
		roles:    map[string]role{},
		inputs:   map[string]string{},
		oldNames: map[string]string{},
		shorts:   map[string]string{},
		earlier:  map[string]string{},
	}
	f.SetOutput(io.Discard) // errors are returned, help goes to stdout
	f.Usage = func() {}
	return f
}

// RunFrom names the folder of the program in the module, for the help text; it is experiments/NAME by default.
func (f *FlagSet) RunFrom(folder string) { f.command = "go run ./" + folder }

// Group is a set of flags that belong together.
type Group interface {
	// Register adds the flags to f, with the group's fields as defaults.
	Register(f *FlagSet)
}

// Add registers the groups.
func (f *FlagSet) Add(groups ...Group) {
	for _, g := range groups {
		g.Register(f)
	}
}

// Var defines a flag that parses its argument into p. The present value of p is the default. In the
// usage, a name in `backquotes` stands for the argument.
func Var[T any](f *FlagSet, p *T, name string, parse setting.Parser[T], usage string) {
	f.Var(&value[T]{p, parse}, name, usage)
}

// Env makes an environment variable the source of a flag that the command line does not set. An empty
// variable counts as unset.
func (f *FlagSet) Env(name, variable string) { f.env[name] = variable }

// Check makes Parse call check at its end, for flags that depend on one another.
func (f *FlagSet) Check(check func() error) { f.checks = append(f.checks, check) }

// Parse parses args and the environment, and then merges the flags of the run in -out, if there is
// one: a flag that is not given gets the run's value; a given one must equal it, or is added to it if
// it [FlagSet.Grows]. For -h it prints help to stdout and returns [flag.ErrHelp]. Mistakes are
// returned as a [UsageError] with the flag and the value.
func (f *FlagSet) Parse(args []string, stdout io.Writer) error {
	switch err := f.parseArguments(args); {
	case errors.Is(err, flag.ErrHelp):
		if err := f.writeHelp(stdout, f.Arg(0)); err != nil {
			return err
		}
		return flag.ErrHelp
	case err != nil:
		return f.explainError(err)
	}
	given := f.givenNames()
	f.given = given
	err := f.checkShorts()
	f.VisitAll(func(fl *flag.Flag) {
		variable := f.env[fl.Name]
		s := os.Getenv(variable)
		if s == "" || given[fl.Name] || err != nil {
			return
		}
		if e := f.Set(fl.Name, s); e != nil {
			err = Usagef("invalid value %q for environment variable %s: %w", s, variable, e)
		}
		given[fl.Name] = true
	})
	for _, hook := range f.afterParse {
		if err == nil {
			err = hook(given)
		}
	}
	for _, s := range f.small {
		if err == nil && s.holds() {
			err = f.setUngiven(s.values)
		}
	}
	for _, check := range f.checks {
		if err == nil {
			err = check()
		}
	}
	return err
}

// names returns the names of all flags, sorted.
func (f *FlagSet) names() (names []string) {
	f.VisitAll(func(fl *flag.Flag) { names = append(names, fl.Name) })
	return names
}

// Given reports whether the command line or the environment sets one of the flags.
func (f *FlagSet) Given(names ...string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return f.given[name] })
}

// Small sets other defaults for runs for which holds returns true; Parse calls it once the flags are
// set. when describes such runs in the help text.
func (f *FlagSet) Small(when string, holds func() bool, values map[string]string) {
	f.small = append(f.small, small{when, holds, values})
}

// setUngiven sets the flags in values that neither the command line, nor the environment, nor a
// resumed run has set.
func (f *FlagSet) setUngiven(values map[string]string) error {
	given := f.givenNames()
	for name, value := range values {
		if given[name] {
			continue
		}
		if err := f.Set(name, value); err != nil {
			return fmt.Errorf("cli: default of -%s: %w", name, err)
		}
	}
	return nil
}

// AfterParse makes Parse call hook after the command line and the environment have been read, and
// before second defaults and checks. given has the names of the flags that are set; hook may set more.
func (f *FlagSet) AfterParse(hook func(given map[string]bool) error) {
	f.afterParse = append(f.afterParse, hook)
}

// SkipsData sets the function that reports whether the command reads no data.
func (f *FlagSet) SkipsData(skips func() bool) { f.skipsData = skips }

// Collecting reports whether the command reads no data, because it only collects finished units. It
// returns false for a nil FlagSet, as in tests of experiments.
func (f *FlagSet) Collecting() bool {
	return f != nil && f.skipsData != nil && f.skipsData()
}

// Input records the SHA-256 sum, in hexadecimal, of a file that the run reads. The name should not
// depend on the file's folder.
func (f *FlagSet) Input(name, sum string) { f.inputs[name] = sum }

// Inputs returns the sums by name.
func (f *FlagSet) Inputs() map[string]string { return f.inputs }

type value[T any] struct {
	p     *T
	parse setting.Parser[T]
}

// String returns the command-line text of the value; a list is joined by commas, see [setting.JoinList].
func (v *value[T]) String() string {
	if v.p == nil { // package flag asks a zero value for its default
		return ""
	}
	r := reflect.ValueOf(*v.p)
	if r.Kind() != reflect.Slice {
		return fmt.Sprint(*v.p)
	}
	elements := make([]string, r.Len())
	for i := range elements {
		elements[i] = fmt.Sprint(r.Index(i))
	}
	return setting.JoinList(elements)
}

func (v *value[T]) Set(s string) error {
	x, err := v.parse(s)
	if err == nil {
		*v.p = x
	}
	return err
}

func (v *value[T]) Get() any { return *v.p }
