package cli

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// topic is a part of the flags that -h explains alone.
type topic struct {
	usage string
	find  func(name string) (title string, flags []string)
}

// help says how -h explains a flag set.
type help struct {
	topics   []topic
	common   []string          // flags that plain -h explains; nil is all
	sections []string          // titles, in order
	section  map[string]string // title by the name of a flag
}

// allFlags is the topic of all flags.
const allFlags = "all"

// Common makes plain -h explain only these flags, in this order; -h all explains the others, too.
func (f *FlagSet) Common(names ...string) { f.help.common = names }

// Section gives the flags that define adds a title in the help text.
func (f *FlagSet) Section(title string, define func()) {
	if f.help.section == nil {
		f.help.section = map[string]string{}
	}
	f.help.sections = append(f.help.sections, title)
	before := f.All()
	define()
	f.VisitAll(func(fl *flag.Flag) {
		if _, ok := before[fl.Name]; !ok {
			f.help.section[fl.Name] = title
		}
	})
}

// Topics makes -h NAME explain only the flags that find returns, under a title. find returns no
// flags for a name that is no topic. The usage says in the help text what NAME can be.
func (f *FlagSet) Topics(usage string, find func(name string) (title string, flags []string)) {
	f.help.topics = append(f.help.topics, topic{usage, find})
}

// writeHelp prints the synopsis, the examples, and the common flags; for a topic, its flags alone; for
// all, every flag by section.
func (f *FlagSet) writeHelp(w io.Writer, name string) error {
	var b bytes.Buffer
	command := cmp.Or(f.command, "go run ./experiments/"+f.Name())
	title, flags := f.topic(name)
	switch {
	case name == "" || name == allFlags:
		f.writeUsage(&b, command)
	case flags == nil:
		return Usagef("-h %s: there is no help on %q; -h explains all flags", name, name)
	default:
		fmt.Fprintf(&b, "%s\n", title)
	}
	count := 0
	f.VisitAll(func(*flag.Flag) { count++ })
	common := f.help.common
	if name == "" && common != nil {
		b.WriteString("\nThe most common flags:\n")
		for _, name := range common {
			f.writeFlag(&b, f.Lookup(name), short)
		}
		fmt.Fprintf(&b, "\n%s -h all explains all %d flags.\n", command, count)
		_, err := w.Write(b.Bytes())
		return err
	}
	sections := f.help.sections
	if flags != nil || len(sections) == 0 {
		sections = []string{""}
	}
	for _, section := range sections {
		fmt.Fprintf(&b, "\n%s:\n", cmp.Or(section, "Flags"))
		f.VisitAll(func(fl *flag.Flag) {
			inSection := section == "" || f.help.section[fl.Name] == section
			if inSection && (flags == nil || slices.Contains(flags, fl.Name)) {
				f.writeFlag(&b, fl, long)
			}
		})
	}
	_, err := w.Write(b.Bytes())
	return err
}

// writeUsage prints the synopsis and the examples.
func (f *FlagSet) writeUsage(b *bytes.Buffer, command string) {
	usage := command
	for _, name := range f.arguments {
		usage += " [" + strings.ToUpper(name) + "]"
	}
	fmt.Fprintf(b, "%s\n\nUsage: %s [flags]\n\nFor example:\n", f.synopsis, usage)
	for _, e := range f.examples {
		fmt.Fprintf(b, "  %s %s\n", command, e)
	}
	for _, t := range f.help.topics {
		fmt.Fprintf(b, "  %s -h %s\n", command, t.usage)
	}
}

// form is how a flag is explained.
type form int

const (
	short form = iota // in the fewest lines
	long              // with a line for the default
)

// writeFlag explains a flag.
func (f *FlagSet) writeFlag(b *bytes.Buffer, fl *flag.Flag, as form) {
	argument, usage := flag.UnquoteUsage(fl)
	if argument != "" {
		argument = " " + argument
	}
	value := fl.DefValue
	switch {
	case value == "" && strings.Contains(usage, "the default is"):
		value = "see above"
	case value == "":
		value = "none"
	}
	for _, s := range f.secondDefaults(fl.Name) {
		value += "; " + s.When + " " + s.Default
	}
	if v := f.env[fl.Name]; v != "" {
		value = "$" + v + ", else " + value
	}
	usage = strings.ReplaceAll(usage, "\n", "\n\t")
	if as == short {
		if value != "none" && value != "false" && value != "see above" {
			usage += " (default " + value + ")"
		}
		fmt.Fprintf(b, "  -%s%s\n\t%s\n", fl.Name, argument, usage)
		return
	}
	fmt.Fprintf(b, "  -%s%s\n\t%s\n\tdefault: %s\n", fl.Name, argument, usage, value)
}

func (f *FlagSet) topic(name string) (title string, flags []string) {
	for _, t := range f.help.topics {
		if title, flags = t.find(name); flags != nil {
			break
		}
	}
	return title, flags
}
