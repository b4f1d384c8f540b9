// Package pretrained has the encoders of molecules that are part of the program. The card next to it, README.md, says
// how they were trained, and what they are good for.
package pretrained

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"strings"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Encoder is an encoder of the program.
type Encoder struct {
	Name string
	File []byte // the model file
}

//go:embed minimol.safetensors
var minimol []byte

//go:embed zinc.safetensors
var zinc []byte

// Encoders lists the encoders of the program. The first is the built-in one, which is used by default. The others stay,
// because models that learned from their vectors name them by their sums.
var Encoders = []Encoder{
	{Name: "minimol", File: minimol}, // taught by the numbers of another model
	{Name: "zinc", File: zinc},       // taught by descriptors
}

// Builtin returns the first of [Encoders].
func Builtin() Encoder { return Encoders[0] }

// Find returns the encoder with this name or [Encoder.Sum]. "" stands for the built-in one.
func Find(name string) (Encoder, error) {
	if name == "" {
		return Builtin(), nil
	}
	var have []string
	for _, e := range Encoders {
		if name == e.Name || name == e.Sum() {
			return e, nil
		}
		have = append(have, fmt.Sprintf("%s (%s)", e.Name, e.Sum()))
	}
	return Encoder{}, fmt.Errorf("this program has no encoder %q; it has %s", name, strings.Join(have, ", "))
}

// Sum returns the first eight hexadecimal digits of the SHA-256 of the file. They name the encoder in the files of
// models that learned from its vectors.
func (e Encoder) Sum() string { return fmt.Sprintf("%x", sha256.Sum256(e.File))[:8] }

// Open returns the encoder on an engine. Its vectors are the sums, means and largest values of all layers, which say
// more of a molecule than the means of the last one; see the card. [model.Trained.WithReadout] chooses others.
func (e Encoder) Open(be backend.Backend) (*model.Trained, error) {
	m, err := model.Read(bytes.NewReader(e.File), be)
	if err != nil {
		return nil, err
	}
	return m.WithReadout(gnn.ReadoutAll)
}

// Open returns the built-in encoder on an engine, as [Encoder.Open] does.
func Open(be backend.Backend) (*model.Trained, error) { return Builtin().Open(be) }
