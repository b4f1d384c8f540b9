package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/specmatch/specmatch/autodiff/nn"
)

// A checkpoint is a safetensors file of the learner's tensors. Its metadata hold the loop's standing and
// the learner's values as JSON.
const (
	standingKey = "standing"
	valuesKey   = "values"
)

// save writes a checkpoint atomically.
func save(path string, tensors nn.Module, done *standing, values any) error {
	loop, err := json.Marshal(done)
	if err != nil {
		return err
	}
	learner, err := json.Marshal(values)
	if err != nil {
		return err
	}
	return nn.SaveFile(path, tensors, map[string]string{
		standingKey: string(loop),
		valuesKey:   string(learner),
	})
}

// load reads a checkpoint. It changes nothing if there is no file.
func load(path string, tensors nn.Module, done *standing, values any) error {
	meta, err := nn.ReadMetadata(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = nn.LoadFile(path, tensors)
	}
	if err == nil {
		err = json.Unmarshal([]byte(meta[standingKey]), done)
	}
	if err == nil && values != nil {
		err = json.Unmarshal([]byte(meta[valuesKey]), values)
	}
	if err != nil {
		return fmt.Errorf("the checkpoint cannot be used (remove %s to train from the beginning): %w",
			path, err)
	}
	return nil
}
