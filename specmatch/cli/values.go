package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/specmatch/setting"
)

// role is the treatment of a flag when a run is resumed.
type role int

const (
	fixed role = iota // results depend on it: it must not change
	list              // new entries are added to the run's
	free              // no result depends on it
	once              // free, and not inherited from the run
	file              // free, if both runs have one: its contents are compared instead
)

// Grows marks list flags, such as -method, whose entries have separate results. When a run is
// resumed, new entries are added to the run's.
func (f *FlagSet) Grows(names ...string) { f.mark(list, names) }

// Free marks flags that results do not depend on, such as paths.
func (f *FlagSet) Free(names ...string) { f.mark(free, names) }

// Files marks flags with the path of a file that a run can do without. The path may change, since the contents
// are compared instead, see [FlagSet.Input]; but a run that had the file has it again, and one without it has none.
// A text in words stands for no file, and must not change.
func (f *FlagSet) Files(words []string, names ...string) {
	f.mark(file, names)
	f.words = append(f.words, words...)
}

func (f *FlagSet) mark(r role, names []string) {
	for _, name := range names {
		f.roles[name] = r
	}
}

// Once marks flags that results do not depend on and that concern a single start: a resumed run
// does not inherit their values.
func (f *FlagSet) Once(names ...string) { f.mark(once, names) }

// GrowsRange marks two flags that together form a range of whole numbers: the first one and the
// count. When a run is resumed, the range may grow.
func (f *FlagSet) GrowsRange(first, count string) {
	f.first = first
	f.count = count
}

// Merge sets the flags to resume a run that had the flags previous. A flag that is not given gets
// the run's value. Lists and ranges that are given are added to the run's, which come first. If
// merged is true, an earlier call has merged another run, and the present values come first. Errors
// mention the run's name. Afterwards the run's flags count as given, so that the next run can add to
// its lists and seeds.
func (f *FlagSet) Merge(name string, previous map[string]json.RawMessage, given map[string]bool, merged bool) error {
	previous = f.renamed(previous)
	if err := f.addRange(name, previous, given); err != nil {
		return err
	}
	var err error
	f.VisitAll(func(fl *flag.Flag) {
		old, ok := previous[fl.Name]
		role := f.roles[fl.Name]
		if !ok || err != nil || role == once || fl.Name == f.first || fl.Name == f.count {
			return
		}
		if !given[fl.Name] {
			err = f.setTo(fl, elements(old))
			return
		}
		union := elements(old)
		// An empty list is the synthetic set, which has no name to add to.
		if role != list || len(union) == 0 {
			return
		}
		added := elements(Resolved(fl))
		if merged {
			union, added = added, union
		}
		for _, x := range added {
			if !slices.Contains(union, x) {
				union = append(union, x)
			}
		}
		err = f.setTo(fl, union)
	})
	for name := range previous {
		given[name] = true
	}
	return err
}

// addRange sets the range of seeds to the union of the run's range and the given one.
func (f *FlagSet) addRange(dir string, previous map[string]json.RawMessage, given map[string]bool) error {
	if f.first == "" {
		return nil
	}
	old, ok := f.rangeOf(previous)
	if !ok {
		return nil
	}
	current, _ := f.rangeOf(f.All())
	if !given[f.first] {
		current.first = old.first
	}
	if !given[f.count] {
		current.n = old.n
	}
	lo, hi := min(old.first, current.first), max(old.end(), current.end())
	if max(old.first, current.first) > min(old.end(), current.end()) {
		return Usagef("-%s %d -%s %d leaves a gap: the run in %s has the seeds %d to %d; want -%s %d -%s %d for all",
			f.first, current.first, f.count, current.n, dir, old.first, old.end()-1, f.first, lo, f.count, hi-lo)
	}
	return errors.Join(f.Set(f.first, strconv.Itoa(lo)), f.Set(f.count, strconv.Itoa(hi-lo)))
}

// interval is the range of whole numbers first … first+n-1.
type interval struct{ first, n int }

func (r interval) end() int {
	if r.first > math.MaxInt-r.n { // refused by the group's own check
		return math.MaxInt
	}
	return r.first + r.n
}

func (f *FlagSet) rangeOf(values map[string]json.RawMessage) (r interval, ok bool) {
	err := errors.Join(json.Unmarshal(values[f.first], &r.first), json.Unmarshal(values[f.count], &r.n))
	return r, err == nil
}

// setTo sets a flag to the elements of an earlier value. It skips a value without elements, such as
// that of -out if it was not given.
func (f *FlagSet) setTo(fl *flag.Flag, elements []string) error {
	text := strings.Join(elements, ",")
	if isList(fl) {
		text = setting.JoinList(elements)
	}
	if text == "" {
		return nil
	}
	if err := f.Set(fl.Name, text); err != nil {
		return fmt.Errorf("-%s %q: %s", fl.Name, Shorten(text), Shorten(err.Error()))
	}
	return nil
}

// isList reports whether a flag's value is a list, in which a comma separates elements.
func isList(fl *flag.Flag) bool {
	g, ok := fl.Value.(flag.Getter)
	return ok && reflect.ValueOf(g.Get()).Kind() == reflect.Slice
}

// Compare returns an error unless a run with the flags previous can be resumed with the flags of f.
// The error names the first flag that prevents it: a flag that results depend on and that differs, a
// list that lacks an entry, a flag that f does not have, or a new flag whose value in f is not the
// default. Flags in mayDiffer are not compared.
func (f *FlagSet) Compare(previous map[string]json.RawMessage, mayDiffer ...string) error {
	previous = f.renamed(previous)
	current := f.All()
	union := maps.Clone(current)
	maps.Copy(union, previous)
	for _, name := range slices.Sorted(maps.Keys(union)) {
		if slices.Contains(mayDiffer, name) {
			continue
		}
		if err := f.compareFlag(name, previous, current); err != nil {
			return err
		}
	}
	return nil
}

// compareFlag returns an error if a flag prevents that a run is resumed, see [FlagSet.Compare].
func (f *FlagSet) compareFlag(name string, previous, current map[string]json.RawMessage) error {
	old, recorded := previous[name]
	v, ok := current[name]
	switch r := f.roles[name]; {
	case !ok:
		return fmt.Errorf("-%s was %s, and this version has no such flag", name, Show(old))
	case r == free || r == once:
	case r == file && !f.sameFile(old, v):
		return fmt.Errorf("-%s was %s, now it is %s", name, given(old), given(v))
	case r == file:
	case name == f.first || name == f.count:
		a, _ := f.rangeOf(previous)
		if b, ok := f.rangeOf(current); !ok || b.first > a.first || b.end() < a.end() {
			return fmt.Errorf("the seeds were %d to %d, now they are %d to %d",
				a.first, a.end()-1, b.first, b.end()-1)
		}
	case !recorded:
		if fl := f.Lookup(name); fl.Value.String() != fl.DefValue {
			return fmt.Errorf("-%s was unknown, now it is %s", name, Show(v))
		}
	case r == list && len(elements(old)) > 0:
		for _, x := range elements(old) {
			if !slices.Contains(elements(v), x) {
				return fmt.Errorf("-%s was %s, now it is %s", name, Show(old), Show(v))
			}
		}
	case !slices.Equal(elements(old), elements(v)):
		return fmt.Errorf("-%s was %s, now it is %s", name, Show(old), Show(v))
	}
	return nil
}

// sameFile reports whether two values of a flag marked by [FlagSet.Files] both name a file, or are equal.
func (f *FlagSet) sameFile(old, current json.RawMessage) bool {
	isFile := func(e []string) bool { return len(e) > 0 && !slices.Contains(f.words, e[0]) }
	first := elements(old)
	second := elements(current)
	return isFile(first) && isFile(second) || slices.Equal(first, second)
}

// given is [Show] for flags with a value such as none, which is not the same as no value.
func given(v json.RawMessage) string {
	if len(elements(v)) == 0 {
		return "not given"
	}
	return Show(v)
}

// All returns the values of all flags by name, see [Resolved].
func (f *FlagSet) All() map[string]json.RawMessage {
	values := map[string]json.RawMessage{}
	f.VisitAll(func(fl *flag.Flag) { values[fl.Name] = Resolved(fl) })
	return values
}

// Resolved encodes a flag's value as JSON of its type, such as 128 or ["MUTAG"], or as the text of
// its String method, such as "float32".
func Resolved(fl *flag.Flag) json.RawMessage {
	var v any = fl.Value.String()
	if g, ok := fl.Value.(flag.Getter); ok {
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
	if err != nil { // NaN, which JSON lacks, becomes a text
		data, _ = json.Marshal(fl.Value.String())
	}
	return data
}

// elements returns the command-line texts of a value encoded by [Resolved]: one for each entry of a
// list, none for an empty value.
func elements(v json.RawMessage) []string {
	var x any
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	if d.Decode(&x) != nil || x == nil || x == "" {
		return nil
	}
	entries, ok := x.([]any)
	if !ok {
		entries = []any{x}
	}
	var texts []string
	for _, e := range entries {
		texts = append(texts, fmt.Sprint(e))
	}
	return texts
}

// Show returns the command-line text of a value encoded by [Resolved], "none" if it is empty. It shortens
// long values.
func Show(v json.RawMessage) string { return Shorten(Text(v)) }

// Text is [Show] without shortening.
func Text(v json.RawMessage) string {
	e := elements(v)
	switch {
	case len(e) == 0:
		return "none"
	case bytes.HasPrefix(v, []byte("[")):
		return setting.JoinList(e)
	}
	return e[0]
}

// longest is how many bytes of a value messages show.
const longest = 1000

// Shorten returns a text that fits into a message: a long one is cut off, and its length follows.
func Shorten(text string) string {
	if len(text) <= longest {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:longest/2], ""), len(text))
}
