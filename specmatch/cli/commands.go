package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/suggest"
)

// Command is a command of a program, named by the first argument or the first two.
type Command struct {
	Name     string
	Synopsis string
	Examples []string
	// Setup adds the command's flags and returns its action.
	Setup func(f *FlagSet) Action
}

// Action runs a command whose flags have been parsed.
type Action func(ctx context.Context, stdout, stderr io.Writer) error

// Commands lists the commands of a program besides "version", "completion" and "help".
type Commands []Command

// Run runs the command at the beginning of args. Without arguments it prints an overview, with the
// name of the program and its synopsis.
func (all Commands) Run(ctx context.Context, program, synopsis string, args []string, stdout, stderr io.Writer) error {
	if len(args) == 0 || slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		_, err := io.WriteString(stdout, all.overview(program, synopsis))
		return err
	}
	name, args := args[0], args[1:]
	if len(args) > 0 && slices.Contains(all.names(), name+" "+args[0]) {
		name, args = name+" "+args[0], args[1:]
	}
	switch name {
	case "version", "-version", "--version":
		_, err := fmt.Fprintln(stdout, program, version())
		return err
	case "flags": // for packages in other languages
		return all.describe(stdout, strings.Join(args, " "))
	case "completion":
		script, err := all.completion(program, strings.Join(args, " "))
		if err != nil {
			return err
		}
		_, err = io.WriteString(stdout, script)
		return err
	}
	c, err := all.find(name)
	if err != nil {
		return err
	}
	flags, act := c.flags(program)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	return act(ctx, stdout, stderr)
}

// find returns the command of a name.
func (all Commands) find(name string) (c Command, err error) {
	for _, c := range all {
		if c.Name == name {
			return c, nil
		}
	}
	return c, all.unknown(name)
}

// unknown returns the error about a name that is no command's.
func (all Commands) unknown(name string) error {
	if nearest, ok := suggest.Nearest(name, all.names()); ok {
		return Usagef("unknown command %q; did you mean %q?", name, nearest)
	}
	if _, err := os.Stat(name); err == nil {
		return Usagef("unknown command %q: this is a file, and a command comes first, as in embed -in %[1]s", name)
	}
	return Usagef("unknown command %q: want one of %s", name, strings.Join(all.names(), ", "))
}

// describe prints the flags of a command as JSON, a list of [Description].
func (all Commands) describe(stdout io.Writer, command string) error {
	c, err := all.find(command)
	if err != nil {
		return err
	}
	flags, _ := c.flags("")
	return json.NewEncoder(stdout).Encode(flags.Describe())
}

// Under returns the commands with a word before their names.
func (all Commands) Under(word string) Commands {
	var below Commands
	for _, c := range all {
		c.Name = word + " " + c.Name
		below = append(below, c)
	}
	return below
}

func (c Command) flags(program string) (*FlagSet, Action) {
	f := NewFlagSet(program+" "+c.Name, c.Synopsis, c.Examples...)
	f.command = f.Name()
	return f, c.Setup(f)
}

func (all Commands) names() (names []string) {
	for _, c := range all {
		names = append(names, c.Name)
	}
	return append(names, "version", "completion")
}

func (all Commands) overview(program, synopsis string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\nUsage: %s COMMAND [flags]\n\nCommands:\n", synopsis, program)
	for _, c := range all {
		fmt.Fprintf(&b, "  %s\n\t%s\n", c.Name, strings.ReplaceAll(c.Synopsis, "\n", "\n\t"))
	}
	b.WriteString("  version\n\tPrints the version.\n")
	fmt.Fprintf(&b, "  completion\n\tPrints completions for bash, zsh or fish: source <(%s completion bash)\n\n",
		program)
	b.WriteString("COMMAND -h explains the flags of a command.\n")
	return b.String()
}

// release is the version of a release, set at build time by
// -ldflags "-X github.com/specmatch/specmatch/specmatch/cli.release=0.1.0".
var release string

// version returns the version of the release, or that of the module from the Go tool.
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
