package smarts_test

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/smarts"
)

func Example() {
	acid, err := smarts.Compile("[CX3](=O)[OX2H1]")
	if err != nil {
		fmt.Println(err)
		return
	}
	var p molecule.Parser
	var m smarts.Matcher
	for _, s := range []string{"CC(=O)O", "CC(=O)OC", "OC(=O)CC(=O)O"} {
		mol, err := p.Parse(s)
		if err != nil {
			fmt.Println(err)
			return
		}
		m.Reset(mol)
		fmt.Println(s, m.Has(acid), m.Count(acid), m.Matches(acid))
	}
	// Output:
	// CC(=O)O true 1 [[1 2 3]]
	// CC(=O)OC false 0 []
	// OC(=O)CC(=O)O true 2 [[1 2 0] [4 5 6]]
}

var table = flag.String("matches", "testdata/matches.tsv", "table by testdata/rdkit_matches.py, to compare with")

// readLines returns the lines of a file, cut at tabs.
func readLines(t testing.TB, path string) [][]string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var lines [][]string
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<24)
	for sc.Scan() {
		lines = append(lines, strings.Split(sc.Text(), "\t"))
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return lines
}

func readPatterns(t testing.TB) []*smarts.Pattern {
	t.Helper()
	var patterns []*smarts.Pattern
	for _, line := range readLines(t, "testdata/patterns.tsv") {
		p, err := smarts.Compile(line[1])
		if err != nil {
			t.Fatal(line[0], err)
		}
		patterns = append(patterns, p)
	}
	return patterns
}

// otherMolecules are molecules that differ from RDKit's: another Kekulé structure, and aromatic wildcards.
var otherMolecules = []string{
	"CC(C)(c1ccccc1)c1ccc(Oc2ccc3c4nc5nc(nc6nc(nc7nc(nc(n4)c3c2)c2ccccc72)c2ccccc62)c2ccccc52)cc1",
	"*1cc3cc2*3cccc12",
}

// TestRDKit compares the matches of all patterns with RDKit's.
func TestRDKit(t *testing.T) {
	patterns := readPatterns(t)
	rows := readLines(t, *table)
	if len(patterns) < 600 || len(rows) < 500 {
		t.Errorf("%d patterns and %d molecules", len(patterns), len(rows))
	}
	var parser molecule.Parser
	var m smarts.Matcher
	differ := 0
	for _, row := range rows {
		if slices.Contains(otherMolecules, row[0]) {
			continue
		}
		mol, err := parser.Parse(row[0])
		if err != nil {
			t.Errorf("%s: %v", row[0], err)
			continue
		}
		m.Reset(mol)
		want := strings.Fields(row[1])
		have := describe(&m, patterns)
		if slices.Equal(have, want) {
			continue
		}
		differ++
		t.Errorf("%s differs", row[0])
		for _, s := range append(without(have[1:], want), without(want[1:], have)...) {
			k, count, _ := strings.Cut(s, ":")
			n, _ := strconv.Atoi(k)
			t.Logf("%s: %s matches in one of both", patterns[n], count)
		}
	}
	t.Logf("%d patterns, %d molecules, %d differ", len(patterns), len(rows), differ)
}

func without(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return slices.Contains(other, s) })
}

// describe returns a checksum of the matches of patterns, and the number of each that matches.
func describe(m *smarts.Matcher, patterns []*smarts.Pattern) []string {
	var text strings.Builder
	counts := []string{""}
	for k, p := range patterns {
		matches := m.Matches(p)
		if len(matches) == 0 {
			continue
		}
		counts = append(counts, fmt.Sprintf("%d:%d", k, len(matches)))
		for _, match := range matches {
			slices.Sort(match)
		}
		slices.SortFunc(matches, slices.Compare)
		for _, match := range matches {
			fmt.Fprintf(&text, "%d:%s\n", k, strings.Trim(fmt.Sprint(match), "[]"))
		}
	}
	counts[0] = fmt.Sprint(crc32.ChecksumIEEE([]byte(text.String())))
	return counts
}

// TestAgree: Has, Count and Matches agree, and a limit is kept.
func TestAgree(t *testing.T) {
	patterns := readPatterns(t)
	var parser molecule.Parser
	var m smarts.Matcher
	for k, row := range readLines(t, "testdata/matches.tsv") {
		mol, err := parser.Parse(row[0])
		if err != nil || k%5 > 0 {
			continue
		}
		m.Reset(mol)
		for _, p := range patterns {
			n := len(m.Matches(p))
			if m.Has(p) != (n > 0) || m.Count(p) != n {
				t.Fatalf("%s in %s: %d matches, has %v, count %d", p, row[0], n, m.Has(p), m.Count(p))
			}
			m.Limit = 2
			if limited := m.Count(p); limited != min(n, 2) {
				t.Fatalf("%s in %s: %d of %d matches with a limit of 2", p, row[0], limited, n)
			}
			m.Limit = 0
		}
	}
}

// TestHydrogen: the H of a bracket is a neighbour of a centre, unlike in RDKit.
func TestHydrogen(t *testing.T) {
	pattern, err := smarts.Compile("[C@H](F)Cl")
	if err != nil {
		t.Fatal(err)
	}
	var m smarts.Matcher
	for smiles, want := range map[string]bool{"[C@H](F)(Cl)Br": true, "[C@@H](F)(Cl)Br": false, "C(F)(Cl)Br": false} {
		mol, err := molecule.Parse(smiles)
		if err != nil {
			t.Fatal(err)
		}
		m.Reset(mol)
		if m.Has(pattern) != want {
			t.Errorf("%s: %v", smiles, !want)
		}
	}
}

// TestErrors: what is no pattern is refused with its column.
func TestErrors(t *testing.T) {
	for _, test := range []struct {
		smarts string
		column int
		reason string
	}{
		{"", 1, "empty"},
		{"  ", 1, "empty"},
		{"(C).(C)", 1, "groups of components"},
		{"C>>N", 2, "reactions"},
		{"C(", 2, "does not end"},
		{"C(C", 2, "does not end"},
		{"CC)", 3, "did not begin"},
		{"C()C", 3, "missing in the branch"},
		{"C(C.)", 5, "before the end of the branch"},
		{"C1CC", 2, "used once"},
		{"C11", 3, "to itself"},
		{"C12CC12", 7, "a second bond"},
		{"C=1CC-1", 7, "differ"},
		{"C..C", 3, "a dot"},
		{"C.", 3, "behind the dot"},
		{"C=", 3, "an atom is missing"},
		{"=C", 1, "a bond needs"},
		{"C-,", 4, "a bond is missing"},
		{"C!C", 3, "behind !"},
		{"D", 1, "outside of brackets"},
		{"[C", 1, "does not end"},
		{"[]", 2, "is no property"},
		{"C]", 2, "did not begin"},
		{"[C,]", 4, "is no property"},
		{"[Q]", 2, "is no property"},
		{"[$(C]", 5, "did not begin"},
		{"[$(C)", 1, "does not end"},
		{"[$C]", 2, "an environment is"},
		{"[D{3]", 3, "a range is"},
		{"[D{}]", 3, "a range is"},
		{"[C:x]", 4, "map number"},
		{"[#]", 3, "a number is missing"},
		{"[#99999]", 3, "too large"},
		{"[C+++]", 5, "with a number"},
		{"[C@,N](C)(C)C", 6, "among alternatives"},
		{"[!@](C)(C)C", 2, "negated"},
		{"[C@]C", 1, "three or four neighbours"},
		{"[C@TH1](C)(C)C", 3, "classes"},
		{"C%1", 2, "a ring number is"},
		{"[^9]", 3, "hybridisation"},
		{"C\tC", 2, "is no atom"},
		{strings.Repeat("[$(", 60) + "C" + strings.Repeat(")]", 60), 152, "nested"},
		{strings.Repeat("C", 1001), 1001, "1000 atoms"},
	} {
		_, err := smarts.Compile(test.smarts)
		var e *smarts.Error
		if !errors.As(err, &e) {
			t.Errorf("%q: error %v", test.smarts, err)
			continue
		}
		if e.Column != test.column || !strings.Contains(e.Reason, test.reason) {
			t.Errorf("%q: column %d: %s; want column %d, %q", test.smarts, e.Column, e.Reason, test.column, test.reason)
		}
	}
}

// TestAllocations: a matcher that has been used allocates nothing.
func TestAllocations(t *testing.T) {
	mol, err := molecule.Parse("CC(C)Cn1c(=O)n(C)c(=O)c2c(N[C@@H](C)C(=O)N3CCOCC3)nc(-c3ccc(F)cc3)nc21")
	if err != nil {
		t.Fatal(err)
	}
	patterns := readPatterns(t)
	var m smarts.Matcher
	run := func() {
		m.Reset(mol)
		for _, p := range patterns {
			m.Has(p)
			m.Count(p)
			m.Matches(p)
		}
	}
	run()
	if n := testing.AllocsPerRun(3, run); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzCompile(f *testing.F) {
	for _, line := range readLines(f, "testdata/patterns.tsv") {
		f.Add(line[1])
	}
	mol, err := molecule.Parse("C/C=C/c1ccc2c(c1)[C@H](N)CC2.[Na+].OC(=O)C#N")
	if err != nil {
		f.Fatal(err)
	}
	var m smarts.Matcher
	f.Fuzz(func(t *testing.T, text string) {
		p, err := smarts.Compile(text)
		if err != nil {
			var e *smarts.Error
			if !errors.As(err, &e) || e.Column < 1 || e.Column > len(text)+1 {
				t.Fatalf("%q: %v", text, err)
			}
			return
		}
		if len(text) > 60 || p.Atoms() > 8 {
			return
		}
		m.Reset(mol)
		m.Limit = 100
		if has := m.Has(p); has != (m.Count(p) > 0) {
			t.Fatalf("%q: has %v", text, has)
		}
	})
}

func BenchmarkCount(b *testing.B) {
	mol, err := molecule.Parse("CC(C)Cn1c(=O)n(C)c(=O)c2c(N[C@@H](C)C(=O)N3CCOCC3)nc(-c3ccc(F)cc3)nc21")
	if err != nil {
		b.Fatal(err)
	}
	patterns := readPatterns(b)
	var m smarts.Matcher
	for b.Loop() {
		m.Reset(mol)
		for _, p := range patterns {
			m.Count(p)
		}
	}
}
