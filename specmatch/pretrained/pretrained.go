// Package pretrained has an encoder of molecules that is trained without labels on
// molecules of ZINC. The card beside it, README.md, says how, and what it is good for.
package pretrained

import (
	"bytes"
	_ "embed"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch"
)

// Model is the model file.
//
//go:embed zinc.safetensors
var Model []byte

// Open returns the encoder on an engine.
func Open(be backend.Backend) (*specmatch.Trained, error) {
	return specmatch.Read(bytes.NewReader(Model), be)
}
