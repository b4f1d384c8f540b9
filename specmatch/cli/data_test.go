package cli_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
)

// letters writes the set LETTER, whose nodes have attributes only, into a folder.
func letters(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "LETTER"), 0o755); err != nil {
		t.Fatal(err)
	}
	for part, text := range map[string]string{"A": "1, 2\n2, 1\n", "graph_indicator": "1\n1\n2\n", "graph_labels": "0\n1\n", "node_attributes": "1.5\n2\n3\n"} {
		if err := os.WriteFile(filepath.Join(dir, "LETTER", "LETTER_"+part+".txt"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func open(t *testing.T, ctx context.Context, features dataset.NodeFeatures, args ...string) (*cli.FlagSet, string, error) {
	t.Helper()
	data := cli.Data{NodeFeatures: features}
	f := cli.NewFlagSet("x", "X.", "")
	f.Add(&data)
	if err := f.Parse(args, io.Discard); err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	_, err := data.Open(ctx, &stderr)
	return f, stderr.String(), err
}

// TestNodeFeatures: a set in TUDataset's format and the same graphs as JSON Lines have the same
// features, and it is said which.
func TestNodeFeatures(t *testing.T) {
	dir := letters(t)
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text+text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("l.jsonl", `{"edges":[[0,1]],"attributes":[[1.5],[2]],"class":0}`+"\n"+`{"edges":[],"attributes":[[3]],"class":1}`+"\n")
	write("both.jsonl", `{"edges":[[0,1]],"attributes":[[0,1],[1,0]],"labels":[4,5],"class":0}`+"\n"+`{"edges":[],"attributes":[[1,0]],"labels":[5],"class":1}`+"\n")
	for _, c := range []struct {
		set      string
		features dataset.NodeFeatures
		want     string
	}{
		{"LETTER", dataset.FeaturesAuto, "1 attributes"}, {"l.jsonl", dataset.FeaturesAuto, "1 attributes"},
		{"LETTER", dataset.FeaturesLabels, "none, all are alike; left out: attributes of nodes"}, {"l.jsonl", dataset.FeaturesLabels, "none, all are alike; left out: attributes of nodes"},
		{"both.jsonl", dataset.FeaturesAuto, "labels of 2 values; left out: attributes of nodes"}, {"both.jsonl", dataset.FeaturesBoth, "2 attributes, labels of 2 values"},
		{"both.jsonl", dataset.FeaturesOneHot, "labels of 2 values"}, {"l.jsonl", dataset.FeaturesOneHot, "graph 0: node 0: the attributes [1.5] are not one-hot"},
		{"both.jsonl", dataset.FeaturesDegrees, "labels of 2 values; left out: attributes of nodes"}, {"l.jsonl", dataset.FeaturesDegrees, "labels of 2 values; left out: attributes of nodes"},
	} {
		data, stderr := cli.Data{NodeFeatures: dataset.FeaturesAuto}, new(bytes.Buffer)
		f := cli.NewFlagSet("x", "X.", "")
		f.Add(&data)
		if err := f.Parse([]string{"-dataset", c.set, "-data", dir, "-node-features", string(c.features)}, io.Discard); err != nil {
			t.Fatal(err)
		}
		sets, err := data.Open(t.Context(), stderr)
		if err != nil {
			fmt.Fprintln(stderr, err)
		} else if _, err := sets[0].Columns(); err != nil {
			t.Error(err)
		}
		if !strings.HasSuffix(stderr.String(), c.want+"\n") {
			t.Errorf("%v: %s", c, stderr)
		}
	}
}

// What is read is noted among the inputs, and what is left out is said.
func TestDataOpen(t *testing.T) {
	dir := letters(t)
	f, said, err := open(t, t.Context(), "", "-dataset", "LETTER", "-data", dir)
	if err != nil || said != "LETTER: 2 graphs, 2 classes; features of nodes: 1 attributes\n" {
		t.Errorf("%v; said %q", err, said)
	}
	if want := fmt.Sprintf("%x", sha256.Sum256([]byte("0\n1\n"))); f.Inputs()["LETTER_graph_labels.txt"] != want || len(f.Inputs()) != 4 {
		t.Errorf("inputs %v", f.Inputs())
	}
	if f, said, err = open(t, t.Context(), dataset.FeaturesBoth, "-dataset", "LETTER", "-data", dir); err != nil || !strings.Contains(said, "1 attributes") || len(f.Inputs()) != 4 {
		t.Errorf("with attributes: %v; said %q; inputs %v", err, said, f.Inputs())
	}
	once := filepath.Join(dir, "LETTER", "LETTER_A.txt")
	if err := os.WriteFile(once, []byte("1, 2\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, said, err = open(t, t.Context(), dataset.FeaturesBoth, "-dataset", "LETTER", "-data", dir); err != nil || !strings.Contains(said, "LETTER: 1 of 2 graphs are directed") {
		t.Errorf("an edge listed once: %v; said %q", err, said)
	}
	if f, _, err = open(t, t.Context(), ""); err != nil || len(f.Inputs()) > 0 {
		t.Errorf("the embedded set: %v, %v", f.Inputs(), err)
	}
	// A folder without a name is a mistake, not a wish for the embedded set.
	var usage *cli.UsageError
	if _, _, err := open(t, t.Context(), "", "-data", dir); !errors.As(err, &usage) || !strings.Contains(err.Error(), "it holds LETTER") {
		t.Errorf("-data without -dataset: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := open(t, ctx, "", "-dataset", "LETTER", "-data", dir); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
