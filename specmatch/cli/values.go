package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A role says what happens to a flag when a run is resumed.
type role int

const (
	fixed role = iota // results depend on it: it must not change
	list              // new entries are added to the run's
	free              // no result depends on it
	once              // free, and the run's value is not taken over
)

// Grows marks flags with lists, such as -method, each of whose entries has its own
// results. Entries that are new when a run is resumed are added to the run's.
func (f *FlagSet) Grows(names ...string) { f.mark(list, names) }

// Free marks flags without influence on results, such as where files lie.
func (f *FlagSet) Free(names ...string) { f.mark(free, names) }

func (f *FlagSet) mark(r role, names []string) {
	for _, name := range names {
		f.roles[name] = r
	}
}

// Once marks flags without influence on results that say what this start does: a
// resumed run does not take over their values.
func (f *FlagSet) Once(names ...string) { f.mark(once, names) }

// GrowsRange marks two flags that together are a range of whole numbers: the first
// one and the count.
func (f *FlagSet) GrowsRange(first, count string) {
	f.first = first
	f.count = count
}

// Merge sets the flags for going on with a run that had the flags was: those that are
// not given get the run's values, and lists and ranges that are given are added to
// the run's, which come first. With taken, an earlier call has merged another run, and
// the values so far come first. name is the run's, for errors. What the run has counts as given
// afterwards, so that the next run can add to its lists and seeds.
func (f *FlagSet) Merge(
	name string, was map[string]json.RawMessage, given map[string]bool, taken bool,
) error {
	was = f.renamed(was)
	if err := f.addRange(name, was, given); err != nil {
		return err
	}
	var err error
	f.VisitAll(func(fl *flag.Flag) {
		old, ok := was[fl.Name]
		role := f.roles[fl.Name]
		if !ok || err != nil || role == once || fl.Name == f.first || fl.Name == f.count {
			return
		}
		if !given[fl.Name] {
			err = f.setTo(fl, elements(old))
			return
		}
		// an empty list is the synthetic set, which has no name to add to
		if role != list || len(elements(old)) == 0 {
			return
		}
		both := elements(old)
		added := elements(Resolved(fl))
		if taken {
			both, added = added, both
		}
		for _, x := range added {
			if !slices.Contains(both, x) {
				both = append(both, x)
			}
		}
		err = f.setTo(fl, both)
	})
	for name := range was {
		given[name] = true
	}
	return err
}

// addRange sets the range of seeds to the union of the run's and the given one.
func (f *FlagSet) addRange(dir string, was map[string]json.RawMessage, given map[string]bool) error {
	if f.first == "" {
		return nil
	}
	old, ok := f.rangeOf(was)
	if !ok {
		return nil
	}
	now, _ := f.rangeOf(f.All())
	if !given[f.first] {
		now.first = old.first
	}
	if !given[f.count] {
		now.n = old.n
	}
	lo, hi := min(old.first, now.first), max(old.end(), now.end())
	if max(old.first, now.first) > min(old.end(), now.end()) {
		return Usagef("-%s %d -%s %d: the run in %s has the seeds %d to %d, and there would be a gap "+
			"between; want -%s %d -%s %d for all",
			f.first, now.first, f.count, now.n, dir, old.first, old.end()-1, f.first, lo, f.count, hi-lo)
	}
	return errors.Join(f.Set(f.first, strconv.Itoa(lo)), f.Set(f.count, strconv.Itoa(hi-lo)))
}

// interval is the whole numbers first … first+n-1.
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

// setTo sets a flag to the elements of an earlier value. A value without elements,
// such as that of -out if it was not given, is left out.
func (f *FlagSet) setTo(fl *flag.Flag, elements []string) error {
	text := strings.Join(elements, ",")
	if text == "" {
		return nil
	}
	if err := f.Set(fl.Name, text); err != nil {
		return fmt.Errorf("-%s %q: %w", fl.Name, text, err)
	}
	return nil
}

// Compare returns an error that names the first flag that prevents a run with the
// flags was from being resumed with those of f: one that results depend on and that
// differs, a list that lacks an entry, one that f does not know, or one that was
// lacks and that does not have its default in f. Flags that mayDiffer prevent nothing.
func (f *FlagSet) Compare(was map[string]json.RawMessage, mayDiffer ...string) (err error) {
	was = f.renamed(was)
	now := f.All()
	all := maps.Clone(now)
	maps.Copy(all, was)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		old, known := was[name]
		v, ok := now[name]
		switch r := f.roles[name]; {
		case slices.Contains(mayDiffer, name):
		case !ok:
			return fmt.Errorf("-%s was %s, and this version has no such flag", name, Show(old))
		case r == free || r == once:
		case name == f.first || name == f.count:
			a, _ := f.rangeOf(was)
			if b, ok := f.rangeOf(now); !ok || b.first > a.first || b.end() < a.end() {
				return fmt.Errorf("the seeds were %d to %d, now they are %d to %d",
					a.first, a.end()-1, b.first, b.end()-1)
			}
		case !known:
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
	}
	return nil
}

// All returns the values of all flags by name, see [Resolved].
func (f *FlagSet) All() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	f.VisitAll(func(fl *flag.Flag) { all[fl.Name] = Resolved(fl) })
	return all
}

// Resolved encodes a flag's value as its type, as in 128 or ["MUTAG"], unless the
// type names itself, as in "float32".
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
	if err != nil { // JSON has no NaN, so its text must do
		data, _ = json.Marshal(fl.Value.String())
	}
	return data
}

// elements returns a value encoded by [Resolved] as the command line would have it,
// entry by entry if it is a list. An empty value has no elements.
func elements(v json.RawMessage) []string {
	var x any
	d := json.NewDecoder(bytes.NewReader(v))
	d.UseNumber()
	if d.Decode(&x) != nil || x == nil || x == "" {
		return nil
	}
	many, ok := x.([]any)
	if !ok {
		many = []any{x}
	}
	var out []string
	for _, e := range many {
		out = append(out, fmt.Sprint(e))
	}
	return out
}

// Show returns a value encoded by [Resolved] as the command line would have it, "none" if
// it is empty.
func Show(v json.RawMessage) string {
	if e := elements(v); len(e) > 0 {
		return strings.Join(e, ",")
	}
	return "none"
}
