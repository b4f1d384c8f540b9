package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/backend/cpu/simd"
	"github.com/specmatch/specmatch/specmatch/run"
)

// TestPages: the pages have the tables as the program writes them from the results in the
// repository, every table is on one of them, and a page that has other figures is mended.
func TestPages(t *testing.T) {
	t.Chdir("../..")
	var out, unshown bytes.Buffer
	if err := execute(t.Context(), nil, &out, &unshown); err != nil {
		t.Fatal(err)
	}
	// What the pages have by hand.
	var files []string
	for line := range strings.Lines(unshown.String()) {
		file, _, _ := strings.Cut(strings.TrimPrefix(line, "no table has a place for what is in "), ": ")
		files = append(files, filepath.Base(file))
	}
	if want := []string{"hiv-100.json", "tox21-100.json", "toxcast-100.json", "initial.json", "motifs.json"}; !slices.Equal(files, want) {
		t.Errorf("no table shows %q, want %q:\n%s", files, want, unshown.String())
	}
	var folders []string
	for _, name := range []string{"kernels", "unsupervised", "semisupervised", "transfer"} {
		path, err := filepath.Abs(filepath.Join("experiments", name, "results"))
		if err != nil {
			t.Fatal(err)
		}
		folders = append(folders, path)
	}
	r, err := read(folders)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := r.texts()
	if err != nil {
		t.Fatal(err)
	}
	written := map[string]string{}
	var all strings.Builder
	for _, path := range pages {
		page, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		written[path] = string(page)
		all.Write(page)
		if filled, err := fill(string(page), texts); err != nil || filled != string(page) {
			t.Errorf("%s has other tables than go run ./experiments/summary -write gives it (%v):\n%s", path, err, cmp.Diff(string(page), filled))
		}
	}
	// No cell is empty, but for those of rows in "since" that are published on some sets only.
	for _, name := range []string{
		"table1", "table1-linear", "since", "since-linear", "table2-test-max", "table2-val", "table3-last",
		"table3-best-val",
	} {
		figures := cells(texts, name)
		if len(figures) == 0 {
			t.Errorf("there is no table %s", name)
		}
		for place, c := range figures {
			if strings.HasPrefix(c, "–") || c == "" && !strings.HasPrefix(name, "since") {
				t.Errorf("%s: %s has %q", name, place, c)
			}
		}
	}
	base := filepath.Join(t.TempDir(), "ranks")
	if err := r.draw(base); err != nil {
		t.Fatal(err)
	}
	want, _ := os.ReadFile(base + ".svg")
	if got, err := os.ReadFile(diagram + ".svg"); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s.svg is not what go run ./experiments/summary -write draws: %v", diagram, err)
	}
	for _, x := range texts {
		if !strings.Contains(all.String(), markBegin+x.name+markName) {
			t.Errorf("no page shows the table %s:\n%s", x.name, x.markdown)
		}
	}
	// Nor has a page a table of this kind, outside the marks, that is no longer printed.
	for part := range strings.SplitSeq(all.String(), "\n\n") {
		head, _, _ := strings.Cut(part, "\n")
		if strings.HasPrefix(head, "| ") && strings.Contains(out.String(), "\n"+head+"\n") && !strings.Contains(out.String(), strings.TrimSpace(part)+"\n") {
			t.Errorf("go run ./experiments/summary does not print this any more:\n%s", part)
		}
	}

	t.Chdir(t.TempDir())
	write := func() (string, error) {
		var out bytes.Buffer
		err := execute(t.Context(), []string{"-write", "-in", strings.Join(folders, ",")}, &out, io.Discard)
		return out.String(), err
	}
	if _, err := write(); err == nil || !strings.Contains(err.Error(), "root of the repository") {
		t.Errorf("-write elsewhere: %v", err)
	}
	for path, page := range written {
		if path == pages[0] {
			page = strings.Replace(page, "80.40 ± 0.12", "99.99 ± 0.01", 1)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(page), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if changed, err := write(); err != nil || changed != pages[0]+"\n" {
		t.Errorf("-write changed %q, %v; want %s", changed, err, pages[0])
	}
	if page, err := os.ReadFile(pages[0]); err != nil || string(page) != written[pages[0]] {
		t.Errorf("-write leaves %s with other text: %v", pages[0], err)
	}
}

// cells are those of a table, by row and column.
func cells(texts []text, name string) map[string]string {
	all := map[string]string{}
	for _, x := range texts {
		if x.name == name {
			for line := range strings.Lines(x.markdown) {
				if row := strings.Split(line, "|"); len(row) > 2 && !strings.Contains(line, "---") && !strings.HasPrefix(line, "| method") {
					for i, c := range row[2 : len(row)-1] {
						all[row[1]+strconv.Itoa(i)] = strings.TrimSpace(c)
					}
				}
			}
		}
	}
	return all
}

// TestCheck computes cells of the embedded set again: of the results as they are, and of
// some that other code has made.
func TestCheck(t *testing.T) {
	if level := simd.Level(); testing.Short() || level != simd.AVX2 && level != simd.AVX512 {
		t.Skipf("-short, or results of another instruction set than %v", simd.Level())
	}
	t.Chdir("../..")
	check := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := execute(t.Context(), append([]string{"-check", "-draw", "3"}, args...), &out, io.Discard)
		return out.String(), err
	}
	out, err := check("-cells", "2")
	if err != nil || strings.Count(out, " as before\n") != 4 || !strings.Contains(out, "of data sets, without -data") {
		t.Errorf("two cells under two protocols: %v\n%s", err, out)
	}
	stored, err := os.ReadFile("experiments/unsupervised/results/motifs.json")
	if err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(other, bytes.ReplaceAll(bytes.Replace(stored, []byte("[71.25,"), []byte("[71.25000000000001,"), 1), []byte("5839657"), []byte("none")), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-in", filepath.Dir(other), "-methods", "untrained", "-draw"}
	seen := map[bool]bool{}
	for _, draw := range []int{3, 4} { // one of each kind of seed
		out, err := check(append(args, strconv.Itoa(draw))...)
		differs := strings.Contains(out, "seed 0, graphcl: 71.25000000000001 in "+other+" differs (today's code: 71.25; none: git checkout")
		if seen[differs] = true; differs != (err != nil && strings.Contains(err.Error(), "1 of 1 cells differ")) {
			t.Errorf("draw %d: %v\n%s", draw, err, out)
		}
	}
	if len(seen) < 2 {
		t.Error("no draw finds the other value, or each does")
	}
	if _, err := check("-sets", "nosuch"); err == nil || !strings.Contains(err.Error(), "no row") {
		t.Errorf("no set: %v", err)
	}
}

// TestCheckOwnCode computes rows of a repository with a program of four versions: rows that
// today's version has, that an earlier one has, and that none has.
func TestCheckOwnCode(t *testing.T) {
	if _, err := exec.LookPath("git"); testing.Short() || err != nil {
		t.Skip("-short, or no git: ", err)
	}
	t.Chdir(t.TempDir())
	t.Setenv("TMPDIR", t.TempDir())
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(path, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	const program = `package main

import ("flag"; "fmt"; "os"; "time")

func main() {
	flag.Usage = func() {}
	method, out := flag.String("method", "", ""), flag.String("out", "", "")
	flag.Int("first-seed", 0, "")
	flag.Int("seeds", 0, "")
	flag.Parse()
	if *method == "slow" || *method == "slow then" && value == 1 {
		time.Sleep(time.Hour)
	}
	os.WriteFile(*out+"/results.json", fmt.Appendf(nil, "[{\"protocol\":\"p\",\"per_seed\":[%d]},{\"protocol\":\"q\",\"per_seed\":[7]}]", value), 0o644)
}
`
	write("go.mod", "module toy\n\ngo 1.26\n")
	git("init", "-q")
	commit := func(text string) string {
		write("experiments/toy/main.go", text)
		git("add", ".")
		git("commit", "-q", "-m", "x")
		return git("rev-parse", "--short", "HEAD")
	}
	old := commit(program + "const value = 1")
	broken := commit(program)
	flagless := commit(strings.Replace(program, "first-seed", "seed", 1) + "const value = 1")
	today := commit(program + "const value = 2")
	check := func(ctx context.Context, stderr io.Writer, rows string) (string, error) {
		write("results/toy.json", "["+rows+"]")
		var out bytes.Buffer
		err := execute(ctx, []string{"-check", "-in", "results"}, &out, stderr)
		if left, _ := filepath.Glob(os.Getenv("TMPDIR") + "/*"); left != nil {
			t.Errorf("left: %v", left)
		}
		return out.String(), err
	}
	row := func(method, protocol string, value int, code string) string {
		return fmt.Sprintf(`{"experiment":"toy","dataset":"motifs","method":%q,"protocol":%q,"per_seed":[%d],"code":%q}`, method, protocol, value, code)
	}

	same := row("new", "p", 2, today) + "," + row("old", "p", 1, broken+", "+old) + "," + row("old", "q", 7, broken+", "+old) + "," + row("older", "p", 1, old)
	out, err := check(t.Context(), io.Discard, same)
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"new on motifs, seed 0, p: 2 as before\n",
		"old on motifs, seed 0, p: 1 as before, by " + old + " (today's code: 2; " + broken + ": go build ",
		"undefined: value)\n",
		"old on motifs, seed 0, q: 7 as before\n",
		"older on motifs, seed 0, p: 1 as before, by " + old + " (today's code: 2)\n",
		"all 3 have the same bits, 2 of them by older code\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in:\n%s", want, out)
		}
	}
	out, err = check(t.Context(), io.Discard, same+","+row("a", "p", 3, old)+","+row("b", "p", 1, "0000000")+","+row("c", "p", 1, broken)+","+
		row("d", "p", 1, flagless)+","+row("e", "p", 1, ""))
	if err == nil || !strings.Contains(err.Error(), "5 of 8 cells differ") {
		t.Errorf("five rows that differ: %v", err)
	}
	const differs = " in results/toy.json differs (today's code: 2"
	for _, want := range []string{
		"a on motifs, seed 0, p: 3" + differs + "; " + old + ": 1)\n",
		"b on motifs, seed 0, p: 1" + differs + "; 0000000: git checkout ",
		"c on motifs, seed 0, p: 1" + differs + "; " + broken + ": go build ",
		"d on motifs, seed 0, p: 1" + differs + "; " + flagless + ": toy ",
		"flag provided but not defined: -first-seed)\n",
		"e on motifs, seed 0, p: 1" + differs + ")\n",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("want %q in:\n%s", want, out)
		}
	}

	for method, by := range map[string]string{"slow": "today's code", "slow then": old} {
		ctx, cancel := context.WithCancel(t.Context())
		var stopped time.Time
		out, err = check(ctx, writerFunc(func(line string) {
			if line == method+" on motifs, seed 0, by "+by+"\n" {
				time.AfterFunc(time.Second/10, func() { stopped = time.Now(); cancel() })
			}
		}), row(method, "p", 1, old))
		if !errors.Is(err, context.Canceled) || stopped.IsZero() || time.Since(stopped) > time.Second {
			t.Errorf("interrupted: %v after %v\n%s", err, time.Since(stopped), out)
		}
	}
}

type writerFunc func(string)

func (f writerFunc) Write(p []byte) (int, error) { f(string(p)); return len(p), nil }

// TestCode: every row of every experiment says which commits have computed it.
func TestCode(t *testing.T) {
	files, err := filepath.Glob("../*/results/*.json")
	if err != nil || len(files) < 50 {
		t.Fatalf("%d files of results, %v", len(files), err)
	}
	commits := regexp.MustCompile(`^[0-9a-f]{7}(, [0-9a-f]{7})*$`)
	for _, file := range files {
		data, err := os.ReadFile(file)
		var rows []run.Row
		if err = errors.Join(err, json.Unmarshal(data, &rows)); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		for _, r := range rows {
			if !commits.MatchString(r.Code) {
				t.Errorf("%s: %s on %s under %s names the code %q; want commits", file, r.Method, r.Dataset, r.Protocol, r.Code)
			}
		}
	}
}

func TestFill(t *testing.T) {
	texts := []text{{"a", "| 1 |\n"}}
	const mended = "x\n<!-- summary: a -->\n\n| 1 |\n\n<!-- end -->\ny"
	for page, want := range map[string]string{
		"x\n<!-- summary: a -->\n| 0 |\n<!-- end -->\ny": mended,
		mended:         mended,
		"no tables":    "no tables",
		"<!-- end -->": "<!-- end -->",
	} {
		if got, err := fill(page, texts); err != nil || got != want {
			t.Errorf("%q becomes %q, %v; want %q", page, got, err, want)
		}
	}
	for page, want := range map[string]string{
		"<!-- summary: b -->\n<!-- end -->":                             `no table "b"`,
		"<!-- summary: a -->\n| 0 |":                                    `ends the table "a"`,
		"<!-- summary: a -->\n<!-- summary: a -->\n| 0 |\n<!-- end -->": `ends the table "a"`,
	} {
		if _, err := fill(page, texts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want one with %q", page, err, want)
		}
	}
}

func made(values map[cell][]float64) results {
	all := results{}
	for key, v := range values {
		r := run.Row{Dataset: key.set, Method: key.method, Protocol: key.protocol, PerSeed: v}
		for seed := range v {
			r.Seeds = append(r.Seeds, seed)
		}
		all[key] = &result{Row: r}
	}
	return all
}

func TestRank(t *testing.T) {
	all := made(map[cell][]float64{
		{"A", "majority", protocol}: {1, 1, 1}, {"B", "majority", protocol}: {1, 2},
		{"A", "size", protocol}: {2, 1}, {"B", "size", protocol}: {1, 1},
		{"A", "labels", protocol}: {3, 3}, {"B", "labels", protocol}: {3, 0},
		{"A", "wl", protocol}:  {9, 9},                           // not on B
		{"A", "gin", protocol}: {9}, {"B", "gin", protocol}: {9}, // no spread
		{"A", "cuco", protocol}: {9, 9}, {"B", "cuco", "linear"}: {9, 9}, // not under the protocol
	})
	all[cell{"B", "size", protocol}].PerSeed[0] -= 1e-13 // majority's, summed in another order
	smaller := &result{Row: all[cell{"A", "majority", protocol}].Row, smaller: true}
	all[cell{"A", "node2vec", protocol}], all[cell{"B", "node2vec", protocol}] = smaller, smaller
	ranks, seeds := all.rank([]string{"A", "B"})
	want := map[string][]float64{ // ranks on A and B, by hand
		"majority": {(3 + 2.5) / 2, (2.5 + 1) / 2},
		"size":     {(2 + 2.5) / 2, (2.5 + 2) / 2},
		"labels":   {(1 + 1) / 2., (1 + 3) / 2.},
	}
	if seeds != 2 || !cmp.Equal(ranks, want) {
		t.Errorf("%d seeds, ranks %v; want 2 and %v", seeds, ranks, want)
	}
	// Seeds are told by their numbers, and not by their places.
	late := all[cell{"B", "labels", protocol}]
	late.Seeds = []int{1, 2}
	late.PerSeed = []float64{0, 9}
	if alone, n := all.rank([]string{"A", "B"}); n != 1 || alone["labels"][0] != want["labels"][1] {
		t.Errorf("%d seeds, ranks %v", n, alone)
	}
	for seed := range seeds { // a property: ranks of a seed sum to n(n+1)/2
		sum := 0.0
		for _, r := range ranks {
			sum += r[seed]
		}
		if math.Abs(sum-6) > 1e-12 {
			t.Errorf("seed %d: ranks of 3 methods sum to %g, want 6", seed, sum)
		}
	}
}

func TestRead(t *testing.T) {
	row := func(method, values string) string {
		return `[{"experiment":"e","dataset":"MUTAG","method":"` + method + `","protocol":"graphcl","metric":"accuracy","mean":1,"std":null,"per_seed":[` + values + `],"beta":0,"p":null}]`
	}
	folder := func(files map[string]string) string {
		dir := t.TempDir()
		for name, text := range files {
			path := filepath.Join(dir, name)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	print := func(dir string) (string, error) {
		var out bytes.Buffer
		err := execute(t.Context(), []string{"-in", dir}, &out, io.Discard)
		return out.String(), err
	}
	// Run directories, and a smaller form that gives way where there is a full one.
	text, err := print(folder(map[string]string{
		"a/results.json": row("wl", "80,82"), "a/config.json": "{}", "b-smaller.json": row("wl", "10"),
		"c-smaller.json": row("sub2vec", "61.5"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| WL subtree | 81.00 ± 1.41 (80.72) | – (80.01) |", "| sub2vec | 61.50† (61.05) |", "| WL subtree | 2 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
	// A label rate makes a set of its own, and a difference over one seed has no error.
	many := strings.ReplaceAll(row("none", "70,72")+row("gae", "73,74,75"), `"graphcl"`, `"test-max"`)
	few := strings.ReplaceAll(row("none", "60")+row("gae", "61.5"), `"graphcl"`, `"test-max"`)
	semi := strings.NewReplacer("][", ",", "MUTAG", "NCI1", `"e"`, `"semisupervised"`)
	for _, files := range []map[string]string{
		{"NCI1-0.1.json": semi.Replace(many), "NCI1-0.01.json": semi.Replace(few)},
		{"NCI1.json": semi.Replace(many), "run/config.json": `{"flags":{"label-rate":0.01}}`, "run/results.json": semi.Replace(few)},
		{"NCI1.json": semi.Replace(strings.ReplaceAll(many, `73,74,75]`, `74,75,73],"seeds":[1,2,0]`)), "NCI1-0.01.json": semi.Replace(few)},
	} {
		text, err = print(folder(files))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"| no pre-training | 71.00 ± 1.41 (73.72) |", "| – (51.33) | 60.00 (60.72) | – (57.46) |", "| GAE | 74.00 ± 1.00 (74.36) |",
			"| GAE, test-max | 2.50 ± 0.50 |  |  |  |  |  | 1.50 |  |", // 3 and 2, and 61.5 - 60
			"| GAE | −0.36 ± 0.58 |  |  |  |  |  | −0.13 |  |",         // less 74.36 and 61.63
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%v: the tables lack %q:\n%s", files, want, text)
			}
		}
	}
	// The flags of a run say which column its rows belong to, and its other files have none.
	degreesOf := strings.NewReplacer(`"e"`, `"unsupervised"`, "MUTAG", "COLLAB").Replace(row("graphmae", "81.25"))
	walks := strings.Replace(row("node2vec", "72.5"), `"e"`, `"kernels"`, 1)
	text, err = print(folder(map[string]string{
		"a/config.json": `{"flags":{"node-features":"degrees"}}`, "a/results.json": degreesOf, "a/splits.json": "{}",
		"b/config.json": `{"flags":{"walks":1}}`, "b/results.json": walks, "sweep.json": "{}",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| 81.25 (80.32) |", "| node2vec | 72.50† ("} {
		if !strings.Contains(text, want) {
			t.Errorf("the tables lack %q:\n%s", want, text)
		}
	}
	for want, files := range map[string]map[string]string{
		"both have wl on MUTAG under graphcl": {"a.json": row("wl", "1"), "b.json": row("wl", "2")},
		"a.json: not a results.json":          {"a.json": "{"},
		"a.json: wl on MUTAG has no seeds":    {"a.json": row("wl", "")},
		"no number for seed 2 of 2":           {"a.json": row("wl", "1,null")},
		"no results in":                       {"tables.md": ""},
	} {
		if _, err := print(folder(files)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
}
