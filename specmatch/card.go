package specmatch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/graph"
)

// Card is what a model file says of its model beside the weights: all that is
// needed to encode a new graph, and where the weights come from.
type Card struct {
	// Encoder is how the encoder is built. [Trained.Save] sets it.
	Encoder gnn.Architecture `json:"encoder"`
	// Features is how the features of nodes are made, of width Encoder.In. It is nil
	// for the encoders of molecules and of proteins, which define their own.
	Features *graph.Columns `json:"features,omitempty"`
	// SelfLoops says that the encoder sees graphs as GraphCL's unsupervised code
	// feeds them to it, in training and afterwards: augment.Identity{SelfLoops: true}.
	SelfLoops bool `json:"self_loops,omitempty"`
	// Head is what the model predicts; nil for a bare encoder.
	Head       *Head      `json:"head,omitempty"`
	Provenance Provenance `json:"provenance"`
}

// HeadKind is what a head's outputs stand for.
type HeadKind string

// The kinds of heads.
const (
	Classes    HeadKind = "classes"    // one output a class, of which the largest wins
	Binary     HeadKind = "binary"     // one output a task, the logit of yes
	Regression HeadKind = "regression" // one output a task, its value in units of Std above Mean
)

// Head describes the linear layer on an encoder that predicts.
type Head struct {
	Kind    HeadKind `json:"kind"`
	Outputs int      `json:"outputs"` // classes or tasks
	// Tasks are the names of the tasks, and ClassValues the labels of the classes in
	// the data set; either may be empty.
	Tasks       []string `json:"tasks,omitempty"`
	ClassValues []int    `json:"class_values,omitempty"`
	// Mean and Std, one for each task of a regression, turn outputs into the unit of
	// the targets, y = Mean + Std·output; without them outputs are in it.
	Mean []float64 `json:"mean,omitempty"`
	Std  []float64 `json:"std,omitempty"`
}

// Provenance says where weights come from. All of it is optional.
type Provenance struct {
	Method  string            `json:"method,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	Data    []DataSource      `json:"data,omitempty"`
	Seed    int               `json:"seed"`
	Epochs  int               `json:"epochs,omitempty"`
	// Software is the version of this module. [Trained.Save] sets it.
	Software string `json:"software,omitempty"`
}

// DataSource is a data set that a model was trained on.
type DataSource struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256,omitempty"` // of its file, in hexadecimal digits
}

// check returns an error unless a model can be as the card says.
func (c *Card) check() error {
	if err := c.Encoder.Check(); err != nil {
		return err
	}
	switch own := c.Encoder.In == 0; {
	case own && c.Features != nil:
		return fmt.Errorf("features are described, but encoder %s defines its own", c.Encoder.Kind)
	case !own && c.Features == nil:
		return fmt.Errorf("nothing says how the features of encoder %s are made", c.Encoder.Kind)
	case !own:
		if err := c.Features.Check(); err != nil {
			return err
		}
		if w := c.Features.Width(); w != c.Encoder.In {
			return fmt.Errorf("the features described have width %d, those of the encoder %d", w, c.Encoder.In)
		}
	}
	if c.Head == nil {
		return nil
	}
	return c.Head.check()
}

// maxOutputs bounds the outputs of a head.
const maxOutputs = 1 << 20

func (h *Head) check() error {
	n := h.Outputs
	fits := func(have int, kind bool) bool { return have == 0 || kind && have == n }
	switch {
	case h.Kind != Classes && h.Kind != Binary && h.Kind != Regression:
		return fmt.Errorf("a head of kind %q (have: %s, %s, %s)", h.Kind, Classes, Binary, Regression)
	case n < 1 || n > maxOutputs || !fits(len(h.Tasks), h.Kind != Classes) || !fits(len(h.ClassValues), h.Kind == Classes) ||
		!fits(len(h.Mean), h.Kind == Regression) || len(h.Mean) != len(h.Std):
		return fmt.Errorf("a head of kind %s with %d outputs, the names of %d tasks, the labels of %d classes, %d means and %d standard deviations",
			h.Kind, n, len(h.Tasks), len(h.ClassValues), len(h.Mean), len(h.Std))
	}
	for k, s := range h.Std {
		if !finite(h.Mean[k]) || !finite(s) || s <= 0 {
			return fmt.Errorf("a head for targets of mean %v and standard deviation %v", h.Mean[k], s)
		}
	}
	return nil
}

// cardKey is the card's key in the metadata of a file.
const cardKey = "specmatch_model"

var errNoCard = errors.New("the file has weights, but nothing says of what model: it is of an earlier version or another program; build the encoder and use LoadEncoder")

// cardOf returns the card of a file.
func cardOf(f *nn.File) (c Card, err error) {
	text, ok := f.Metadata[cardKey]
	if !ok {
		return c, errNoCard
	}
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields() // what a later version says of its models changes embeddings
	if err := d.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: %w", cardKey, err)
	}
	if err := c.check(); err != nil {
		return c, fmt.Errorf("%s: %w", cardKey, err)
	}
	return c, nil
}

// ReadCard returns the card of a model file.
func ReadCard(path string) (Card, error) {
	f, err := nn.ReadFile(path)
	if err != nil {
		return Card{}, err
	}
	c, err := cardOf(f)
	if err != nil {
		return Card{}, fmt.Errorf("specmatch: %s: %w", path, err)
	}
	return c, nil
}

// software returns the version of this module in the program that runs.
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
