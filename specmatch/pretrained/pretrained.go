// Package pretrained has an encoder of molecules that is trained without labels on
// molecules of ZINC. The card beside it, README.md, says how, and what it is good for.
package pretrained

import (
	"bytes"
	_ "embed"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Model is the model file.
//
//go:embed zinc.safetensors
var Model []byte

// Open returns the encoder on an engine. Its vectors are the sums, means and largest values of
// all layers, which say more of a molecule than the means of the last one that it was trained
// with; see the card. [model.Trained.WithReadout] chooses others.
func Open(be backend.Backend) (*model.Trained, error) {
	m, err := model.Read(bytes.NewReader(Model), be)
	if err != nil {
		return nil, err
	}
	return m.WithReadout(gnn.ReadoutAll)
}
