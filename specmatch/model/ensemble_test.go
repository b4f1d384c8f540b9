package model_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor/files"
)

// TestEnsembleFile: an ensemble file gives back the models to the last bit, has the same bytes again, and is refused if
// it is damaged, truncated, changed or of a later version. A model file is an ensemble of one.
func TestEnsembleFile(t *testing.T) {
	be := ref.New()
	var models []*model.Trained
	head := &model.Head{Kind: model.Binary, Outputs: 2}
	for range 3 {
		m, _ := trainedModel(t, be, kinds[2], head)
		m.Card.Provenance.Seed = len(models)
		models = append(models, m)
	}
	_, graphs := trainedModel(t, be, kinds[2], head)
	dir := t.TempDir()
	path := filepath.Join(dir, "all.zip")
	again := filepath.Join(dir, "again.zip")
	for _, name := range []string{path, again} {
		if err := model.SaveEnsemble(name, models...); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if second, _ := os.ReadFile(again); !bytes.Equal(text, second) {
		t.Error("the same models have other bytes")
	}
	opened, err := model.OpenEnsemble(path, be)
	if err != nil || len(opened) != 3 {
		t.Fatalf("%d models, %v", len(opened), err)
	}
	for i, m := range opened {
		want, err := models[i].Predict(t.Context(), graphs)
		if err != nil {
			t.Fatal(err)
		}
		got, err := m.Predict(t.Context(), graphs)
		if err != nil || !slices.Equal(got, want) || m.Card.Provenance.Seed != i {
			t.Errorf("model %d predicts %v, %v; want %v", i, got, err, want)
		}
	}
	single := filepath.Join(dir, "single.safetensors")
	if err := models[0].Save(single); err != nil {
		t.Fatal(err)
	}
	if one, err := model.OpenEnsemble(single, be); err != nil || len(one) != 1 {
		t.Errorf("%d models of a model file, %v", len(one), err)
	}
	file, _ := os.ReadFile(single)
	member, err := model.ReadMember(path, "model-0.safetensors")
	if err != nil || !bytes.Equal(file, member) {
		t.Errorf("the model in the ensemble is not its file: %v", err)
	}
	if _, err := model.ReadMember(path, "model-9.safetensors"); err == nil {
		t.Error("no error for a model that is not there")
	}
	if _, err := model.Open(path, be); err == nil || !strings.Contains(err.Error(), "an ensemble of 3 models") {
		t.Error(err)
	}
	if _, err := model.ReadEnsemble(single); !errors.Is(err, model.ErrNoEnsemble) {
		t.Error(err)
	}

	damaged := filepath.Join(dir, "damaged.zip")
	for i := 0; i < len(text); i += 1 + len(text)/60 {
		changed := bytes.Clone(text)
		changed[i] ^= 0x10
		for _, content := range [][]byte{changed, text[:i]} {
			if err := os.WriteFile(damaged, content, 0o644); err != nil {
				t.Fatal(err)
			}
			got, err := model.ReadEnsemble(damaged)
			same := len(got) == 3 && bytes.Equal(got[0].File, file) // a byte that nobody reads, such as of a time
			if err == nil && !same {
				t.Fatalf("byte %d: no error for a damaged file", i)
			}
		}
	}
}

// TestEnsembleRefused: what an archive must be.
func TestEnsembleRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "e.zip")
	const sum = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" // of nothing
	const entry = `{"name": "m.safetensors", "sha256": "` + sum + `"}`
	for _, c := range []struct{ list, name, content, want string }{
		{`{"specmatch_ensemble": 1, "models": [` + entry + `]}`, "m.safetensors", "", ""},
		{`{"specmatch_ensemble": 2, "models": [` + entry + `]}`, "m.safetensors", "", "of format 2; this version reads format 1"},
		{`{"specmatch_ensemble": 1, "models": [` + entry + `]}`, "n.safetensors", "", `"n.safetensors" in place of`},
		{`{"specmatch_ensemble": 1, "models": [` + entry + `]}`, "m.safetensors", "x", "its SHA-256 differs"},
		{`{"specmatch_ensemble": 1, "models": []}`, "m.safetensors", "", "lists 0 models and has 1"},
		{`{"specmatch_ensemble": 1, "models": [` + entry + `]}`, "m.safetensors", strings.Repeat("0", 1<<20), "1048576 bytes from"},
		{`{`, "m.safetensors", "", "ensemble.json: "},
	} {
		var file bytes.Buffer
		w := zip.NewWriter(&file)
		for _, part := range [][2]string{{"ensemble.json", c.list}, {c.name, c.content}} {
			out, err := w.Create(part[0])
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprint(out, part[1])
		}
		w.Close()
		if err := os.WriteFile(path, file.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := model.ReadEnsemble(path)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s with %s: %v; want %q", c.list, c.name, err, c.want)
		}
	}
	zeros := model.Member{
		Name: "zeros",
		File: make([]byte, 4<<20),
	}
	err := files.Write(path, func(w io.Writer) error {
		return model.WriteEnsemble(w, zeros)
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := model.ReadEnsemble(path); err != nil || !bytes.Equal(got[0].File, zeros.File) {
		t.Errorf("a file of zeros, which packs well: %v", err)
	}
	for _, names := range [][]string{nil, {"a", "a"}, {"../a"}, {"ensemble.json"}, {""}} {
		var members []model.Member
		for _, name := range names {
			members = append(members, model.Member{Name: name})
		}
		if err := model.WriteEnsemble(new(bytes.Buffer), members...); err == nil {
			t.Errorf("no error for the names %q", names)
		}
	}
}
