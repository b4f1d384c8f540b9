package training

import (
	"slices"
	"strings"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// Settings are the switches of methods, as flags set them.
type Settings struct {
	Options    method.Options // of all flags that are registered
	OwnRecipes bool           // methods with a [method.Recipe] train by it
}

// Register defines a flag for every setting that one of the methods reads in a regime, except for
// those that the program sets itself. Values that Options already has are the defaults. A flag that is
// given and that none of the chosen methods reads is a usage error, as are options that contradict one
// another for a chosen method.
func (s *Settings) Register(
	f *cli.FlagSet, r method.Regime, names []string, chosen func() []string, except ...setting.Setting,
) {
	var methods []*method.Method
	for _, name := range names {
		if m, err := method.Get(name); err == nil { // rows without a method have no settings
			methods = append(methods, m)
		}
	}
	if s.Options == nil {
		s.Options = method.Options{}
	}
	registered := slices.DeleteFunc(method.Settings(methods, r), func(x setting.Setting) bool {
		return slices.Contains(except, x)
	})
	f.Settings(s.Options, string(r), registered...)
	f.Check(func() error {
		names := chosen()
		for _, x := range registered {
			if f.Given(x.Name()) && len(names) > 0 &&
				!slices.ContainsFunc(names, func(name string) bool { return s.reads(name, x, r) }) {
				return cli.Usagef("-%s has no effect on %s", x.Name(), strings.Join(names, ", "))
			}
		}
		for _, name := range names {
			if m, err := method.Get(name); err == nil {
				if err := m.Check(r, s.Options); err != nil {
					return &cli.UsageError{Err: err}
				}
			}
		}
		return nil
	})
	f.Topics("METHOD for the settings of one method", func(name string) (title string, flags []string) {
		i := slices.IndexFunc(methods, func(m *method.Method) bool {
			return m.Name == name
		})
		if i < 0 {
			return "", nil
		}
		for _, x := range methods[i].Reads(method.Setup{Regime: r, Options: s.Options}) {
			flags = append(flags, x.Name())
		}
		return methods[i].Title, flags
	})
}

// reads reports whether a method reads a setting; true for one that package method does not know,
// such as training with labels alone.
func (s *Settings) reads(name string, x setting.Setting, r method.Regime) bool {
	m, err := method.Get(name)
	return err != nil || slices.Contains(m.Reads(method.Setup{Regime: r, Options: s.Options}), x)
}

// RegisterRecipes registers the switch between the methods' own recipes and one for all.
func (s *Settings) RegisterRecipes(f *cli.FlagSet, r method.Regime) {
	f.BoolVar(&s.OwnRecipes, "own-recipes", s.OwnRecipes,
		"methods whose papers train otherwise do so ("+method.Recipes(r, method.Names(r))+
			");\nfalse: all train alike")
	trainsOtherwise := func() bool { return f.Given("epochs", "lr", "layers") }
	f.Small("with -epochs, -lr or -layers", trainsOtherwise, map[string]string{"own-recipes": "false"})
}

// Note returns the sentence of a table's caption on methods that train by recipes of their own, ""
// without any.
func (s *Settings) Note(r method.Regime, methods []string) string {
	recipes := method.Recipes(r, methods)
	if recipes == "" || !s.OwnRecipes {
		return ""
	}
	return " By recipes of their own: " + recipes + "."
}
