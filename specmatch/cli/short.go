package cli

import (
	"encoding/json"
	"flag"
	"strconv"
	"strings"
)

// Short defines a short form of a flag: with a value, a switch that gives it to the flag; without one, a flag
// for the argument of the other. Help and runs know the flag alone.
func (f *FlagSet) Short(name, target, value string) {
	f.FlagSet.Var(&shortForm{f, target, value}, name, "")
	f.shorts[name] = target
}

// shortForm is the value of a short form.
type shortForm struct {
	set           *FlagSet
	target, value string
}

func (s *shortForm) String() string { return "" }

func (s *shortForm) IsBoolFlag() bool { return s.value != "" }

func (s *shortForm) Set(text string) error {
	if s.value != "" {
		if on, err := strconv.ParseBool(text); !on {
			return err
		}
		text = s.value
	}
	return s.set.Lookup(s.target).Value.Set(text)
}

// checkShorts returns an error if a flag is set by two names.
func (f *FlagSet) checkShorts() error {
	names := map[string][]string{}
	f.Visit(func(fl *flag.Flag) {
		target := fl.Name
		if full, ok := f.shorts[fl.Name]; ok {
			target = full
		}
		names[target] = append(names[target], "-"+fl.Name)
	})
	for target := range names {
		if len(names[target]) > 1 {
			return Usagef("%s both set -%s: leave out one of them", strings.Join(names[target], " and "), target)
		}
	}
	return nil
}

// expand gives a flag the values that earlier runs had by its short forms.
func (f *FlagSet) expand(flags map[string]json.RawMessage) {
	for name, target := range f.shorts {
		recorded, ok := flags[name]
		delete(flags, name)
		text := strings.Join(elements(recorded), ",")
		s := f.Lookup(name).Value.(*shortForm)
		switch {
		case !ok || text == "" || s.value != "" && text != "true":
			continue
		case s.value != "":
			text = s.value
		}
		flags[target], _ = json.Marshal(text) // a text has an encoding
	}
}
