package pretrain

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/method"
)

// Weights is the model file of the run's encoder in a run directory.
func (r *Run) Weights(dir string) string {
	if r.File != "" {
		return filepath.Join(dir, r.File)
	}
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
		Method: r.Method, Data: Sources(r.Dataset), Seed: r.Seed, Epochs: epochs, Options: r.switches(),
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

// Sources are the files of a data set with their sums, or its name if it has none.
func Sources(ds *dataset.Dataset) []specmatch.DataSource {
	var all []specmatch.DataSource
	for _, name := range slices.Sorted(maps.Keys(ds.Sums)) {
		all = append(all, specmatch.DataSource{Name: name, SHA256: ds.Sums[name]})
	}
	if all == nil {
		all = []specmatch.DataSource{{Name: ds.Name}}
	}
	return all
}

// switches are the flags that the run was trained with, but for those that its method does
// not read, and those of other methods, which begin with their names.
func (r *Run) switches() map[string]string {
	f, s, loss := cli.NewFlagSet("", ""), Settings{}, r.Loss
	loss.Methods, loss.Choices = nil, nil // no -method
	f.Add(&s, &loss)
	s.RegisterMethods(f, r.Regime, nil)
	s = r.Settings
	all := map[string]string{"batch": fmt.Sprint(r.Recipe.Batch), "lr": fmt.Sprint(r.Rate())}
	f.VisitAll(func(fl *flag.Flag) {
		name, _, _ := strings.Cut(fl.Name, "-")
		if _, err := method.Get(name); (err != nil || strings.HasPrefix(r.Method, name)) && r.Settings.reads(r.Method, fl.Name, r.Regime) {
			all[fl.Name] = fl.Value.String()
		}
	})
	if _, ok := all["policy"]; ok {
		all["policy"] = r.Policy()
	}
	return all
}

// Load reads the encoder that [Run.Save] wrote into e.
func (r *Run) Load(dir string, e gnn.Encoder) error { return specmatch.LoadEncoder(r.Weights(dir), e) }
