package main

import (
	"strings"
	"testing"
)

// TestCollectOther: shards are joined by the command that wrote them, and by no other; a shard leaves the
// output alone.
func TestCollectOther(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", "smiles\nC\nCC\nCCO\n")
	write(t, "other.csv", "smiles\nC\nCC\nCCN\n")
	write(t, "v.csv", "the output of another job\n")
	embed := "embed -out v.csv -readout last:mean -in m.csv "
	for _, shard := range []string{"0/2", "1/2"} {
		_, stderr, err := invoke(t.Context(), embed+"-shard "+shard)
		if err != nil || strings.Contains(stderr, "replaces") {
			t.Errorf("shard %s: %v, %s", shard, err, stderr)
		}
	}
	for line, want := range map[string]string{
		"embed -out v.csv -readout last:mean -in other.csv -collect":     "they differ in the file of records (-in)",
		"embed -out v.csv -readout last:max -in m.csv -collect":          "they differ in the model or what it computes (such as -model or -readout)",
		"embed -out v.csv -readout last:mean -in m.csv -strict -collect": "they differ in how it is read or written",
		"embed -out v.csv -readout last:mean -in none.csv -collect":      "none.csv: there is no such file",
	} {
		if _, _, err := invoke(t.Context(), line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %s", line, err, want)
		}
	}
	must(t, embed+"-collect -workers 3 -format csv -memory 900000000") // nothing is computed
	must(t, "embed -out whole.csv -readout last:mean -in m.csv")
	if read(t, "v.csv") != read(t, "whole.csv") {
		t.Error("the shards are not what one process writes")
	}
}
