package cli

import (
	"flag"
	"fmt"
	"maps"
	"reflect"

	"encoding/json"

	"github.com/specmatch/specmatch/specmatch/setting"
)

// Settings defines a flag for every setting, and a hidden flag for its old name. The flags set values,
// which must not be nil. The default is the present value, or else that of the kind of experiment.
func (f *FlagSet) Settings(values setting.Values, kind string, settings ...setting.Setting) {
	for _, s := range settings {
		if _, ok := values[s.Name()]; !ok {
			values[s.Name()] = s.Default(kind)
		}
		value := &settingValue{s, values}
		f.Var(value, s.Name(), s.Usage())
		if old := s.OldName(); old != "" {
			f.FlagSet.Var(value, old, "")
			f.oldNames[old] = s.Name()
		}
	}
}

// settingValue is a flag that sets the value of a setting.
type settingValue struct {
	setting setting.Setting
	values  setting.Values
}

// String returns the command-line text of the value.
func (v *settingValue) String() string {
	if v.setting == nil { // package flag asks a zero value for its default
		return ""
	}
	return fmt.Sprint(v.Get())
}

func (v *settingValue) Set(text string) error {
	parsed, err := v.setting.Parse(text)
	if err == nil {
		v.values[v.setting.Name()] = parsed
	}
	return err
}

func (v *settingValue) Get() any { return v.values[v.setting.Name()] }

// IsBoolFlag reports whether the flag without a value means true.
func (v *settingValue) IsBoolFlag() bool {
	_, ok := v.Get().(bool)
	return ok
}

// VisitAll calls visit for every flag in the order of names, without old names and short forms.
func (f *FlagSet) VisitAll(visit func(*flag.Flag)) {
	f.FlagSet.VisitAll(func(fl *flag.Flag) {
		_, old := f.oldNames[fl.Name]
		_, short := f.shorts[fl.Name]
		if !old && !short {
			visit(fl)
		}
	})
}

// givenNames returns the names of the flags that have been set, also by an old name.
func (f *FlagSet) givenNames() map[string]bool {
	given := map[string]bool{}
	f.Visit(func(fl *flag.Flag) {
		name := fl.Name
		if current, old := f.oldNames[name]; old {
			name = current
		}
		if full, short := f.shorts[name]; short {
			name = full
		}
		given[name] = true
	})
	return given
}

// renamed returns the flags of an earlier run by their present names.
func (f *FlagSet) renamed(flags map[string]json.RawMessage) map[string]json.RawMessage {
	flags = maps.Clone(flags)
	if flags == nil { // of a config.json without flags
		flags = map[string]json.RawMessage{}
	}
	for old, name := range f.oldNames {
		if value, ok := flags[old]; ok {
			delete(flags, old)
			flags[name] = value
		}
	}
	f.expand(flags)
	for name, value := range f.earlier {
		if _, ok := flags[name]; !ok {
			flags[name], _ = json.Marshal(value) // a string has an encoding
		}
	}
	return flags
}

// Earlier says which value of a flag describes runs of versions that did not have the flag.
func (f *FlagSet) Earlier(name, value string) { f.earlier[name] = value }

// Description describes a flag for other programs.
type Description struct {
	Name    string          `json:"name"`
	Old     string          `json:"old,omitempty"` // its former name
	Type    string          `json:"type"`          // bool, int, float, list or text
	Default json.RawMessage `json:"default"`
	Usage   string          `json:"usage"`
	Group   string          `json:"group,omitempty"` // "method" for the settings of methods
	// Second are the defaults in special runs, such as those of molecules.
	Second []SecondDefault `json:"second,omitempty"`
}

// SecondDefault is a default of some runs.
type SecondDefault struct {
	When    string `json:"when"`
	Default string `json:"default"`
}

// Describe describes the flags, with their present values as defaults.
func (f *FlagSet) Describe() (descriptions []Description) {
	f.VisitAll(func(fl *flag.Flag) {
		_, usage := flag.UnquoteUsage(fl)
		d := Description{
			Name:    fl.Name,
			Type:    typeOf(fl.Value),
			Default: Resolved(fl),
			Usage:   usage,
			Second:  f.secondDefaults(fl.Name),
		}
		if _, ok := fl.Value.(*settingValue); ok {
			d.Group = "method"
		}
		for old, name := range f.oldNames {
			if name == fl.Name {
				d.Old = old
			}
		}
		descriptions = append(descriptions, d)
	})
	return descriptions
}

// secondDefaults returns the defaults of a flag in special runs.
func (f *FlagSet) secondDefaults(name string) (second []SecondDefault) {
	for _, s := range f.small {
		if value, ok := s.values[name]; ok {
			second = append(second, SecondDefault{s.when, value})
		}
	}
	return second
}

func typeOf(v flag.Value) string {
	g, ok := v.(flag.Getter)
	if !ok {
		return "text"
	}
	switch kind := reflect.ValueOf(g.Get()).Kind(); kind {
	case reflect.Bool:
		return "bool"
	case reflect.Int:
		return "int"
	case reflect.Float64:
		return "float"
	case reflect.Slice:
		return "list"
	}
	return "text"
}
