package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

// TestTargets: targets with gaps have losses and weights of their own, from one command; only ratios of weights
// count, and what names no target is a mistake of usage.
func TestTargets(t *testing.T) {
	t.Chdir(t.TempDir())
	table := "smiles,logd,fast,active,split\n"
	for n := range 32 {
		part := []string{"train", "train", "valid", "test"}[n%4]
		fast := ""
		if n%3 > 0 {
			fast = fmt.Sprint(math.Sqrt(float64(n)))
		}
		table += fmt.Sprintf("%s,%d.5,%s,%d,%s\n", strings.Repeat("C", n+1), n*n, fast, n/4%2, part)
	}
	write(t, "nine.csv", table)
	fit := func(out, flags string) string {
		must(t, "finetune nine.csv "+out+" -target logd,fast -split split -seeds 1 -epochs 2 -hidden 8 -layers 2"+
			" -features encoder -forest 0 -target-scale plain "+flags)
		return read(t, out+"/test-0.csv")
	}
	squared := fit("squared", "")
	absolute := fit("absolute", "-loss absolute")
	mixed := fit("mixed", "-loss absolute,logd=squared")
	weighted := fit("weighted", "-target-weights logd=8")
	for name, same := range map[string]bool{
		"absolute as squared": absolute == squared,
		"mixed as absolute":   mixed == absolute,
		"mixed as squared":    mixed == squared,
		"weights":             weighted == squared,
		"each named":          fit("named", "-loss fast=absolute,logd=squared") != mixed,
		"ratios":              fit("ratios", "-target-weights logd=4,fast=0.5") != weighted,
		"alike":               fit("alike", "-target-weights alike") == squared,
	} {
		if same {
			t.Errorf("%s: the predictions are not what the flags ask for", name)
		}
	}
	if card := must(t, "inspect -model mixed/model-0.safetensors"); !strings.Contains(card, "logd=squared,fast=absolute") {
		t.Errorf("the model does not tell its losses:\n%s", card)
	}
	for flags, want := range map[string]string{
		"-target logd,fast -loss logP=absolute":              `no target "logP"`,
		"-target logd,fast -loss logD=absolute":              `did you mean "logd"? (targets: logd, fast)`,
		"-target logd,fast -loss huber":                      "want squared or absolute",
		"-target logd,fast -loss squared,absolute":           "want one value without a name",
		"-target logd,fast -loss logd=squared,logd=absolute": "target logd has two values",
		"-target logd,fast -target-weights logd=0":           "want a number above 0",
		"-target logd,fast -target-weights 2":                "want alike or NAME=WEIGHT",
		"-target logd -target-weights logd=2":                "logd is the only one",
		"-target active -loss active=absolute":               "is for numbers, and the targets are of kind binary",
	} {
		_, _, err := invoke(t.Context(), "finetune nine.csv bad "+flags)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", flags, err, want)
		}
	}
}

// TestTaskShares: a fit of several targets tells the shares of each, and its run, its zip and one of its models predict
// with intervals and explanations.
func TestTaskShares(t *testing.T) {
	t.Chdir(t.TempDir())
	table := "smiles,length,parity,split\n"
	for n := range 48 {
		part := []string{"train", "train", "valid", "test"}[n%4]
		table += fmt.Sprintf("%s,%d.5,%d,%s\n", strings.Repeat("C", n/2+1)+strings.Repeat("O", n%2), n, 10*(n%2)+n%5, part)
	}
	write(t, "two.csv", table)
	must(t, "finetune two.csv two -target length,parity -split split -seeds 1 -epochs 2 -hidden 8 -layers 2"+
		" -features descriptors -forest 5 -target-scale plain")
	card := must(t, "inspect -model two/model-0.safetensors")
	for _, want := range []string{"share of the linear model: length 0.", "share of the forest: length 0.", ", parity 0."} {
		if !strings.Contains(card, want) {
			t.Errorf("the model does not tell the %q:\n%s", want, card)
		}
	}
	must(t, "convert -in two -out two.zip")
	files := map[string][]string{}
	for name, source := range map[string]string{"run": "two", "zip": "two.zip", "file": "two/model-0.safetensors"} {
		must(t, fmt.Sprintf("predict -model %s -in two.csv -out %s.csv -level 0.9 -explain %s.jsonl", source, name, name))
		files[name] = []string{read(t, name+".csv"), read(t, name+".jsonl")}
	}
	if !slices.Equal(files["run"], files["zip"]) || !slices.Equal(files["run"], files["file"]) {
		t.Error("the run, the zip and the file do not predict the same")
	}
}

// TestCommaInTarget: a run of a column with a comma in its name resumes, whether it was named or found.
func TestCommaInTarget(t *testing.T) {
	t.Chdir(t.TempDir())
	table := "smiles,\"IC50, nM\"\n"
	for n := range 40 {
		table += fmt.Sprintf("%s,%d.5\n", strings.Repeat("C", n+1), n)
	}
	write(t, "m.csv", table)
	fit := []string{"finetune", "-in", "m.csv", "-seeds", "1", "-epochs", "1", "-forest", "0", "-features", "encoder"}
	for out, flags := range map[string][]string{"named": {"-target", `"IC50, nM"`}, "found": nil} {
		for _, args := range [][]string{slices.Concat(fit, flags), slices.Concat(fit, flags), {"finetune"}} {
			args = append(args, "-out", out)
			if err := execute(t.Context(), args, io.Discard, io.Discard); err != nil {
				t.Errorf("%q: %v", args, err)
			}
		}
	}
}
