// Command measure counts how dense the repository's Go is to read, by top-level folder, and
// compares it with what .ci/budget allows:
//
//	go run ./.ci/measure          # the table; fails where a figure is above its last value
//	go run ./.ci/measure -write   # sets the figures of .ci/budget to today's
//
// Tests, generated files, folders named testdata, and the test equipment that .ci/budget
// lists are not counted.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const budgetFile = ".ci/budget"

// maxColumns is the longest line, a tab being four columns wide.
const maxColumns = 120

// count is what is measured of a set of files.
type count struct {
	tokens, code         int // code: lines with code on them
	assigns, parallel    int
	locals, prepositions int
	wide, long, complex  int // lines over 120 columns; functions over 60 lines, or of cyclomatic complexity over 20
}

// figures are what the budget limits, in the order of its columns.
var figures = []struct {
	name  string
	value func(c *count) float64
}{
	{"tokens", func(c *count) float64 { return float64(c.tokens) }},
	{"tokens/line", func(c *count) float64 { return ratio(c.tokens, c.code) }},
	{"parallel%", func(c *count) float64 { return 100 * ratio(c.parallel, c.assigns) }},
	{"prepositions%", func(c *count) float64 { return 100 * ratio(c.prepositions, c.locals) }},
	{"columns>120", func(c *count) float64 { return float64(c.wide) }},
	{"lines>60", func(c *count) float64 { return float64(c.long) }},
	{"complex>20", func(c *count) float64 { return float64(c.complex) }},
}

// prepositions are names of locals that say where a value stands and not what it is.
var prepositions = strings.Fields(`of at how say take each own more now here there like by to from most far all some
	both down up said seen known way what it was is on in other rest last so wide room right wrong form around want have
	kept others`)

func main() {
	write := flag.Bool("write", false, "set the figures of the budget to today's")
	flag.Parse()
	if err := run(*write); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(write bool) error {
	equipment, limits, err := readBudget()
	if err != nil {
		return err
	}
	folders, err := measureTree(equipment)
	if err != nil {
		return err
	}
	names := make([]string, 0, len(folders))
	for name := range folders {
		names = append(names, name)
	}
	slices.Sort(names)
	fmt.Printf("%-12s", "folder")
	for _, f := range figures {
		fmt.Printf(" %13s", f.name)
	}
	fmt.Println()
	var failures []error
	for _, name := range names {
		fmt.Printf("%-12s", name)
		for i, f := range figures {
			value := f.value(folders[name])
			fmt.Printf(" %13s", format(value))
			limit, ok := limits[name]
			if ok && value > limit[i]+0.005 {
				failures = append(failures, fmt.Errorf("%s: %s %s, and %s allows %s",
					name, f.name, format(value), budgetFile, format(limit[i])))
			}
		}
		fmt.Println()
	}
	if write {
		return writeBudget(names, folders)
	}
	if failures != nil {
		failures = append(failures,
			errors.New("`bash .ci/size -write` sets the budget to today's figures; the commit says what for"))
	}
	return errors.Join(failures...)
}

func format(x float64) string {
	if x == float64(int(x)) {
		return fmt.Sprint(int(x))
	}
	return fmt.Sprintf("%.2f", x)
}

func ratio(a, b int) float64 { return float64(a) / float64(max(b, 1)) }

// readBudget returns the patterns of test equipment, and the limits by folder.
func readBudget() (equipment []string, limits map[string][]float64, err error) {
	data, err := os.ReadFile(budgetFile)
	if err != nil {
		return nil, nil, err
	}
	limits = map[string][]float64{}
	lines := bufio.NewScanner(strings.NewReader(string(data)))
	for number := 1; lines.Scan(); number++ {
		fields := strings.Fields(lines.Text())
		switch {
		case len(fields) >= 2 && fields[0] == "equipment":
			equipment = append(equipment, fields[1])
		case len(fields) == 2+len(figures) && fields[0] == "folder":
			values := make([]float64, len(figures))
			for i := range values {
				if _, err := fmt.Sscan(fields[2+i], &values[i]); err != nil {
					return nil, nil, fmt.Errorf("%s:%d: %q: %w", budgetFile, number, fields[2+i], err)
				}
			}
			limits[fields[1]] = values
		case len(fields) > 0 && !strings.HasPrefix(fields[0], "#"):
			return nil, nil, fmt.Errorf("%s:%d: want equipment PATTERN, or folder NAME and %d figures",
				budgetFile, number, len(figures))
		}
	}
	return equipment, limits, nil
}

// writeBudget replaces the lines of folders by today's figures.
func writeBudget(names []string, folders map[string]*count) error {
	data, err := os.ReadFile(budgetFile)
	if err != nil {
		return err
	}
	var b strings.Builder
	for line := range strings.Lines(string(data)) {
		if !strings.HasPrefix(line, "folder ") {
			b.WriteString(line)
		}
	}
	for _, name := range names {
		fmt.Fprintf(&b, "folder %-12s", name)
		for _, f := range figures {
			fmt.Fprintf(&b, " %8s", format(f.value(folders[name])))
		}
		b.WriteByte('\n')
	}
	return os.WriteFile(budgetFile, []byte(b.String()), 0o666)
}

// measureTree returns the counts of the top-level folders of the working tree, and "total".
func measureTree(equipment []string) (map[string]*count, error) {
	total := new(count)
	folders := map[string]*count{"total": total}
	err := filepath.WalkDir(".", func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := entry.Name()
		if entry.IsDir() {
			if file != "." && strings.HasPrefix(name, ".") || name == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		file = filepath.ToSlash(file)
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || isEquipment(file, equipment) {
			return nil
		}
		c, err := measureFile(file)
		if err != nil || c == nil {
			return err
		}
		folder, _, _ := strings.Cut(file, "/")
		if folders[folder] == nil {
			folders[folder] = new(count)
		}
		folders[folder].add(c)
		total.add(c)
		return nil
	})
	return folders, err
}

// isEquipment reports whether a pattern matches a file or one of the folders above it.
func isEquipment(file string, patterns []string) bool {
	for _, pattern := range patterns {
		prefix, below := strings.CutSuffix(pattern, "/*")
		if matched, _ := path.Match(pattern, file); matched || below && strings.HasPrefix(file, prefix+"/") {
			return true
		}
	}
	return false
}

func (c *count) add(o *count) {
	c.tokens += o.tokens
	c.code += o.code
	c.assigns += o.assigns
	c.parallel += o.parallel
	c.locals += o.locals
	c.prepositions += o.prepositions
	c.wide += o.wide
	c.long += o.long
	c.complex += o.complex
}

// measureFile returns the counts of a file, nil if it is generated.
func measureFile(file string) (*count, error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, source, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	if ast.IsGenerated(tree) {
		return nil, nil
	}
	c := new(count)
	c.countTokens(source)
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			c.countAssignment(n)
		case *ast.FuncDecl:
			if set.Position(n.End()).Line-set.Position(n.Pos()).Line > 60 {
				c.long++
			}
			if complexity(n) > 20 {
				c.complex++
			}
		}
		return true
	})
	return c, nil
}

// countTokens counts the tokens of a file, the lines that have some, and those too wide.
func (c *count) countTokens(source []byte) {
	set := token.NewFileSet()
	file := set.AddFile("", -1, len(source))
	var s scanner.Scanner
	s.Init(file, source, nil, 0)
	code := map[int]bool{}
	for {
		pos, kind, text := s.Scan()
		if kind == token.EOF {
			break
		}
		if kind == token.SEMICOLON && text == "\n" {
			continue
		}
		c.tokens++
		code[file.Line(pos)] = true
	}
	c.code = len(code)
	lines := strings.Split(string(source), "\n")
	for line := range code {
		text := strings.ReplaceAll(lines[line-1], "\t", "    ")
		if len([]rune(text)) > maxColumns {
			c.wide++
		}
	}
}

func (c *count) countAssignment(n *ast.AssignStmt) {
	c.assigns++
	if len(n.Lhs) > 1 && len(n.Lhs) == len(n.Rhs) {
		c.parallel++
	}
	if n.Tok != token.DEFINE {
		return
	}
	for _, left := range n.Lhs {
		if id, ok := left.(*ast.Ident); ok && id.Name != "_" {
			c.locals++
			if slices.Contains(prepositions, id.Name) {
				c.prepositions++
			}
		}
	}
}

// complexity is McCabe's number: 1, and 1 for each branch, loop, case, && and ||.
func complexity(f *ast.FuncDecl) int {
	paths := 1
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
			paths++
		case *ast.CaseClause:
			if n.List != nil {
				paths++
			}
		case *ast.CommClause:
			if n.Comm != nil {
				paths++
			}
		case *ast.BinaryExpr:
			if n.Op == token.LAND || n.Op == token.LOR {
				paths++
			}
		}
		return true
	})
	return paths
}
