package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write reference.md anew")

// described is a flag as the command flags prints it.
type described struct {
	Name, Type, Usage string
	Default           any
	Second            []struct{ When, Default string }
}

// reference is the text of reference.md.
func reference(t *testing.T) string {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(2)) // the default of sweep -workers, which is one per core
	var b strings.Builder
	b.WriteString("# Reference\n\n*Reference page: every flag of every command.* It is generated: " +
		"`go test ./specmatch/cmd/specmatch -run TestReference -update` writes it.\n" +
		"The [guide](guide.md) says what to use them for.\n")
	for _, c := range commands {
		stdout, _, err := invoke(t.Context(), "flags "+c.Name)
		if err != nil {
			t.Fatalf("flags %s: %v", c.Name, err)
		}
		var flags []described
		if err := json.Unmarshal([]byte(stdout), &flags); err != nil {
			t.Fatalf("flags %s: %v", c.Name, err)
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", c.Name, oneLine(c.Synopsis))
		if len(flags) == 0 {
			continue
		}
		b.WriteString("\n| flag | default | meaning |\n| --- | --- | --- |\n")
		for _, f := range flags {
			fmt.Fprintf(&b, "| `-%s` | %s | %s |\n", f.Name, f.defaults(), cell(f.Usage))
		}
	}
	return b.String()
}

// defaults are the default and those of special runs, in a cell of a table.
func (f described) defaults() string {
	text := defaultText(f.Default)
	for _, s := range f.Second {
		text += fmt.Sprintf("; %s `%s`", s.When, s.Default)
	}
	return strings.TrimPrefix(text, "; ")
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// cell is a text in a cell of a table of Markdown.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`).Replace(oneLine(text))
}

// defaultText is a default as a flag takes it; nothing stands for none.
func defaultText(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case []any:
		var words []string
		for _, word := range v {
			words = append(words, fmt.Sprint(word))
		}
		return "`" + strings.Join(words, ",") + "`"
	}
	if text := fmt.Sprint(value); text != "" {
		return "`" + text + "`"
	}
	return ""
}

// TestReference: reference.md has the flags of the program.
func TestReference(t *testing.T) {
	want := reference(t)
	if *update {
		if err := os.WriteFile("reference.md", []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, "reference.md"); got != want {
		t.Error("reference.md is not what the flags are: go test ./specmatch/cmd/specmatch -run TestReference -update")
	}
}

// The pages that a user reads first, and the words that they do not use, with those that they use.
var (
	plainPages = []string{
		"README.md",
		"guide.md",
		"scale.md",
		"evidence.md",
		"../laboratory/README.md",
		"../../pretrained/README.md",
		"../../pretrained/admet/README.md",
		"../../python/README.md",
		"../../../README.md",
		"../../../CONTRIBUTING.md",
		"../../../backend/cuda/DEVICES.md",
		"../../../backend/cuda/README.md",
		"../../../experiments/README.md",
		"../../../experiments/ablation/results/README.md",
		"../../../experiments/admet/results/README.md",
		"../../../experiments/bench/README.md",
		"../../../experiments/datasets/README.md",
		"../../../experiments/kernels/results/README.md",
		"../../../experiments/playground/README.md",
		"../../../experiments/selection/results/README.md",
		"../../../experiments/semisupervised/results/README.md",
		"../../../experiments/summary/README.md",
		"../../../experiments/theory/results/README.md",
		"../../../experiments/transfer/results/README.md",
		"../../../experiments/unsupervised/results/README.md",
	}
	germanisms = map[string]string{
		`\bdivisions?\b`:              "split",
		`\byes-or-no\b`:               "binary",
		`\bleft out\b`:                "dropped, skipped or excluded",
		`\btakes? up\b|\bgoes on\b`:   "resumes",
		`\bbroken off\b`:              "interrupted",
		`\b(is|are) (ahead|behind)\b`: "better, worse",
		`\bbeside\b`:                  "next to, with, and",
		`\bHow (sure|often) [a-z ]+,`: "a sentence with its subject first",
		`(?m)(^|[.:] )Of [^.,]+, `:    "For …, or a sentence with its subject first",
		`\bshares?\b of a (job|run)`:  "shard",
		`\bmemory of environments\b`:  "cache of atom environments",
	}
)

// maxWords bounds a sentence of a plain page.
const maxWords = 30

// TestPlainPages: these pages have short sentences, and none of the words above.
func TestPlainPages(t *testing.T) {
	for _, page := range plainPages {
		text := prose(read(t, page))
		for pattern, instead := range germanisms {
			if found := regexp.MustCompile(pattern).FindString(text); found != "" {
				t.Errorf("%s: %q; write %s", page, found, instead)
			}
		}
		for _, sentence := range sentences(text) {
			if n := len(strings.Fields(sentence)); n > maxWords {
				t.Errorf("%s: a sentence of %d words: %s", page, n, sentence)
			}
		}
	}
	if n := len(sentences(prose("One. Two `a. b` and\nthree: four? Five\n\n- Six\n- Seven, e.g. eight\n\n```\ncode. more\n```\n| a. b | c |\n"))); n != 5 {
		t.Errorf("%d sentences in the sample, want 5", n)
	}
}

// TestFrontPage: the commands of the repository's README give the predictions that it prints.
func TestFrontPage(t *testing.T) {
	page := read(t, "../../../README.md")
	table := read(t, "../../../testdata/molecules.csv")
	t.Chdir(t.TempDir())
	if err := os.Mkdir("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, "testdata/molecules.csv", table)
	commands := regexp.MustCompile(`(?m)^\$ specmatch (.*)$`).FindAllStringSubmatch(page, -1)
	for _, c := range commands {
		must(t, c[1])
	}
	_, printed, _ := strings.Cut(page, "```\nid,logS,logS_std\n")
	printed, _, _ = strings.Cut(printed, "```")
	var got strings.Builder
	for _, row := range readCSV(t, "predictions.csv")[1:3] {
		var mean, spread float64
		fmt.Sscan(row[1], &mean)
		fmt.Sscan(row[2], &spread)
		fmt.Fprintf(&got, "%s,%.2f,%.2f\n", row[0], mean, spread)
	}
	if len(commands) != 2 || got.String() != printed {
		t.Errorf("%d commands predict\n%sand the page has\n%s", len(commands), got.String(), printed)
	}
}

var (
	codeBlocks = regexp.MustCompile("(?s)```.*?```")
	inlineCode = regexp.MustCompile("`[^`]*`")
	links      = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	tableRows  = regexp.MustCompile(`(?m)^\|.*$`)
	listItems  = regexp.MustCompile(`(?m)^ *(-|\d+\.) `)
	abbreviate = regexp.MustCompile(`\b(e\.g|i\.e|et al)\.`)
)

// prose is a page without code, tables, headings and the targets of links. An item of a list is a paragraph.
func prose(page string) string {
	page = codeBlocks.ReplaceAllString(page, "\n\n")
	page = inlineCode.ReplaceAllString(page, "CODE")
	page = links.ReplaceAllString(page, "$1")
	page = tableRows.ReplaceAllString(page, "\n")
	page = listItems.ReplaceAllString(page, "\n\n")
	return abbreviate.ReplaceAllString(page, "$1")
}

// sentences splits prose at the ends of sentences and of paragraphs.
func sentences(text string) (list []string) {
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		for _, s := range regexp.MustCompile(`[.?!]\s+`).Split(oneLine(paragraph), -1) {
			if s = strings.Trim(s, " *#"); s != "" {
				list = append(list, s)
			}
		}
	}
	return list
}

// TestInstallLines: every line of a page that installs something names a program or a package of the clone, or
// what the evidence compares with. .ci/python runs the line of the Python package.
func TestInstallLines(t *testing.T) {
	const root = "../../.."
	others := []string{"", "matplotlib", "networkx", "chemprop", "molfeat", "scikit-fingerprints", "--no-cache-dir"}
	lines := regexp.MustCompile("\\b(go|pip) install([^`#\n\"]*)")
	found := 0
	err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		ending := filepath.Ext(path)
		if err != nil || ending != ".md" && ending != ".ipynb" || entry.Name() == "CHANGELOG.md" {
			return err
		}
		for _, line := range lines.FindAllStringSubmatch(read(t, path), -1) {
			for _, word := range strings.Fields(strings.ReplaceAll(line[2], "'", "")) {
				place, extra, _ := strings.Cut(strings.TrimSuffix(word, "]"), "[")
				file := "main.go"
				if line[1] == "pip" {
					file = "pyproject.toml"
				}
				text, err := os.ReadFile(filepath.Join(root, place, file))
				switch {
				case line[1] == "pip" && slices.Contains(others, word):
				case err != nil || !strings.HasPrefix(place, "./"):
					t.Errorf("%s: %q installs nothing of a clone", path, line[0])
				case extra != "" && !strings.Contains(string(text), extra+" = ["):
					t.Errorf("%s: %q: the package has no extra %q", path, line[0], extra)
				default:
					found++
				}
			}
		}
		return nil
	})
	if err != nil || found < 5 {
		t.Errorf("%d lines install something of a clone, %v", found, err)
	}
}
