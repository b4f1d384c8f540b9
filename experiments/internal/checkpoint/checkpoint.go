// Package checkpoint keeps where a training stands, so that it can be taken up
// again with the bits that it would have had without an interruption.
//
// The mental model: a checkpoint is one file with the weights and buffers of a
// module, the memory of its optimizer, and a standing, which is whatever the loop
// itself has to know: epochs, batches, losses so far.
package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/autodiff/optim"
)

// key is that of the standing in the file's metadata.
const key = "standing"

// Save writes a checkpoint. standing must survive JSON.
func Save(path string, state optim.Checkpoint, standing any) error {
	text, err := json.Marshal(standing)
	if err != nil {
		return err
	}
	return nn.SaveFile(path, state, map[string]string{key: string(text)})
}

// Load reads a checkpoint into state and *standing. Without a file it leaves both
// as they are.
func Load(path string, state optim.Checkpoint, standing any) error {
	meta, err := nn.ReadMetadata(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(meta[key]), standing); err != nil {
		return fmt.Errorf("%s: where the training stands: %w", path, err)
	}
	return nn.LoadFile(path, state)
}
