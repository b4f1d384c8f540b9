package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/check"
)

// table is a table with one specimen of each kind.
const table = `id,smiles,y,part
a,OCC,1,train
b,C(C)O,3,train
c,CCN,10,train
d,[CH3:1][CH2:2][NH2:3],10,train
e,C[C@H](N)C(=O)O,2,train
f,C[C@@H](N)C(=O)O,2,train
g,CC(=O)[O-].[Na+],4,train
h,CC(=O)O,4,test
i,CCO,2,test
j,C(C)(C)(C)(C)C,5,test
k,C[NH2+]C,6,train
`

func read(t *testing.T, text, split string) *check.Table {
	t.Helper()
	o := check.Options{
		Records: records.Options{ID: "id", Input: strings.NewReader(text)},
		Targets: []string{"y"},
		Split:   split,
	}
	x, err := check.Read(t.Context(), "m.csv", o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestFindings: each specimen is found, with its lines.
func TestFindings(t *testing.T) {
	var got []string
	for _, f := range read(t, table, "part").Findings() {
		got = append(got, f.Name+": "+f.Text)
	}
	want := []string{
		"unreadable: 1 of 11 records, such as line 11:",
		"salts: 1 molecules have several fragments (lines 8)",
		"charges: 1 molecules have charges that hydrogens can balance (lines 12)",
		"map numbers: 1 molecules have atom map numbers (lines 5)",
		"duplicates: 2 molecules are there more than once, in 5 records (lines 2, 3, 10)",
		"stereo twins: 1 groups of molecules differ in their configuration only, in 2 records (lines 6, 7)",
		"salt twins: 1 groups of molecules differ in their counter-ions or charges only, in 2 records (lines 8, 9)",
		"replicates: y: those of 1 of 2 molecules differ, with a standard deviation of 0.816, most for lines 2, 3, 10",
		"leakage: 2 records of train are molecules of test, too, and 1 more but for counter-ions or charges",
	}
	for i, w := range want {
		if i >= len(got) || !strings.HasPrefix(got[i], w) {
			t.Errorf("want %q in\n%s", w, strings.Join(got, "\n"))
		}
	}
}

// TestIdentity: map numbers and spellings make no other molecule, and configurations of any kind are read.
func TestIdentity(t *testing.T) {
	for _, text := range []string{
		"a,C[C@H]([CH3:1])F,1\nb,CC(C)F,2\n",
		"a,C/C(CC)=N/O,1\nb,CC/C(C)=N\\O,2\n",
		"a,N[Pt@SP1](N)(Cl)Cl,1\nb,Cl[Pt@SP1]([NH2:1])([NH2:2])Cl,2\n",
		"a,C$C,1\nb,C$C,2\n",
	} {
		x := read(t, "id,smiles,y\n"+text, "")
		if len(x.Rows) != 2 || len(x.Rejected) > 0 || x.Rows[0].SMILES != x.Rows[1].SMILES {
			t.Errorf("%q: %+v, %v", text, x.Rows, x.Rejected)
		}
	}
}

// TestLabels: decades, outliers, rare classes and constants.
func TestLabels(t *testing.T) {
	for name, label := range map[string]func(i int) string{
		"decades":        func(i int) string { return fmt.Sprint(1 + i*i*i*i) },
		"outliers":       func(i int) string { return fmt.Sprint(i%10 + i/39*1000) },
		"imbalance":      func(i int) string { return fmt.Sprint(i / 38) },
		"constant":       func(int) string { return "x" },
		"texts":          func(i int) string { return []string{"1.5", "2.5", "3", "n"}[i%4] },
		"bounds":         func(i int) string { return []string{"1.5", "2.5", ">10", "NA"}[i%4] },
		"approximations": func(i int) string { return []string{"1.5", "2.5", "~5", ">10 uM"}[i%4] },
		"decimal commas": func(i int) string { return fmt.Sprintf("\"%d,5\"", i) },
		"spellings":      func(i int) string { return []string{"Active", "active", "inactive"}[i%3] },
		"missing labels": func(i int) string { return []string{"1.5", "2.5", "3", "n.d."}[i%4] },
	} {
		text := "id,smiles,y\n"
		for i := range 40 {
			text += fmt.Sprintf("m%d,%s,%s\n", i, strings.Repeat("C", i+1), label(i))
		}
		found := read(t, text, "").Findings()
		if !slices.ContainsFunc(found, func(f check.Finding) bool { return f.Name == name }) {
			t.Errorf("%s is not among %v", name, found)
		}
	}
	text := "id,smiles,y\n"
	for i := range 40 {
		text += fmt.Sprintf("m%d,%s,%d uM\n", i, strings.Repeat("C", i+1), i)
	}
	want := []check.Finding{{"texts", `y: 40 different texts in 40 labels, such as "0 uM", are neither numbers nor classes`}}
	if found := read(t, text, "").Findings(); !slices.Equal(found, want) {
		t.Errorf("%v, want %v", found, want)
	}
}

// TestReplicates: whether labels are numbers is a question to the column, and not to the molecule.
func TestReplicates(t *testing.T) {
	for labels, want := range map[string]string{
		"0 0 2.1 2.5": "y: those of 1 of 2 molecules differ, with a standard deviation of 0.2, most for lines 4, 5 (0.4 apart)",
		"0 1 1 1":     "y: those of 1 of 2 molecules contradict each other, such as lines 2, 3",
		"1 1.0 2 2":   "y: 2 molecules have several labels, which agree",
		"3 3.2 >1 >7": "y: those of 1 of 2 molecules differ, with a standard deviation of 0.141, most for lines 2, 3 (0.2 apart): no",
		">1 >7 2 2.0": "y: 2 molecules have several labels, which agree",
		">3 <1 2 2.0": "y: those of 1 of 2 molecules contradict each other, such as lines 2, 3",
		"4 3uM 5 5":   "y: 1 molecules have several labels, which agree",
		"3 >2 4 5":    "y: those of 1 of 1 molecules differ, with a standard deviation of 0.707, most for lines 4, 5 (1 apart)",
	} {
		text := "id,smiles,y\n"
		for i, label := range strings.Fields(labels) {
			text += fmt.Sprintf("m%d,%s,%s\n", i, []string{"CCO", "OCC", "CCN", "NCC"}[i], label)
		}
		got := ""
		for _, f := range read(t, text, "").Findings() {
			if f.Name == "replicates" {
				got = f.Text
			}
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", labels, got, want)
		}
	}
}

// TestParts: names of parts that differ in spelling only are one part.
func TestParts(t *testing.T) {
	found := read(t, "id,smiles,y,part\na,CCO,1,Train\nb,OCC,2,training\nc,CCN,3,Testing\nd,CCC,4,other\n", "part")
	var cleaned strings.Builder
	if _, err := found.Write(&cleaned, check.Mean); err != nil {
		t.Fatal(err)
	}
	if want := "id,smiles,y,part\na,CCO,1.5,train\nc,CCN,3,test\nd,CCC,4,other\n"; cleaned.String() != want {
		t.Errorf("%q, want %q", cleaned.String(), want)
	}
	for _, f := range found.Findings() {
		if f.Name == "leakage" {
			t.Error(f.Text)
		}
	}
}

// TestUnreadable: a table without a record says why.
func TestUnreadable(t *testing.T) {
	o := check.Options{Records: records.Options{Input: strings.NewReader("smiles\nC1CC\n")}}
	_, err := check.Read(t.Context(), "m.csv", o)
	if err == nil || !strings.HasPrefix(err.Error(), "m.csv: no record can be used, such as line 2: character 2 of the SMILES: ") {
		t.Error(err)
	}
}

// TestMerge: what the cleaned table has of replicates within a part.
func TestMerge(t *testing.T) {
	for merge, want := range map[check.Merge]string{
		check.Keep:   "10 a,CCO,1,train b,CCO,3,train c,CCN,10,train",
		check.Mean:   "8 a,CCO,2,train c,CCN,10,train",
		check.Median: "8 a,CCO,2,train c,CCN,10,train",
		check.Drop:   "7 c,CCN,10,train e,",
	} {
		var text strings.Builder
		rows, err := read(t, table, "part").Write(&text, merge)
		lines := strings.Split(text.String(), "\n")
		if got := fmt.Sprint(rows, " ", strings.Join(lines[1:], " ")); err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, %v; want %s", merge, got, err, want)
		}
		if lines[0] != "id,smiles,y,part" {
			t.Error(lines[0])
		}
	}
	classes := "id,smiles,y\na,CCO,yes\nb,OCC,yes\nc,C(O)C,no\nd,CCN,yes\ne,NCC,no\n"
	// The numbers of one molecule do not tell what those of the column are.
	numbers := "id,smiles,y\na,CCO,0\nb,OCC,1\nc,CCC,2.5\n"
	var merged strings.Builder
	if _, err := read(t, numbers, "").Write(&merged, check.Mean); err != nil || merged.String() != "id,smiles,y\na,CCO,0.5\nc,CCC,2.5\n" {
		t.Errorf("%q, %v", merged.String(), err)
	}
	var text strings.Builder
	if _, err := read(t, classes, "").Write(&text, check.Mean); err != nil || text.String() != "id,smiles,y\na,CCO,yes\nd,CCN,\n" {
		t.Errorf("%q, %v", text.String(), err)
	}
}

// TestMergeGaps: a missing label does not vote down the others of its molecule.
func TestMergeGaps(t *testing.T) {
	for _, c := range []struct {
		labels   string // of one molecule
		measured bool   // they are numbers of a scale
		merge    check.Merge
		want     string // "dropped" if the molecule is
	}{
		{"-6.78 NA", true, check.Mean, "-6.78"},
		{"0.07 NA NA", true, check.Mean, "0.07"},
		{"1 3 nan", true, check.Median, "2"},
		{"1 3 n.d.", true, check.Mean, "2"},
		{"2.5 null", true, check.Drop, "2.5"},
		{"NA null", true, check.Mean, ""},
		{"yes NA NA", false, check.Mean, "yes"},
		{"+ - -", false, check.Mean, "-"},
		{"4 6 >10", true, check.Mean, "5"},
		{"4 >10", true, check.Drop, "dropped"},
		{">10 n.d.", true, check.Mean, ">10"},
		{"n.d. <=2 -", true, check.Drop, "<=2"},
		{"0 1", true, check.Mean, "0.5"},
		{"0 1 1", false, check.Mean, "1"},
		{"0 1", false, check.Mean, ""},
		{"0 2", false, check.Mean, ""},
		{"5 5.0", true, check.Drop, "5"},
		{"1 1.0", false, check.Median, "1"},
	} {
		var rows [][]string
		for _, label := range strings.Fields(c.labels) {
			rows = append(rows, []string{label})
		}
		got := "dropped"
		if labels, _, ok := check.MergeLabels(rows, []bool{c.measured}, c.merge); ok {
			got = labels[0]
		}
		if got != c.want {
			t.Errorf("%s of %s is %q, want %q", c.merge, c.labels, got, c.want)
		}
	}
}

// TestLosses: numbers have a mean whatever texts are next to them, the tightest bound stands for others, and what no
// label stands for is named.
func TestLosses(t *testing.T) {
	for _, c := range []struct {
		labels string // of one molecule, from line 2 on
		merge  check.Merge
		label  string
		loss   string // how its line begins
	}{
		{"3 uM;4;6", check.Mean, "5", `y: 1 molecules have labels that are no numbers, which do not count: write the number ` +
			`alone: ["3 uM" "4" "6"] (lines 2, 3, 4)`},
		{"3 uM;4;4;9", check.Mean, "5.666666666666667", `y: 1 molecules have labels that are no numbers`},
		{"3 uM;4;4;9", check.Median, "4", `y: 1 molecules have labels that are no numbers`},
		{"~5;4", check.Mean, "4", `y: 1 molecules have labels that are no numbers`},
		{"1,5;1,7", check.Mean, "", `y: 1 molecules have no label, as theirs are no numbers: write the number alone: ["1,5"`},
		{">3;>7", check.Mean, ">7", ""},
		{">7;>=7;>3", check.Median, ">7", ""},
		{"<2;<4", check.Mean, "<2", ""},
		{"<2;>4", check.Mean, "", `y: 1 molecules have no label, as their bounds contradict each other: correct them, or take ` +
			`-merge drop: ["<2" ">4"] (lines 2, 3)`},
		{">2;<4", check.Mean, "", `y: 1 molecules have no label, as no single one is a bound on both sides`},
		{">2;<4;3", check.Mean, "3", ""},
	} {
		text := "id,smiles,y\n"
		for i, label := range strings.Split(c.labels, ";") {
			text += fmt.Sprintf("m%d,CCO,\"%s\"\n", i, label)
		}
		x := read(t, text+"n,CCC,2.5\no,CCCC,3.5\np,CCN,4.5\nq,CN,5.5\n", "")
		var cleaned strings.Builder
		if _, err := x.Write(&cleaned, c.merge); err != nil {
			t.Fatal(err)
		}
		if line := strings.Split(cleaned.String(), "\n")[1]; line != "m0,CCO,"+c.label {
			t.Errorf("%s of %s is %q, want %q", c.merge, c.labels, line, c.label)
		}
		loss := ""
		for _, f := range x.Losses(c.merge) {
			loss += f.Text
		}
		if !strings.HasPrefix(loss, c.loss) || c.loss == "" && loss != "" {
			t.Errorf("%s: %q, want %q", c.labels, loss, c.loss)
		}
	}
	classes := read(t, "id,smiles,y\na,CCO,yes\nb,OCC,no\nc,CCN,yes\nd,CCC,no\n", "")
	want := []check.Finding{{"lost labels", `y: 1 molecules have no label, as several classes are the most frequent: ` +
		`correct them, or take -merge drop: ["yes" "no"] (lines 2, 3)`}}
	if found := classes.Losses(check.Mean); !slices.Equal(found, want) {
		t.Errorf("%v, want %v", found, want)
	}
	many := read(t, "id,smiles,y\na,CCO,1 x\nb,OCC,2 x\nc,CCO,3 x\nd,OCC,4 x\ne,CCC,1\nf,CCN,2\n", "")
	want = []check.Finding{{"lost labels", `y: 1 molecules have no label, as several classes are the most frequent: ` +
		`correct them, or take -merge drop: ["1 x" "2 x" "3 x" …] (lines 2, 3, 4, …)`}}
	if found := many.Losses(check.Mean); !slices.Equal(found, want) {
		t.Errorf("%v, want %v", found, want)
	}
	if found := classes.Losses(check.Keep); found != nil {
		t.Errorf("%v, where all rows are kept", found)
	}
}

// TestMissingParts: records without a part are in none, and they and misspelt parts are named.
func TestMissingParts(t *testing.T) {
	for parts, want := range map[string]string{
		"train  test ": "missing parts: part: 2 of 4 records have none (lines 3, 5): finetune -split part refuses them; " +
			"write train, valid or test",
		"train tset test train": "unknown parts: part: 1 of 4 records are of others, such as \"tset\" (lines 3): finetune " +
			"-split part takes train, valid and test",
		"1 2 3 4": "",
	} {
		text := "id,smiles,y,part\n"
		for i, part := range strings.Split(parts, " ") {
			text += fmt.Sprintf("m%d,%s,%d.5,%s\n", i, []string{"CCO", "OCC", "CCN", "CCC"}[i], i, part)
		}
		got := ""
		for _, f := range read(t, text, "part").Findings() {
			if strings.HasSuffix(f.Name, " parts") {
				got += f.Name + ": " + f.Text
			}
			if f.Name == "leakage" && strings.Contains(f.Text, " of ,") {
				t.Error(f.Text)
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", parts, got, want)
		}
	}
}
