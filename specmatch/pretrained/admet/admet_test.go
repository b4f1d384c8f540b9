package admet_test

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/specmatch/pretrained/admet"
	"github.com/specmatch/specmatch/tensor"
)

// TestEndpoints: every endpoint is a model that predicts its column from features of this program, the card and
// results.json have its scores, and the archive is small.
func TestEndpoints(t *testing.T) {
	info, err := os.Stat("admet.zip")
	if err != nil || info.Size() > 6<<20 {
		t.Errorf("%d bytes, %v; want at most 6 MB", info.Size(), err)
	}
	text, err := os.ReadFile("results.json")
	if err != nil {
		t.Fatal(err)
	}
	var results []admet.Endpoint
	if err := json.Unmarshal(text, &results); err != nil || !slices.Equal(results, admet.Endpoints()) {
		t.Errorf("results.json is of other models than admet.zip: %v", err)
	}
	card, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	var parts []apply.Model
	var cards []model.Card
	for _, e := range admet.Endpoints() {
		file, err := admet.Model(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		be := cpu.New(tensor.Float32)
		defer be.Close()
		m, err := model.Read(bytes.NewReader(file), be)
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		if !slices.Equal(m.Card.Head.Tasks, []string{e.Name}) || m.Card.Calibration == nil || m.Card.Domain == nil {
			t.Errorf("%s predicts %q", e.Name, m.Card.Head.Tasks)
		}
		if learned := "pretrained:" + pretrained.Builtin().Sum(); !slices.Contains(m.Card.Beside.Features, learned) {
			t.Errorf("%s reads %q, not %s; fit the predictors again, as README.md says", e.Name, m.Card.Beside.Features, learned)
		}
		if !strings.Contains(string(card), "| `"+e.Name+"` | "+e.Title+" |") || e.Records < 500 || e.Coverage < 80 {
			t.Errorf("%+v, or the card does not have it", e)
		}
		part, err := apply.Sure(0.9, true, m)
		if err != nil {
			t.Fatalf("%s: %v", e.Name, err)
		}
		parts = append(parts, part)
		cards = append(cards, m.Card)
	}
	joined, err := apply.Joined(parts, cards)
	if err != nil || len(joined.Columns) < 4*len(parts) {
		t.Errorf("%q, %v", joined.Columns, err)
	}
	cards[1].Beside = nil
	if _, err := apply.Joined(parts, cards); err == nil {
		t.Error("no error for models that read other features")
	}
	if _, err := admet.Model("hreg"); err == nil || !strings.HasSuffix(err.Error(), `did you mean "herg"?`) {
		t.Error(err)
	}
}

// TestShared: models that share what they compute of the same graphs, and that have been trimmed, give the bits that each
// gives alone.
func TestShared(t *testing.T) {
	var want []float64
	var width int
	shared := new(model.Shared)
	var parts []apply.Model
	var cards []model.Card
	rows := func(m apply.Model) (values []float64) {
		molecules := strings.NewReader("CCO\nc1ccncc1C(=O)O\nCC(C)Cc1ccc(cc1)C(C)C(=O)O\n")
		job := apply.Job{Path: "m.smi", Records: records.Options{Input: molecules}, Model: m}
		err := job.Stream(t.Context(), func(b apply.Batch) error {
			values = append(values, b.Values...)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return values
	}
	be := cpu.New(tensor.Float32)
	defer be.Close()
	for _, name := range []string{"caco2", "herg"} {
		file, err := admet.Model(name)
		if err != nil {
			t.Fatal(err)
		}
		m, err := model.Read(bytes.NewReader(file), be)
		if err != nil {
			t.Fatal(err)
		}
		alone, err := apply.Sure(0.9, true, m)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, rows(alone)...)
		width += len(alone.Columns)
		m.Trim()
		part, err := apply.Sure(0.9, true, m.Sharing(shared))
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, part)
		cards = append(cards, m.Card)
	}
	joined, err := apply.Joined(parts, cards)
	if err != nil {
		t.Fatal(err)
	}
	got := rows(joined)
	split := width / 2
	for i, first := range []int{0, split} {
		for k := range 3 {
			alone := want[(3*i+k)*split : (3*i+k+1)*split]
			if row := got[k*width+first : k*width+first+split]; !slices.Equal(row, alone) {
				t.Errorf("molecule %d, model %d: %v, alone %v", k, i, row, alone)
			}
		}
	}
}
