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

// Card describes a model in its file, next to the weights: all that is needed to encode a new
// graph, and where the weights come from.
type Card struct {
	// Encoder is the architecture of the encoder. [Trained.Save] sets it.
	Encoder gnn.Architecture `json:"encoder"`
	// Features says how the node features, of width Encoder.In, are made. It is nil for the encoders of
	// molecules and of proteins, which define their own.
	Features *graph.Columns `json:"features,omitempty"`
	// Standard says how a molecule is standardised before the encoder sees it.
	Standard feature.Standardisation `json:"standard,omitzero"`
	// SelfLoops says that the encoder sees graphs with self-loops, in training and afterwards, as in
	// GraphCL's unsupervised code: augment.Identity{SelfLoops: true}.
	SelfLoops bool `json:"self_loops,omitempty"`
	// Head describes the predictions; nil for a bare encoder.
	Head *Head `json:"head,omitempty"`
	// Beside describes the numbers of a graph that the head sees next to the embedding; nil for none.
	Beside *Numbers `json:"beside,omitempty"`
	// Forest takes part in the predictions; nil for none.
	Forest *Forest `json:"forest,omitempty"`
	// Shares are those of the linear model and of the forest for each of several tasks; nil if all tasks have the
	// same.
	Shares *TaskShares `json:"shares,omitempty"`
	// Calibration says how far predictions can be trusted; nil if that is unknown.
	Calibration *Calibration `json:"calibration,omitempty"`
	// Domain holds the training molecules; nil for graphs, or if they are not to be in the file.
	Domain     *Domain    `json:"domain,omitempty"`
	Provenance Provenance `json:"provenance"`
}

// Domain holds the molecules that a model of molecules was trained on; see package domain.
type Domain struct {
	// Table is a CSV, packed by gzip: a header, then the SMILES and the targets of each molecule.
	Table []byte `json:"table"`
	// Least is the similarity to the nearest training molecule that all but 2.5 % of the validation
	// molecules have.
	Least float64 `json:"least"`
}

// Provenance says where the weights come from. Every field is optional.
type Provenance struct {
	Method  string            `json:"method,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	Data    []DataSource      `json:"data,omitempty"`
	Seed    int               `json:"seed"`
	Epochs  int               `json:"epochs,omitempty"`
	// Reads is Dataset.Reads of package dataset: the columns or keys that the features come from.
	Reads string `json:"reads,omitempty"`
	// Software is the version of this module. [Trained.Save] sets it.
	Software string `json:"software,omitempty"`
}

// DataSource is a data set that a model was trained on.
type DataSource struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256,omitempty"` // of its file, in hexadecimal digits
}

// Sources returns the files with these sums, such as Dataset.Sums, or the data set's name without a
// sum if there are none.
func Sources(set string, sums map[string]string) (sources []DataSource) {
	for _, name := range slices.Sorted(maps.Keys(sums)) {
		sources = append(sources, DataSource{Name: name, SHA256: sums[name]})
	}
	if sources == nil {
		sources = []DataSource{{Name: set}}
	}
	return sources
}

// check returns an error unless the parts of the card fit together.
func (c *Card) check() error {
	if err := c.Encoder.Check(); err != nil {
		return err
	}
	switch ownFeatures := c.Encoder.In == 0; {
	case c.Standard != (feature.Standardisation{}) && c.Encoder.Kind != gnn.KindChemGIN:
		return fmt.Errorf("a standard form of molecules for encoder %s", c.Encoder.Kind)
	case ownFeatures && c.Features != nil:
		return fmt.Errorf("node features are described, but encoder %s defines its own", c.Encoder.Kind)
	case !ownFeatures && c.Features == nil:
		return fmt.Errorf("the card does not say how the node features of encoder %s are made",
			c.Encoder.Kind)
	case !ownFeatures:
		if err := c.Features.Check(); err != nil {
			return err
		}
		if w := c.Features.Width(); w != c.Encoder.In {
			return fmt.Errorf("the node features described have width %d, those of the encoder %d",
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
	if err := c.Head.Check(); err != nil {
		return err
	}
	if c.Forest != nil {
		if err := c.Forest.check(*c.Head, c.Beside); err != nil {
			return err
		}
	}
	if c.Shares != nil {
		if err := c.Shares.check(c); err != nil {
			return err
		}
	}
	if c.Calibration == nil {
		return nil
	}
	return c.Calibration.check(*c.Head, c.Encoder.Width())
}

// headWidth returns the width of the head's input, for embeddings of a width.
func (c *Card) headWidth(embedding int) int {
	if c.Beside == nil {
		return embedding
	}
	return embedding + c.Beside.Hidden
}

// cardKey is the key of the card in the metadata of a file.
const cardKey = "specmatch_model"

// errNoCard is the error that a file has weights without a card.
var errNoCard = errors.New("the file has weights, but nothing says of what model: it is of an earlier " +
	"version or another program; build the encoder and use LoadEncoder")

// cardOf reads the card of a file.
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

// software returns the name and the version of this module in the running program.
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
