package model

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
)

// Card is what a model file says about its model besides the weights: all that is
// needed to encode a new graph, and where the weights come from.
type Card struct {
	// Encoder is how the encoder is built. [Trained.Save] sets it.
	Encoder gnn.Architecture `json:"encoder"`
	// Features says how the features of nodes, of width Encoder.In, are made. It is
	// nil for the encoders of molecules and of proteins, which define their own.
	Features *graph.Columns `json:"features,omitempty"`
	// Standard is what is done to a molecule before the encoder sees it.
	Standard feature.Standardisation `json:"standard,omitzero"`
	// SelfLoops says that the encoder sees graphs with self-loops, as in GraphCL's
	// unsupervised code, both in training and afterwards:
	// augment.Identity{SelfLoops: true}.
	SelfLoops bool `json:"self_loops,omitempty"`
	// Head is what the model predicts; nil for a bare encoder.
	Head *Head `json:"head,omitempty"`
	// Beside are the numbers of a graph that the head sees beside the embedding; nil for none.
	Beside *Numbers `json:"beside,omitempty"`
	// Calibration is how far predictions are to be trusted; nil if nobody knows.
	Calibration *Calibration `json:"calibration,omitempty"`
	Provenance  Provenance   `json:"provenance"`
}

// Provenance says where weights come from. All of it is optional.
type Provenance struct {
	Method  string            `json:"method,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	Data    []DataSource      `json:"data,omitempty"`
	Seed    int               `json:"seed"`
	Epochs  int               `json:"epochs,omitempty"`
	// Reads is Dataset.Reads of package dataset: the columns or keys that features are from.
	Reads string `json:"reads,omitempty"`
	// Software is the version of this module. [Trained.Save] sets it.
	Software string `json:"software,omitempty"`
}

// DataSource is a data set that a model was trained on.
type DataSource struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256,omitempty"` // of its file, in hexadecimal digits
}

// Sources are the files with these sums, such as Dataset.Sums, or the data set's name if
// it has none.
func Sources(set string, sums map[string]string) (all []DataSource) {
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		all = append(all, DataSource{Name: name, SHA256: sums[name]})
	}
	if all == nil {
		all = []DataSource{{Name: set}}
	}
	return all
}

func (c *Card) check() error {
	if err := c.Encoder.Check(); err != nil {
		return err
	}
	switch own := c.Encoder.In == 0; {
	case c.Standard != (feature.Standardisation{}) && c.Encoder.Kind != gnn.KindChemGIN:
		return fmt.Errorf("a standard form of molecules for encoder %s", c.Encoder.Kind)
	case own && c.Features != nil:
		return fmt.Errorf("features are described, but encoder %s defines its own", c.Encoder.Kind)
	case !own && c.Features == nil:
		return fmt.Errorf("nothing says how the features of encoder %s are made", c.Encoder.Kind)
	case !own:
		if err := c.Features.Check(); err != nil {
			return err
		}
		if w := c.Features.Width(); w != c.Encoder.In {
			return fmt.Errorf("the features described have width %d, those of the encoder %d",
				w, c.Encoder.In)
		}
	}
	if c.Beside != nil {
		if err := c.Beside.check(); err != nil {
			return err
		}
	}
	if c.Head == nil {
		return nil
	}
	if err := c.Head.Check(); err != nil || c.Calibration == nil {
		return err
	}
	return c.Calibration.check(*c.Head, c.Encoder.Width())
}

// headWidth returns how many numbers the head sees, of an embedding of a width.
func (c *Card) headWidth(embedding int) int {
	if c.Beside == nil {
		return embedding
	}
	return embedding + c.Beside.Hidden
}

// cardKey is the card's key in the metadata of a file.
const cardKey = "specmatch_model"

var errNoCard = errors.New("the file has weights, but nothing says of what model: it is of an earlier " +
	"version or another program; build the encoder and use LoadEncoder")

func cardOf(f *nn.File) (c Card, err error) {
	text, ok := f.Metadata[cardKey]
	if !ok {
		return c, errNoCard
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields() // a field of a later version may change embeddings
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: %w", cardKey, err)
	}
	if err := c.check(); err != nil {
		return c, fmt.Errorf("%s: %w", cardKey, err)
	}
	return c, nil
}

// software returns the version of this module in the running program.
func software() string {
	const module = "github.com/specmatch/specmatch"
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return module
	}
	for _, m := range append(info.Deps, &info.Main) {
		if m.Path == module && m.Version != "" {
			return module + " " + m.Version
		}
	}
	return module
}
