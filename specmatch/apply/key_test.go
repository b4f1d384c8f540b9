package apply

import (
	"os"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/tensor"
)

// TestKey: other weights or another precision are another job; the same ones, and a format that the name of the file
// shows, are not.
func TestKey(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("m.csv", []byte("smiles\nC\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	seen := map[jobKey]bool{}
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		be := cpu.New(p)
		encoder, err := pretrained.Open(be)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			var keys []jobKey
			for _, format := range []string{"", records.CSV} {
				m, err := Embedder(encoder)
				if err != nil {
					t.Fatal(err)
				}
				job := Job{Path: "m.csv", Model: m, Records: records.Options{Format: format}}
				key, err := job.key(t.Context())
				if err != nil || key.Model == "" || key.Engine == "" {
					t.Errorf("%+v, %v", key, err)
				}
				keys = append(keys, key)
			}
			if keys[0] != keys[1] {
				t.Errorf("one job, two keys: they differ in %v", differencesOf(keys[0], keys[1]))
			}
			seen[keys[0]] = true
			w := encoder.Encoder.Parameters()[3].Value
			be.Axpby(w, 1, w, 1, w)
		}
	}
	if len(seen) != 4 {
		t.Errorf("%d keys of four jobs", len(seen))
	}
}
