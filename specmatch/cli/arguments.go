package cli

import (
	"errors"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/suggest"
)

// Arguments names the flags that arguments without a flag stand for, in their order: with in and out,
// "embed a.csv b.npy" is "embed -in a.csv -out b.npy".
func (f *FlagSet) Arguments(names ...string) { f.arguments = names }

// parseArguments parses flags and, between them, arguments without a flag.
func (f *FlagSet) parseArguments(args []string) error {
	var bare []string
	for {
		if err := f.FlagSet.Parse(args); err != nil {
			return err
		}
		if f.NArg() == 0 {
			return f.place(bare)
		}
		bare = append(bare, f.Arg(0))
		args = f.Args()[1:]
	}
}

// place gives arguments without a flag to the flags of [FlagSet.Arguments] that are not given.
func (f *FlagSet) place(bare []string) error {
	given := f.givenNames()
	var free []string
	for _, name := range f.arguments {
		if !given[name] {
			free = append(free, name)
		}
	}
	for i, argument := range bare {
		if i >= len(free) || argument == "true" || argument == "false" {
			return f.unexpected(argument)
		}
		if err := f.Set(free[i], argument); err != nil {
			return Usagef("invalid value %q for flag -%s: %w", argument, free[i], err)
		}
	}
	return nil
}

// unexpected returns the error about an argument that belongs to no flag. It names the flags that take
// files.
func (f *FlagSet) unexpected(argument string) error {
	var flags []string
	given := f.givenNames()
	for _, name := range []string{"in", "model", "out"} {
		if f.Lookup(name) != nil && !given[name] {
			flags = append(flags, "-"+name+" "+argument)
		}
	}
	switch {
	case argument == "true" || argument == "false":
		return Usagef("unexpected argument %q: a switch takes its value after =, as in -strict=%[1]s", argument)
	case len(flags) > 0:
		return Usagef("unexpected argument %q: every value follows its flag, as in %s",
			argument, strings.Join(flags, " or "))
	case f.Lookup("model") != nil && strings.HasSuffix(argument, ".safetensors"):
		return Usagef("unexpected argument %q: several models are one value, as in -model A,B or -model RUN", argument)
	}
	return Usagef("unexpected argument %q: every value follows its flag", argument)
}

// explainError returns a [UsageError] for an error of package flag. For an unknown flag it names the
// nearest one.
func (f *FlagSet) explainError(err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if usage := new(UsageError); errors.As(err, &usage) {
		return err
	}
	if !unknown {
		return &UsageError{err}
	}
	nearest, ok := suggest.Nearest(name, f.names())
	if ok {
		return Usagef("there is no flag -%s; did you mean -%s?", name, nearest)
	}
	return Usagef("there is no flag -%s", name)
}
