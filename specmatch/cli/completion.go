package cli

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/suggest"
)

// shells are those that [Commands] write completions for.
var shells = []string{"bash", "zsh", "fish"}

// completion returns the script that completes the commands and flags of the program in a shell.
func (all Commands) completion(program, shell string) (string, error) {
	scripts := map[string]func(program string, words []completions) string{
		"":     bashCompletion,
		"bash": bashCompletion,
		"zsh":  zshCompletion,
		"fish": fishCompletion,
	}
	script, ok := scripts[shell]
	if !ok {
		return "", Usagef("completion %s: want bash, zsh or fish%s", shell, suggest.DidYouMean(shell, shells))
	}
	return script(program, all.completions(program)), nil
}

// completions is what may follow a first word; the first word itself is "" for the program alone.
type completions struct {
	first string
	words []word
}

// word is a command or a flag, with a line about it.
type word struct{ name, about string }

// completions returns the first words, and then what may follow each of them.
func (all Commands) completions(program string) []completions {
	list := []completions{{}}
	find := func(first string) *completions {
		for i := range list {
			if list[i].first == first {
				return &list[i]
			}
		}
		list[0].words = append(list[0].words, word{name: first})
		list = append(list, completions{first: first})
		return &list[len(list)-1]
	}
	for _, c := range all {
		first, second, two := strings.Cut(c.Name, " ")
		following := find(first)
		about, _, _ := strings.Cut(c.Synopsis, "\n")
		if two {
			following.add(second, about)
		} else {
			list[0].describe(first, about)
		}
		f, _ := c.flags(program)
		f.VisitAll(func(fl *flag.Flag) {
			_, usage := flag.UnquoteUsage(fl)
			line, _, _ := strings.Cut(usage, "\n")
			following.add("-"+fl.Name, line)
		})
	}
	for _, shell := range shells {
		find("completion").add(shell, "")
	}
	find("version")
	return list
}

// add appends a word that is not there yet.
func (c *completions) add(name, about string) {
	if !slices.ContainsFunc(c.words, func(w word) bool { return w.name == name }) {
		c.words = append(c.words, word{name, about})
	}
}

// describe sets the line about a word that is there.
func (c *completions) describe(name, about string) {
	for i := range c.words {
		if c.words[i].name == name {
			c.words[i].about = about
		}
	}
}

// names returns the words, separated by spaces.
func (c completions) names() string {
	var names []string
	for _, w := range c.words {
		names = append(names, w.name)
	}
	return strings.Join(names, " ")
}

func bashCompletion(program string, list []completions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "_%s() {\n  local words=%q\n  case ${COMP_WORDS[1]} in\n", program, list[0].names())
	for _, c := range list[1:] {
		fmt.Fprintf(&b, "  %s) [ $COMP_CWORD -gt 1 ] && words=%q ;;\n", c.first, c.names())
	}
	b.WriteString("  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"${COMP_WORDS[COMP_CWORD]}\"))\n}\n")
	fmt.Fprintf(&b, "complete -o default -F _%s %[1]s\n", program)
	return b.String()
}

func zshCompletion(program string, list []completions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "#compdef %s\n_%[1]s() {\n  local -a candidates\n  candidates=(%s)\n", program, list[0].names())
	b.WriteString("  if (( CURRENT > 2 )); then\n    candidates=()\n    case $words[2] in\n")
	for _, c := range list[1:] {
		fmt.Fprintf(&b, "    %s) candidates=(%s) ;;\n", c.first, c.names())
	}
	b.WriteString("    esac\n    [[ $PREFIX == -* ]] || _files\n  fi\n  compadd -- $candidates\n}\n")
	fmt.Fprintf(&b, "compdef _%s %[1]s\n", program)
	return b.String()
}

func fishCompletion(program string, list []completions) string {
	var b strings.Builder
	quote := func(text string) string {
		return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`).Replace(text) + "'"
	}
	for _, c := range list {
		condition := "__fish_use_subcommand"
		if c.first != "" {
			condition = quote("__fish_seen_subcommand_from " + c.first)
		}
		for _, w := range c.words {
			option := "-a " + w.name
			if name, isFlag := strings.CutPrefix(w.name, "-"); isFlag {
				option = "-o " + name
			}
			fmt.Fprintf(&b, "complete -c %s -n %s %s -d %s\n", program, condition, option, quote(w.about))
		}
	}
	return b.String()
}
