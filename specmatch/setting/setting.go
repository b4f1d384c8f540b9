// Package setting declares settings: named values that flags set, and that run directories and model
// files record.
//
// The mental model: [New] declares a setting once, next to the code that reads it:
//
//	var tau = setting.New("tau", "temperature `τ` of the contrastive loss", setting.Positive, 0.2)
//
// Programs register a flag for every declared [Setting] and collect users' choices in [Values]. The
// code reads tau.Of(values), which is the default if no value is given. A [Parser] checks values from
// the command line, an earlier run or Go code.
package setting

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Setting is a declared setting, whatever the type of its values.
type Setting interface {
	// Name is the name of the flag, of the key in config.json and of the key in [Values].
	Name() string
	// OldName is a former name that command lines and old runs may use; "" is none.
	OldName() string
	// Usage explains the setting in a sentence. A name in `backquotes` stands for the value.
	Usage() string
	// Default returns the default value in a kind of experiment.
	Default(kind string) any
	// Parse parses a value. The error says what is wanted.
	Parse(text string) (any, error)
}

// Values holds the values of settings by name. An absent setting has its default.
type Values map[string]any

// With returns a copy of the values with changes.
func (v Values) With(changes Values) Values {
	changed := Values{}
	maps.Copy(changed, v)
	maps.Copy(changed, changes)
	return changed
}

// Resolved returns the values of all settings: the parsed values in v, and the defaults in a kind of
// experiment. A value in v may have the setting's type or be a text. It returns an error for an
// unknown name and for a value that the setting's parser refuses.
func (v Values) Resolved(settings []Setting, kind string) (Values, error) {
	resolved := Values{}
	for _, s := range settings {
		value, given := v[s.Name()]
		if !given {
			resolved[s.Name()] = s.Default(kind)
			continue
		}
		parsed, err := s.Parse(fmt.Sprint(value))
		if err != nil {
			return nil, fmt.Errorf("setting %s = %v: %w", s.Name(), value, err)
		}
		resolved[s.Name()] = parsed
	}
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if _, declared := resolved[name]; !declared {
			return nil, fmt.Errorf("there is no setting %q; the settings are %s",
				name, strings.Join(slices.Sorted(maps.Keys(resolved)), ", "))
		}
	}
	return resolved, nil
}

// Typed is a [Setting] with values of type T. Its parser must accept the text from [fmt.Sprint].
type Typed[T any] struct {
	name, oldName string
	usage         string
	parse         Parser[T]
	value         T
	byKind        map[string]T
}

// New declares a setting with its default value.
func New[T any](name, usage string, parse Parser[T], value T) *Typed[T] {
	return &Typed[T]{
		name:   name,
		usage:  usage,
		parse:  parse,
		value:  value,
		byKind: map[string]T{},
	}
}

// Flag declares a boolean setting that is off by default.
func Flag(name, usage string) *Typed[bool] { return New(name, usage, Bool, false) }

// In gives the setting another default in a kind of experiment.
func (s *Typed[T]) In(kind string, value T) *Typed[T] {
	s.byKind[kind] = value
	return s
}

// Formerly sets the setting's former name.
func (s *Typed[T]) Formerly(name string) *Typed[T] {
	s.oldName = name
	return s
}

// Name implements [Setting].
func (s *Typed[T]) Name() string { return s.name }

// OldName implements [Setting].
func (s *Typed[T]) OldName() string { return s.oldName }

// Usage implements [Setting].
func (s *Typed[T]) Usage() string { return s.usage }

// Default implements [Setting].
func (s *Typed[T]) Default(kind string) any { return s.usual(kind) }

func (s *Typed[T]) usual(kind string) T {
	if value, ok := s.byKind[kind]; ok {
		return value
	}
	return s.value
}

// Parse implements [Setting].
func (s *Typed[T]) Parse(text string) (any, error) { return s.parse(text) }

// Of returns the value in v, or the default if it is absent. It panics if the value is not of type T;
// values from [Values.Resolved] and from flags always are.
func (s *Typed[T]) Of(v Values) T {
	value, given := v[s.name]
	if !given {
		return s.value
	}
	typed, ok := value.(T)
	if !ok {
		panic(fmt.Sprintf("setting %s = %v: want a %T, have a %T", s.name, value, s.value, value))
	}
	return typed
}
