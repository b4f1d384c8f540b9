package pretrain

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch/method"
)

// Weights is the file of the run's encoder in a run directory.
func (r *Run) Weights(dir string) string {
	return filepath.Join(dir, "weights", fmt.Sprintf("%s-%s-%d.safetensors", r.Dataset.Name, r.Method, r.Seed))
}

// Save writes the encoder of a learner to its file in a run directory.
func (r *Run) Save(dir string, l *method.Learner, epochs int) error {
	path := r.Weights(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return nn.SaveFile(path, l.Model.Encoder, map[string]string{"dataset": r.Dataset.Name, "method": r.Method, "epochs": strconv.Itoa(epochs)})
}

// Load reads the encoder that [Run.Save] wrote into e.
func (r *Run) Load(dir string, e gnn.Encoder) error { return nn.LoadFile(r.Weights(dir), e) }
