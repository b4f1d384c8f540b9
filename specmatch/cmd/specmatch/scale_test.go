package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
)

// scaleTable is a table of molecules with a target over decades, its logarithm, and one in per cent.
func scaleTable() string {
	var b strings.Builder
	b.WriteString("smiles,volume,logarithm,percent\n")
	for i := range 120 {
		carbons, oxygens := 1+i%12, i/12
		volume := math.Pow(10, float64(carbons)/3-float64(oxygens)/5)
		percent := min(100, float64(carbons)*8+float64(oxygens)*3)
		fmt.Fprintf(&b, "%s%s,%v,%v,%v\n",
			strings.Repeat("C", carbons), strings.Repeat("O", oxygens), volume, math.Log(volume), percent)
	}
	return b.String()
}

// numbers reads columns of a table without its header.
func numbers(t *testing.T, path string, columns ...int) (rows [][]float64) {
	t.Helper()
	for _, line := range readCSV(t, path)[1:] {
		var row []float64
		for _, c := range columns {
			v, err := strconv.ParseFloat(line[c], 64)
			if err != nil {
				t.Fatal(err)
			}
			row = append(row, v)
		}
		rows = append(rows, row)
	}
	return rows
}

// TestLog: a fit of the logarithm is the fit of a column of logarithms, but for the unit of what it predicts;
// its intervals are positive.
func TestLog(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", scaleTable())
	const fit = "finetune -in m.csv -seeds 1 -epochs 4" + few + tiny
	stdout := must(t, fit+" -target volume -log -out log")
	for _, want := range []string{"RMSE of log10", "R² of log10"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %s in\n%s", want, stdout)
		}
	}
	must(t, fit+" -target logarithm -target-scale plain -out plain")
	logs := numbers(t, "log/test-0.csv", 1, 2)
	plain := numbers(t, "plain/test-0.csv", 1, 2)
	for i, row := range logs {
		if math.Abs(math.Log(row[0])-plain[i][0]) > 1e-5*max(1, math.Abs(plain[i][0])) {
			t.Errorf("row %d: %g, and %g by its logarithm", i, row[0], math.Exp(plain[i][0]))
		}
	}
	must(t, "predict -in m.csv -level 0.8 -model log/model-0.safetensors -out p.csv")
	must(t, "predict -in m.csv -level 0.8 -model plain/model-0.safetensors -out q.csv")
	ends := numbers(t, "q.csv", 1, 2, 3)
	for i, row := range numbers(t, "p.csv", 1, 2, 3) {
		for k, v := range row {
			if !(v > 0) || math.Abs(math.Log(v)-ends[i][k]) > 2e-5*max(1, math.Abs(ends[i][k])) {
				t.Fatalf("row %d: %g, and %g by its logarithm", i, row, ends[i])
			}
		}
	}
}

// TestRange: predictions and intervals of a range stay in it.
func TestRange(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", scaleTable())
	must(t, "finetune -in m.csv -target percent -range 0,100 -seeds 1 -epochs 4 -out run"+few+tiny)
	must(t, "predict -in m.csv -level 0.8 -model run/model-0.safetensors -out p.csv")
	for i, row := range numbers(t, "p.csv", 1, 2, 3) {
		if !(0 <= row[1] && row[1] <= row[0] && row[0] <= row[2] && row[2] <= 100) {
			t.Errorf("row %d: %g", i, row)
		}
	}
	for flags, want := range map[string]string{
		"-log -range 0,100":          "-log and -range both set -target-scale",
		"-range 100,0":               "LOW,HIGH with LOW < HIGH",
		"-range 5":                   "LOW,HIGH with LOW < HIGH",
		"-range 0,50":                `is not between 0 and 50`,
		"-range 0,100 -kind classes": "only numbers have a scale",
	} {
		_, _, err := invoke(t.Context(), "finetune -in m.csv -target percent -out no "+flags+few+tiny)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", flags, err)
		}
	}
}

// TestScaleIsChosen: a target over decades is fitted by its logarithm without being told, like a run that is
// told; -target-scale plain leaves it as it is.
func TestScaleIsChosen(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", scaleTable())
	const fit = "finetune -in m.csv -target volume -features descriptors -seeds 1 -epochs 2" + tiny
	_, stderr, err := invoke(t.Context(), fit+" -out auto")
	if err != nil || !strings.Contains(stderr, "fitted by their logarithm, since a linear model") {
		t.Errorf("%v\n%s", err, stderr)
	}
	must(t, fit+" -log -out log")
	must(t, fit+" -target-scale plain -out plain")
	chosen := read(t, "auto/test-0.csv")
	if chosen != read(t, "log/test-0.csv") || chosen == read(t, "plain/test-0.csv") {
		t.Error("the chosen scale is not the logarithm")
	}
}
