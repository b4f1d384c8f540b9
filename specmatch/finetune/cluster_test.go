package finetune_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/finetune"
)

// TestClusters: series of molecules that are alike stay whole, in parts that the seed decides, also in folds.
func TestClusters(t *testing.T) {
	var b strings.Builder
	b.WriteString("smiles,y\n")
	series := []string{"CCCCCCCC%sO", "c1ccc2ccccc2c1%sF", "O=C(N)CNC(=O)C%sS", "C1CCNCC1%sCl", "N#CC(C#N)=C%sBr",
		"O=S(=O)(c1ccccc1)N%s", "C1=CC=CO1.[Na+].%sO", "FC(F)(F)C(F)(F)%sC#N", "O=P(O)(O)O%s", "c1cc[nH]c1%sC(=O)O"}
	for i := range 60 {
		fmt.Fprintf(&b, series[i%10]+",%d\n", strings.Repeat("C", 6+i/10), i)
	}
	x, err := read(t, b.String(), finetune.Task{Targets: []string{"y"}, Split: finetune.Cluster})
	if err != nil {
		t.Fatal(err)
	}
	divided := func(parts ...[]int) string {
		var list []string
		for p, part := range parts {
			members := map[int]bool{}
			for _, i := range part {
				members[i%10] = true
			}
			for s := range 10 {
				if members[s] {
					list = append(list, fmt.Sprint(s, p))
				}
			}
		}
		slices.Sort(list)
		return strings.Join(list, ",")
	}
	seen := map[string]bool{}
	for seed := range uint64(6) {
		s, err := x.Divide(seed)
		if err != nil {
			t.Fatal(err)
		}
		again, _ := x.Divide(seed)
		text := divided(s.Train, s.Valid, s.Test)
		if strings.Count(text, ",") > 11 || text != divided(again.Train, again.Valid, again.Test) {
			t.Errorf("seed %d: the series are in the parts %s", seed, text)
		}
		seen[text] = true
	}
	if len(seen) < 2 {
		t.Errorf("all seeds divide alike: %v", seen)
	}
	for f := range 3 {
		s, err := x.Fold(0, f, 3)
		if err != nil || len(s.Test) < 5 {
			t.Errorf("fold %d: %v, %v", f, s, err)
		}
	}
}
