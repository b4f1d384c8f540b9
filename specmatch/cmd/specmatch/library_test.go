package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// drugs is a small library.
const drugs = `name,smiles,logS
aspirin,CC(=O)Oc1ccccc1C(=O)O,-1.72
salicylic acid,OC(=O)c1ccccc1O,-1.82
benzoic acid,OC(=O)c1ccccc1,-1.55
paracetamol,CC(=O)Nc1ccc(O)cc1,-1.03
phenacetin,CCOc1ccc(NC(C)=O)cc1,-2.35
caffeine,Cn1c(=O)c2c(ncn2C)n(C)c1=O,-0.88
theobromine,Cn1cnc2c1c(=O)[nH]c(=O)n2C,-2.52
broken,C1CC,0
hexane,CCCCCC,-3.84
heptane,CCCCCCC,-4.53
`

// TestSearchLibrary: the nearest molecules by bits, counts and vectors, above a least similarity, for several
// queries, from a packed file in parts.
func TestSearchLibrary(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "drugs.csv", drugs)
	stdout, stderr, err := invoke(t.Context(),
		"search -in drugs.csv -id name -query CC(=O)Oc1ccccc1C(=O)O -top 2 -keep logS -out hits.csv")
	if err != nil || stdout != "hits.csv: 2 molecules for 1 queries, of 9\n" {
		t.Errorf("%q, %v", stdout, err)
	}
	if !strings.Contains(stderr, `1 of 10 records cannot be used, such as dataset: drugs.csv:9: "C1CC"`) {
		t.Errorf("%q", stderr)
	}
	want := "query,id,smiles,logS,similarity\n" +
		"CC(=O)Oc1ccccc1C(=O)O,aspirin,CC(=O)Oc1ccccc1C(=O)O,-1.72,1\n" +
		"CC(=O)Oc1ccccc1C(=O)O,salicylic acid,OC(=O)c1ccccc1O,-1.82,0.448276\n"
	if got := read(t, "hits.csv"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	for _, by := range []string{"bits:3:1024", "counts", "vectors"} {
		must(t, "search -in drugs.csv -id name -query CCCCCC,Cn1cnc2c1c(=O)[nH]c(=O)n2C -top 2 -out hits.csv -by "+by)
		var ids []string
		for _, row := range readCSV(t, "hits.csv")[1:] {
			ids = append(ids, row[1])
		}
		if want := []string{"hexane", "heptane", "theobromine", "caffeine"}; !slices.Equal(ids, want) {
			t.Errorf("%s: %q, want %q", by, ids, want)
		}
	}
	_, stderr, err = invoke(t.Context(), "search -in drugs.csv -id name -queries drugs.csv -least 0.5 -out hits.csv -by counts")
	if err != nil || !strings.Contains(stderr, "hits.csv: replaces an earlier file") ||
		!strings.Contains(stderr, "drugs.csv: 1 of the queries cannot be used") {
		t.Errorf("%q, %v", stderr, err)
	}
	for _, row := range readCSV(t, "hits.csv")[1:] {
		if row[0] == "broken" || row[3] < "0.5" {
			t.Errorf("%q", row)
		}
	}
	out := must(t, "search -in drugs.csv -id name -smarts [CX3](=O)[OX2H1] -out acids.csv")
	rows := readCSV(t, "acids.csv")
	if out != "acids.csv: 3 of 9 molecules have the substructure\n" || !slices.Equal(rows[2], []string{"salicylic acid", "OC(=O)c1ccccc1O", "1"}) {
		t.Errorf("%q, %q", out, rows)
	}
	must(t, "search -in drugs.csv -id name -smarts [CX3](=O)[OX2H1] -query c1ccccc1O -top 1 -out acids.csv")
	if rows := readCSV(t, "acids.csv"); len(rows) != 2 || rows[1][1] != "benzoic acid" {
		t.Errorf("%q", rows)
	}
	// Queries are read as the library is, unless their names or columns tell otherwise.
	write(t, "library.dat", "mol,parent\nCCO,CCN\nCCC,CCN\n")
	write(t, "queries.dat", "parent,mol\nCCN,CCC\n")
	write(t, "smiles.csv", "smiles\nCCC\n")
	write(t, "queries.smi", "CCC\n")
	for _, queries := range []string{"queries.dat", "smiles.csv", "queries.smi"} {
		must(t, "search -in library.dat -format csv -smiles-column mol -least 1 -out hits.csv -queries "+queries)
		if rows := readCSV(t, "hits.csv"); len(rows) != 2 || !slices.Equal(rows[1], []string{"CCC", "2", "CCC", "1"}) {
			t.Errorf("%s: %q", queries, rows)
		}
	}
	// 3,000 records, of which each third is the same: the first is found in each part.
	file, err := os.Create("many.smi.gz")
	if err != nil {
		t.Fatal(err)
	}
	packed := gzip.NewWriter(file)
	for i := range 3000 {
		fmt.Fprintf(packed, "%s m%d\n", []string{"CCO", "CCCO", "CCN"}[i%3], i)
	}
	if err := errors.Join(packed.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	must(t, "search -in many.smi.gz -query CCO -least 1 -out all.csv")
	must(t, "search -in many.smi.gz -query CCO -top 3 -out top.csv")
	all := readCSV(t, "all.csv")
	top := readCSV(t, "top.csv")
	if len(all) != 1001 || all[1000][1] != "m2997" || len(top) != 4 || top[3][1] != "m6" {
		t.Errorf("%d rows, %d rows, %q", len(all), len(top), top[3])
	}
	// The least similarity that is the default finds as much as the default.
	must(t, "search -in many.smi.gz -query CCO -least 0 -out zero.csv")
	if n := len(readCSV(t, "zero.csv")); n != 11 {
		t.Errorf("-least 0 has %d rows, want a header and the 10 of -top", n)
	}
}

// TestClusterLibrary: clusters by similarity and by scaffold.
func TestClusterLibrary(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "drugs.csv", drugs)
	if out := must(t, "cluster -in drugs.csv -id name -least 0.4 -out c.csv"); out != "c.csv: 4 clusters of 9 molecules\n" {
		t.Errorf("%q", out)
	}
	clusters := map[string][]string{}
	for _, row := range readCSV(t, "c.csv")[1:] {
		clusters[row[0]] = append(clusters[row[0]], row[2])
	}
	if got := fmt.Sprintf("%q", clusters["1"]); got != `["salicylic acid" "aspirin" "benzoic acid"]` {
		t.Errorf("%q", clusters)
	}
	write(t, "mapped.smi", "[CH3:1][c:2]1[cH:3][cH:4][cH:5][cH:6][cH:7]1\nCc1ccccc1\nCn1cccc1\nc1cc[nH]c1\nN[Pt@SP1](N)(Cl)Cl\nC$C\n")
	if out := must(t, "cluster -in mapped.smi -scaffold -out m.csv"); out != "m.csv: 3 clusters of 6 molecules\n" {
		t.Errorf("%q", out)
	}
	if out := must(t, "search -in mapped.smi -smarts [Pt] -out p.csv"); out != "p.csv: 1 of 6 molecules have the substructure\n" {
		t.Errorf("%q", out)
	}
	must(t, "cluster -in drugs.csv -id name -scaffold -out s.csv")
	rows := readCSV(t, "s.csv")
	want := []string{"1", "5", "aspirin", "CC(=O)Oc1ccccc1C(=O)O", "c1ccccc1"}
	if !slices.Equal(rows[1], want) || rows[6][4] != "O=c1[nH]c(=O)c2[nH]cnc2[nH]1" && rows[6][0] != "2" {
		t.Errorf("%q", rows)
	}
}

// TestPickLibrary: the same picks for the same seed, and those that follow given ones.
func TestPickLibrary(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "drugs.csv", drugs)
	must(t, "pick -in drugs.csv -id name -first caffeine,hexane -count 3 -out p.csv")
	rows := readCSV(t, "p.csv")
	if len(rows) != 4 || rows[1][1] != "caffeine" || rows[2][1] != "hexane" || rows[3][3] == "1" {
		t.Errorf("%q", rows)
	}
	must(t, "pick -in drugs.csv -seed 5 -count 100 -out a.csv")
	must(t, "pick -in drugs.csv -seed 5 -count 4 -out b.csv")
	if a, b := read(t, "a.csv"), read(t, "b.csv"); !strings.HasPrefix(a, b) || len(readCSV(t, "a.csv")) != 10 {
		t.Errorf("%s\nand\n%s", a, b)
	}
}

// TestMapLibrary: coordinates, the error between two columns, and a page with drawings.
func TestMapLibrary(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "drugs.csv", withFitted(drugs))
	out := must(t, "map -in drugs.csv -id name -method pca -error fitted,logS -out m.csv -page m.html")
	if !strings.HasPrefix(out, "m.html: 9 drawings\nm.csv: coordinates of 9 molecules; the axes have ") {
		t.Errorf("%q", out)
	}
	rows := readCSV(t, "m.csv")
	if !slices.Equal(rows[0], []string{"id", "smiles", "fitted", "logS", "x", "y", "error"}) || rows[1][6] != "0.5" {
		t.Errorf("%q", rows[:2])
	}
	page := read(t, "m.html")
	if strings.Count(page, "<figure") != 9 || !strings.Contains(page, "<canvas") || !strings.Contains(page, `"Colour":6`) {
		t.Errorf("%d figures", strings.Count(page, "<figure"))
	}
	write(t, "dates.csv", "smiles,y,when,gap\nCCO,1,,\nCCN,2,2024-05-01,n.d.\nCCC,3,2024-05-02,\n")
	for column, want := range map[string]string{
		"when": `dates.csv: column when: no value is a number, such as "2024-05-01": -error takes two columns of numbers`,
		"gap":  "dates.csv: column gap has no value: -error takes two columns of numbers",
	} {
		_, _, err := invoke(t.Context(), "map -in dates.csv -method pca -out d.csv -error y,"+column)
		if err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
	for _, by := range []string{"counts", "vectors"} {
		must(t, "map -in drugs.csv -iterations 20 -out t.csv -by "+by)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	for _, line := range []string{"map -in drugs.csv", "cluster -in drugs.csv", "pick -in drugs.csv", "search -in drugs.csv -query CCO"} {
		if _, _, err := invoke(stopped, line+" -out stopped.csv"); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", line, err)
		}
	}
	if _, err := os.Stat("stopped.csv"); err == nil {
		t.Error("a table of a command that was stopped")
	}
}

// withFitted adds a column of numbers that are larger by a half.
func withFitted(table string) string {
	var b strings.Builder
	for k, line := range strings.Split(strings.TrimSpace(table), "\n") {
		if k == 0 {
			b.WriteString(line + ",fitted\n")
			continue
		}
		var y float64
		fmt.Sscan(line[strings.LastIndex(line, ",")+1:], &y)
		fmt.Fprintf(&b, "%s,%.2f\n", line, y+0.5)
	}
	return b.String()
}

// TestShippedPredictors: admet has a column for each endpoint, which one alone predicts, too.
func TestShippedPredictors(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "drugs.csv", drugs)
	must(t, "predict -in drugs.csv -id name -model admet -workers 1 -out all.csv")
	must(t, "predict -in drugs.csv -id name -model admet:caco2 -level 0.9 -domain domain.csv -workers 1 -out one.csv")
	all := readCSV(t, "all.csv")
	one := readCSV(t, "one.csv")
	if len(all) != 10 || all[0][1] != "caco2" || !slices.Equal(one[0], []string{"id", "caco2", "caco2_low", "caco2_high"}) {
		t.Fatalf("%q and %q", all[0], one[0])
	}
	for i := range all {
		if all[i][1] != one[i][1] {
			t.Errorf("%q and %q", all[i][1], one[i][1])
		}
	}
	if out := must(t, "inspect -model admet"); strings.Count(out, "\n") != len(all[0])-1 || !strings.Contains(out, "admet:herg") {
		t.Errorf("%s", out)
	}
	for line, want := range map[string]string{
		"predict -in drugs.csv -model admet:hreg -out p.csv":          `did you mean "herg"?`,
		"predict -in drugs.csv -model admet -domain d.csv -out p.csv": "are for one endpoint: name it, as in -model admet:caco2",
		"embed -in drugs.csv -model admet -out p.npy":                 "endpoints; name one, such as admet:caco2",
	} {
		if _, _, err := invoke(t.Context(), line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
}
