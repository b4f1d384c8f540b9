// Package pretrained has an encoder of molecules that is trained without labels on
// molecules of ZINC. The card beside it, README.md, says how, and what it is good for.
package pretrained

import (
	"bytes"
	_ "embed"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch"
)

// Model is the model file.
//
//go:embed zinc.safetensors
var Model []byte

// Open returns the encoder on an engine. Its vectors are sums over the atoms, which say
// more of a molecule than the means that it was trained with; see the card.
func Open(be backend.Backend) (*specmatch.Trained, error) {
	m, err := specmatch.Read(bytes.NewReader(Model), be)
	if err != nil {
		return nil, err
	}
	m.Encoder.(*gnn.ChemGIN).Config.Sum, m.Card.Encoder.Sum = true, true
	return m, nil
}
