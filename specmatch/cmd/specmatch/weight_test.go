package main

import (
	"fmt"
	"strings"
	"testing"
)

// TestWeight: records of weight 0 change nothing, other weights do, and what is no weight is an error with its line.
func TestWeight(t *testing.T) {
	t.Chdir(t.TempDir())
	const head = "name,smiles,y,w,split\n"
	with, without, equal := head, head, head
	for n := range 24 {
		part := []string{"train", "train", "valid", "test"}[n%4]
		row := fmt.Sprintf("n%d,%s,%d.5,%%s,%s\n", n, strings.Repeat("C", n+1), n*n, part)
		with += fmt.Sprintf(row, fmt.Sprint(1+n%3))
		without += fmt.Sprintf(row, fmt.Sprint(1+n%3))
		equal += fmt.Sprintf(row, "3")
		with += fmt.Sprintf("zero,%sO,1000,0,%s\n", strings.Repeat("C", n+1), part)
	}
	write(t, "with.csv", with)
	write(t, "without.csv", without)
	write(t, "equal.csv", equal)
	fit := func(table, out, flags string) string {
		must(t, "finetune "+table+" "+out+" -id name -target y -split split -seeds 1 -epochs 2 -hidden 8 -layers 2 "+flags)
		return read(t, out+"/test-0.csv")
	}
	weighted := fit("with.csv", "with", "-weight w")
	if weighted != fit("without.csv", "without", "-weight w") {
		t.Error("records of weight 0 change predictions")
	}
	plain := fit("without.csv", "plain", "")
	if plain == weighted {
		t.Error("weights change nothing")
	}
	if plain != fit("equal.csv", "equal", "-weight w") {
		t.Error("equal weights change predictions")
	}
	for text, want := range map[string]string{
		"smiles,y,w\nC,1,1\nCC,2,-1\n": `bad.csv:3: column w: "-1" is not a weight`,
		"smiles,y,w\nC,1,0\nCC,2,0\n":  "all weights are 0",
		"smiles,y,v\nC,1,0\nCC,2,0\n":  `no column "w"`,
	} {
		write(t, "bad.csv", text)
		_, _, err := invoke(t.Context(), "finetune bad.csv bad -target y -weight w")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
