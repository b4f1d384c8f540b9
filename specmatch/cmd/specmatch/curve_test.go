package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor"
)

// TestCurve: two texts are a binary task, the curve has a row for each share of the training set, a run that is
// started again adds nothing, and answers are those of the cut in the model file.
func TestCurve(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "smiles,effect\n"
	for i := range 160 {
		text += fmt.Sprintf("%s%s,%s\n", strings.Repeat("C", 1+i/4), []string{"", "O", "N", "O"}[i%4], []string{"safe", "toxic"}[i%2])
	}
	write(t, "m.csv", text)
	fit := "finetune -in m.csv -positive toxic -curve 3 -seeds 2 -epochs 2 -out run" + tiny
	out := must(t, fit)
	_, curve, _ := strings.Cut(out, "Learning curve")
	for _, want := range []string{"1/4         32", "1/2         64", "1/1        128"} {
		if !strings.Contains(curve, want) {
			t.Errorf("the curve lacks %q:\n%s", want, curve)
		}
	}
	if !strings.Contains(out, "safe predicted") || !strings.Contains(read(t, "run/curve.svg"), "ROC-AUC") {
		t.Errorf("no names of the classes, or no picture:\n%s", out)
	}
	units := read(t, "run/done.jsonl")
	if again := must(t, "finetune -out run"); again != out || read(t, "run/done.jsonl") != units {
		t.Errorf("started again:\n%s", again)
	}

	// A table of the literature has targets of its own, which no -target names.
	write(t, "esol.csv", strings.ReplaceAll(moleculeTable(60), "length", "logS"))
	must(t, "finetune -in esol.csv -curve 2 -seeds 1 -epochs 1 -out esol"+few+tiny)
	if curve := read(t, "esol/curve.svg"); !strings.Contains(curve, ">logS<") {
		t.Errorf("the picture lacks the target:\n%s", curve)
	}
	// Each shard estimates its own fits, of two to full training sets and four to shares.
	for _, shard := range []string{"0/2", "1/2"} {
		line := "finetune -in esol.csv -curve 3 -seeds 2 -epochs 1 -out shards -shard " + shard + few + tiny
		if _, stderr, err := invoke(t.Context(), line); err != nil || !strings.Contains(stderr, " for 3 fits of ") {
			t.Errorf("shard %s has no estimate for 3 fits:\n%s%v", shard, stderr, err)
		}
	}

	must(t, "predict m.csv p.csv -model run/model-0.safetensors -answers")
	m, err := model.Open("run/model-0.safetensors", cpu.New(tensor.Float32))
	if err != nil {
		t.Fatal(err)
	}
	cut := m.Card.Calibration.Cuts[0]
	yes := 0
	for _, row := range readCSV(t, "p.csv")[1:] {
		p, _ := strconv.ParseFloat(row[1], 64)
		if want := map[bool]string{false: "0", true: "1"}[p >= cut]; row[2] != want {
			t.Errorf("%v: the answer is not %s, by the cut %v", row, want, cut)
		}
		yes += strings.Count(row[2], "1")
	}
	if yes == 0 || yes == 160 {
		t.Errorf("%d of 160 answers are yes", yes)
	}
	for args, want := range map[string]string{
		"-curve 1":            "at least 2 sizes",
		"-curve 6":            "has 4 of 128 records; want at least 5",
		"-curve 2 -test none": "needs a test set",
		"-kind classes":       "leave out -kind classes",
	} {
		_, _, err := invoke(t.Context(), "finetune -in m.csv -positive toxic -out other "+args)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
	if _, err := os.Stat("other"); err == nil {
		t.Error("a refused run left a folder")
	}
}
