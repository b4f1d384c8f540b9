package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const parametersFile = "../../python/src/specmatch_cl/parameters.py"

// notParameters are the flags that the package for Python sets itself, or that concern files only.
var notParameters = strings.Fields("in out out-format format id strict target kind seed seeds first-seed test valid " +
	"shard collect list smiles-column checkpoint mixed tensorboard attributes keep float16 workers folds " +
	"level distance explain model method weight positive curve answers explain-by")

// A parameter of an estimator in Python.
type parameter struct {
	name, annotation, preset string
	doc                      string
}

// parametersOf returns the parameters for the flags of some commands, sorted, and their names by command.
func parametersOf(t *testing.T, commands ...string) (list []parameter, names map[string][]string) {
	t.Helper()
	names = map[string][]string{}
	for _, command := range commands {
		var flags []described
		if err := json.Unmarshal([]byte(must(t, "flags "+command)), &flags); err != nil {
			t.Fatal(err)
		}
		for _, f := range flags {
			if slices.Contains(notParameters, f.Name) {
				continue
			}
			p := pythonParameter(f)
			names[command] = append(names[command], p.name)
			if !slices.ContainsFunc(list, func(other parameter) bool { return other.name == p.name }) {
				list = append(list, p)
			}
		}
	}
	slices.SortFunc(list, func(a, b parameter) int { return strings.Compare(a.name, b.name) })
	return list, names
}

// pythonFlags matches flags in a text, as in "with -network=false".
var pythonFlags = regexp.MustCompile(`-[a-z][a-z-]*(=[a-z]+)?`)

// pythonName returns a flag as it is written in Python.
func pythonName(flag string) string {
	name, value, given := strings.Cut(strings.TrimPrefix(flag, "-"), "=")
	name = strings.ReplaceAll(name, "-", "_")
	if given {
		name += "=" + strings.ToUpper(value[:1]) + value[1:]
	}
	return name
}

// pythonParameter describes a flag in Python.
func pythonParameter(f described) parameter {
	annotation := map[string]string{
		"bool": "bool", "int": "int", "float": "float", "text": "str", "list": "str | Sequence[str]",
	}[f.Type]
	if _, isNumber := f.Default.(float64); isNumber && f.Type == "text" {
		annotation = "float | str"
	}
	doc := strings.ReplaceAll(annotation, " | ", " or ")
	doc = strings.ReplaceAll(doc, "Sequence[str]", "list of str")
	switch value := strings.Trim(defaultText(f.Default), "`"); {
	case f.Type == "bool":
		doc += ", default " + map[string]string{"true": "True", "false": "False"}[value]
	case value != "" && f.Type != "int" && f.Type != "float":
		doc += fmt.Sprintf(", default %q", value)
	case value != "":
		doc += ", default " + value
	}
	for _, s := range f.Second {
		value := map[string]string{"true": "True", "false": "False"}[s.Default]
		doc += "; " + cmp.Or(value, s.Default) + " " + pythonFlags.ReplaceAllStringFunc(s.When, pythonName)
	}
	usage := strings.ReplaceAll(oneLine(f.Usage), `\`, `\\`)
	name := strings.ReplaceAll(f.Name, "-", "_")
	return parameter{
		name:       name,
		annotation: annotation + " | None",
		preset:     "None",
		doc:        doc + "\n" + strings.ToUpper(usage[:1]) + usage[1:] + ".",
	}
}

// The parameters that are no flags.
var (
	modelParameter = parameter{"model", "Source", "None",
		"str or None\nModel file; None and \"pretrained\" are the encoder of molecules in the program, \"pretrained:NAME\" is another one."}
	sharedParameters = []parameter{
		{"handle_invalid", "str", `"error"`, "{\"error\", \"nan\", \"drop\"}\nWhat to do with a record that cannot be read: an error, a " +
			"row of NaN, or no row. Unless it is \"error\", training skips such records."},
		{"n_jobs", "int | None", "None", "int, default all cores\nThreads."},
		{"random_state", "Seed", "None", "int, RandomState or Generator, default 0\nSeed of training."},
		{"verbose", "bool", "False", "bool, default False\nShows a bar where tqdm is installed."},
	}
)

// pythonClass writes a class whose __init__ has these parameters; the first one may be given by position.
func pythonClass(b *strings.Builder, name string, list []parameter) {
	fmt.Fprintf(b, "\n\nclass %s:\n    \"\"\"Parameters, with their documentation.\"\"\"\n\n    def __init__(\n        self,\n", name)
	for i, p := range list {
		fmt.Fprintf(b, "        %s: %s = %s,\n", p.name, p.annotation, p.preset)
		if i == 0 {
			b.WriteString("        *,\n")
		}
	}
	b.WriteString("    ) -> None:\n        \"\"\"None stands for the default of the program, which is named here; " +
		"for molecules\n        some differ, see ``specmatch train -h``.\n\n        Parameters\n        ----------\n")
	for _, p := range list {
		kind, text, _ := strings.Cut(p.doc, "\n")
		fmt.Fprintf(b, "        %s : %s\n", p.name, kind)
		line := "           "
		for _, word := range strings.Fields(text) {
			if len(line)+len(word) > 110 {
				b.WriteString(line + "\n")
				line = "           "
			}
			line += " " + word
		}
		b.WriteString(line + "\n")
	}
	b.WriteString("        \"\"\"\n")
	for _, p := range list {
		fmt.Fprintf(b, "        self.%s = %[1]s\n", p.name)
	}
}

// columnOfParts matches what the usage of -split says of a column, which a list of records does not have.
var columnOfParts = regexp.MustCompile(`, or a column with train, valid or test \(.*?\)`)

// pythonParameters is the text of parametersFile.
func pythonParameters(t *testing.T) string {
	var b strings.Builder
	b.WriteString(`"""Parameters of the estimators: the flags of the program, and a few more.

Generated from the flags: go test ./specmatch/cmd/specmatch -run TestPythonParameters -update
"""
from collections.abc import Sequence

from .tool import Seed, Source

FLAGS: dict[str, tuple[str, ...]] = {
`)
	embedding, names := parametersOf(t, "embed", "train")
	predicting, ofFits := parametersOf(t, "finetune")
	names["finetune"] = ofFits["finetune"]
	_, ofPredictions := parametersOf(t, "predict")
	names["predict"] = ofPredictions["predict"]
	for _, command := range []string{"embed", "train", "finetune", "predict"} {
		fmt.Fprintf(&b, "    %q: (\n", command)
		for _, name := range names[command] {
			fmt.Fprintf(&b, "        %q,\n", name)
		}
		b.WriteString("    ),\n")
	}
	b.WriteString("}")
	method := parameter{"method", "str | None", "None", "str or None\nMethod of specmatch train by which fit trains an encoder on its " +
		"records; None is the model file as it is."}
	pythonClass(&b, "Embedder", slices.Concat([]parameter{modelParameter, method}, sharedParameters, embedding))
	start := modelParameter
	start.doc = "str or None\nModel file whose encoder to start from, or \"pretrained\"; None is random weights."
	ensemble := parameter{"n_estimators", "int", "1", "int, default 1\nModels, with consecutive seeds, whose mean is predicted."}
	shared := slices.Clone(sharedParameters)
	shared[0].doc = strings.NewReplacer(`"drop"}`, `"drop", "prior"}`, "row of NaN, or no row.", "row of NaN, no row, or the mean or the "+
		"frequencies of the classes in training.").Replace(shared[0].doc)
	for i, p := range predicting {
		if p.name == "split" {
			predicting[i].doc = columnOfParts.ReplaceAllString(p.doc, "")
		}
	}
	pythonClass(&b, "Predictor", slices.Concat([]parameter{start, ensemble}, shared, predicting))
	return b.String()
}

// TestPythonParameters: the parameters of the package for Python are the flags of the program.
func TestPythonParameters(t *testing.T) {
	want := pythonParameters(t)
	if *update {
		if err := os.WriteFile(parametersFile, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, parametersFile); got != want {
		t.Errorf("%s is not what the flags are: go test ./specmatch/cmd/specmatch -run TestPythonParameters -update", parametersFile)
	}
}

// TestNoTest: -test none fits without a test set, and validates on a ninth.
func TestNoTest(t *testing.T) {
	t.Chdir(t.TempDir())
	table := "smiles,y\nC,1.5\n"
	write(t, "two.csv", table)
	for n := range 20 {
		table += fmt.Sprintf("%s,%d.5\n", strings.Repeat("C", n+2), n)
	}
	write(t, "m.csv", table)
	out := must(t, "finetune -in m.csv -target y -test none -seeds 1 -epochs 1 -hidden 8 -layers 2 -out run")
	validated := "Predictions of the validation set, because nothing is held out to test on"
	if !strings.HasPrefix(out, validated) || strings.Contains(out, "n/a") || strings.Count(read(t, "run/test-0.csv"), "\n") != 1 {
		t.Errorf("a test set:\n%s%s", out, read(t, "run/test-0.csv"))
	}
	table = "smiles,y\n"
	for n := range 20 {
		table += fmt.Sprintf("%s,%d\n", strings.Repeat("C", n+2), n%2)
	}
	write(t, "b.csv", table)
	out = must(t, "finetune -in b.csv -target y -test none -seeds 1 -epochs 1 -hidden 8 -layers 2 -out binary")
	if !strings.HasPrefix(out, validated) || !strings.Contains(out, "ROC-AUC") {
		t.Errorf("a binary target without a test set:\n%s", out)
	}
	_, _, err := invoke(t.Context(), "finetune -in two.csv -target y -test none -out two")
	if err == nil || !strings.Contains(err.Error(), "want at least one to train on and one to validate") {
		t.Errorf("one record: %v", err)
	}
}
