package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/specmatch/specmatch/autodiff/nn"
)

// A checkpoint is a file of tensors whose metadata have where the loop stands and
// the learner's values, as JSON.
const (
	standingKey = "standing"
	valuesKey   = "values"
)

// save writes a checkpoint, whole or not at all.
func save(path string, tensors nn.Module, at *standing, values any) error {
	loop, err := json.Marshal(at)
	if err != nil {
		return err
	}
	learner, err := json.Marshal(values)
	if err != nil {
		return err
	}
	return nn.SaveFile(path, tensors, map[string]string{standingKey: string(loop), valuesKey: string(learner)})
}

// load reads a checkpoint. Without a file it leaves everything as it is.
func load(path string, tensors nn.Module, at *standing, values any) error {
	meta, err := nn.ReadMetadata(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = nn.LoadFile(path, tensors)
	}
	if err == nil {
		err = json.Unmarshal([]byte(meta[standingKey]), at)
	}
	if err == nil && values != nil {
		err = json.Unmarshal([]byte(meta[valuesKey]), values)
	}
	if err != nil {
		return fmt.Errorf("the checkpoint cannot be used (remove %s to train from the beginning): %w", path, err)
	}
	return nil
}
