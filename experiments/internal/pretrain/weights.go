package pretrain

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/method"
)

// Weights is the model file of the run's encoder in a run directory.
func (r *Run) Weights(dir string) string {
	return filepath.Join(dir, "weights", fmt.Sprintf("%s-%s-%d.safetensors", r.Dataset.Name, r.Method, r.Seed))
}

// Save writes the encoder of a learner to its file in a run directory.
func (r *Run) Save(dir string, l *method.Learner, epochs int) error {
	path := r.Weights(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	m, err := r.Model(l, epochs)
	if err != nil {
		return err
	}
	return m.Save(path)
}

// Model returns the encoder of a learner with all that a model file says of it.
func (r *Run) Model(l *method.Learner, epochs int) (*specmatch.Trained, error) {
	card := specmatch.Card{SelfLoops: l.SelfLoops, Provenance: specmatch.Provenance{
		Method: r.Method, Data: []specmatch.DataSource{{Name: r.Dataset.Name}}, Seed: r.Seed, Epochs: epochs,
		Options: map[string]string{
			"beta": r.Loss.Beta.String(), "p": fmt.Sprint(r.Loss.P), "tau": fmt.Sprint(r.Loss.Tau), "kappa": fmt.Sprint(r.Loss.Kappa),
			"policy": r.Policy(), "ratio": fmt.Sprint(r.Settings.Ratio), "batch": fmt.Sprint(r.Recipe.Batch), "lr": fmt.Sprint(r.Rate()),
		},
	}}
	if r.Encoder.In > 0 {
		columns, err := r.Dataset.Columns()
		if err != nil {
			return nil, err
		}
		card.Features = &columns
	}
	return &specmatch.Trained{Card: card, Encoder: l.Model.Encoder}, nil
}

// Load reads the encoder that [Run.Save] wrote into e.
func (r *Run) Load(dir string, e gnn.Encoder) error { return specmatch.LoadEncoder(r.Weights(dir), e) }
