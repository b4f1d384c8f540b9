//go:build unix

package report_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/report"
)

// TestShared: where all models have one test set, the page has the score and the confusion matrix of their mean
// prediction, and a record counts once.
func TestShared(t *testing.T) {
	for _, shared := range []bool{false, true} {
		dir := t.TempDir()
		tuned(t, dir, tuning{kind: "classes", tasks: 1, seeds: 3, rows: 40, shared: shared})
		p := page(t, "", dir)
		text := markdown(t, p)
		if got := strings.Contains(p.Title, "accuracy 91 %, 3 models together"); got != shared {
			t.Errorf("shared %t: the title is %q", shared, p.Title)
		}
		if got := strings.Contains(text, "Mean over splits"); got == shared {
			t.Errorf("shared %t: \"Mean over splits\" is there: %t", shared, got)
		}
		_, matrix, _ := strings.Cut(text, "| observed | a | b |")
		counts := regexp.MustCompile(`\n\| [ab] \| (\d+) \| (\d+) \|`).FindAllStringSubmatch(matrix, -1)
		records := 0
		for _, row := range counts {
			var a, b int
			fmt.Sscan(row[1], &a)
			fmt.Sscan(row[2], &b)
			records += a + b
		}
		want := 3 * (40 + 2) // what the units record
		if shared {
			want = 40
		}
		if records != want {
			t.Errorf("shared %t: the confusion matrix has %d records, want %d", shared, records, want)
		}
	}
	dir := t.TempDir()
	tuned(t, dir, tuning{kind: "regression", tasks: 1, seeds: 2, rows: 40})
	if text := markdown(t, page(t, "", dir)); strings.Contains(text, "Confusion") {
		t.Errorf("a regression has a confusion matrix:\n%s", text)
	}
}

// TestOtherTestSets: a test set whose records are others is not averaged with the first.
func TestOtherTestSets(t *testing.T) {
	dir := t.TempDir()
	tuned(t, dir, tuning{kind: "classes", tasks: 1, seeds: 2, rows: 40, shared: true})
	path := filepath.Join(dir, "test-1.csv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), "\nm0,", "\nx,", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	if text := markdown(t, page(t, "", dir)); !strings.Contains(text, "Records of all test sets") {
		t.Error("different records are averaged")
	}
}

// TestEscapedTestSets: a test set whose ids have the escapes of earlier versions is averaged with one that has not.
func TestEscapedTestSets(t *testing.T) {
	dir := t.TempDir()
	tuned(t, dir, tuning{kind: "classes", tasks: 1, seeds: 2, rows: 40, shared: true})
	for name, id := range map[string]string{"test-0.csv": `x\ty`, "test-1.csv": "x\ty"} {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(text), "\nm0,", "\n"+id+",", 1)), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if text := markdown(t, page(t, "", dir)); strings.Contains(text, "Records of all test sets") {
		t.Error("the same records are not averaged")
	}
}

// TestDifferent: molecules that are written in several ways are one, and what is no molecule has its id.
func TestDifferent(t *testing.T) {
	cases := []report.Case{
		{ID: "1", SMILES: "OCC"},
		{ID: "2", SMILES: "CCO"},
		{ID: "3", SMILES: "c1ccccc1C"},
		{ID: "4", SMILES: "Cc1ccccc1"},
		{ID: "g"},
		{ID: "g"},
		{ID: "5", SMILES: "CCC"},
		{ID: "6", SMILES: "C"},
	}
	if got := report.Different(cases, 4); !slices.Equal(got, []int{0, 2, 4, 6}) {
		t.Errorf("positions %v", got)
	}
}
