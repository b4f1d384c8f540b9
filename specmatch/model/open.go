package model

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/tensor"
	"github.com/specmatch/specmatch/tensor/files"
)

// Trained is a trained encoder with all that is needed to embed new graphs, or to predict for them:
// the contents of a model file.
type Trained struct {
	Card    Card
	Encoder gnn.Encoder
	// Head is the layer [width×outputs] that Card.Head describes, named "predictor". Its width is that of an
	// embedding plus that of Beside. It is nil for a bare encoder.
	Head   *nn.Linear
	Beside *Beside // nil unless Card.Beside is there
	// Memory, if set, is a cache of the encoder with its present weights, which speeds up embedding and
	// predicting.
	Memory *gnn.Environments
	// Shared, if set, computes once what this and other models need of the same graphs.
	Shared *Shared
	// Turn, if set, is held while the model uses its engine, so that several goroutines can embed and
	// predict at a time. Memory is not used then.
	Turn sync.Locker

	engine backend.Backend // that embeds and predicts; nil is that of the weights
}

// Open reads a model file onto an engine. On an engine of the same kind, its embeddings are those
// of the saved model, to the last bit.
//
// # The file
//
// A model file is a safetensors file. Its tensors are a state_dict: PyTorch's names
// and shapes (see [nn.Save]), without a prefix, so that
//
//	module.load_state_dict(safetensors.torch.load_file(path), strict=True)
//
// fills a module whose layers have the names of the literature's code and the
// tensors of PyTorch Geometric's layers:
//
//	gin      convs.0.nn.0, convs.0.nn.2, convs.0.eps (GINConv), bns.0; with labels or weights of edges,
//	         convs.0.edge_embedding
//	resgcn   bn_feat, conv_feat (Linear), bns_conv.0, convs.0 (GCNConv), bns_fc.0, lins.0, bn_hidden
//	chemgin  x_embedding1, x_embedding2, gnns.0.mlp.0, gnns.0.mlp.2, gnns.0.edge_embedding1, batch_norms.0;
//	         of the categories rich, x_embedding1 to 9 and edge_embedding1 to 4
//	biogin   gnns.0.input_node_embeddings, gnns.0.edge_encoder, gnns.0.mlp.0, gnns.0.mlp.1, gnns.0.mlp.3
//
// If the card says self_loops, the encoder wants every graph with further edges, as GraphCL's code adds
// them: from node i to itself, for each node i with a smaller number than the last node that has an edge.
// [augment.Identity] adds them, and so do Embed and Predict. In resgcn, GCNConv is normalised by the
// edges that leave a node, see [gnn.GCNConv]; for graphs that are not directed, it is PyTorch Geometric's.
//
// A head is one more layer, "predictor". If it sees numbers next to the embedding ([Beside]), there
// are also beside.hidden, beside.mean and beside.scale, and beside.linear if a linear model of them
// takes part. A projection head is not part of a model file; checkpoints of training have it, as
// proj_head.* next to encoder.*, under the names of the program.
//
// The metadata has the [Card] as JSON under specmatch_model, the version of the format, and a
// checksum of the file. A program that writes other weights into the file must keep
// specmatch_model, and drop specmatch_format and specmatch_checksum.
//
// # Errors
//
// It is an error, which names what differs, if a file is damaged, truncated, of a later version, or
// without exactly the tensors of its architecture. A weight that is NaN or infinite is an error
// that names its tensor. Open uses memory in proportion to the size of the file, whatever the file
// says about the model.
func Open(path string, be backend.Backend) (m *Trained, err error) {
	defer backend.Recover(&err)
	f, err := nn.ReadFile(path)
	if err != nil {
		if names, damaged := EnsembleNames(path); damaged == nil {
			err = fmt.Errorf("specmatch: open %s: the file is an ensemble of %d models, for OpenEnsemble",
				path, len(names))
		}
		return nil, err
	}
	m, err = open(f, be)
	if err != nil {
		return nil, fmt.Errorf("specmatch: open %s: %w", path, err)
	}
	return m, nil
}

// Read is [Open] of a model file's contents.
func Read(r io.Reader, be backend.Backend) (m *Trained, err error) {
	defer backend.Recover(&err)
	f, err := nn.Read(r)
	if err != nil {
		return nil, err
	}
	m, err = open(f, be)
	if err != nil {
		return nil, fmt.Errorf("specmatch: read: %w", err)
	}
	return m, nil
}

func open(f *nn.File, be backend.Backend) (*Trained, error) {
	c, err := cardOf(f)
	if err != nil {
		return nil, err
	}
	// This bounds the memory by the size of the file. It is generous, because a file
	// that merely lacks a tensor should get the error below, which names the tensor.
	tensors, values := c.Encoder.Size()
	if c.Head != nil {
		values += c.Head.Outputs * (c.headWidth(c.Encoder.Width()) + 1)
		if n := c.Beside; n != nil {
			values += n.Size * n.Hidden
			if n.Linear {
				values += n.Size * c.Head.Outputs
			}
		}
	}
	if n, v := len(f.Names()), f.Values(); tensors > 4*n+64 || values/4 > v+1<<12 {
		return nil, fmt.Errorf("the file has %d values in %d tensors; its encoder, %+v, has %d in %d",
			v, n, c.Encoder, values, tensors)
	}
	rng := rand.New(rand.NewPCG(0, 0)) // for weights that are overwritten
	m := &Trained{Card: c}
	m.Encoder, err = c.Encoder.New(be, rng)
	if err != nil {
		return nil, err
	}
	if c.Head != nil {
		m.addHead(be, 0, rng)
	}
	return m, newState(m).load(f)
}

const predictor = "predictor"

// state is the part of a model that a file holds as tensors.
type state struct {
	*Trained
	eps []*nn.Buffer
}

// newState returns the state of a model, with the ε of each layer as a buffer, as PyTorch
// Geometric's GINConv has it.
func newState(m *Trained) *state {
	s := &state{Trained: m}
	for l, c := range convs(m.Encoder) {
		eps := nn.NewBuffer(m.backend(), fmt.Sprintf("convs.%d.eps", l), 1, 1, c.Eps)
		eps.Layout = autodiff.Vector
		s.eps = append(s.eps, eps)
	}
	return s
}

// convs returns the layers with an ε.
func convs(e gnn.Encoder) []*gnn.GINConv {
	if g, ok := e.(*gnn.GIN); ok {
		return g.Convs
	}
	return nil
}

// free frees the buffers of the state.
func (s *state) free() {
	for _, b := range s.eps {
		s.backend().Free(b.Value)
	}
}

// Buffers returns those of the model and the ε of its layers.
func (s *state) Buffers() []*nn.Buffer {
	return slices.Concat(s.Trained.Buffers(), s.eps)
}

// load fills the encoder and the head from a file, and frees the state. A value that is not finite
// is an error that names its tensor.
func (s *state) load(f *nn.File) error {
	defer s.free()
	be := s.backend()
	if err := f.Load(nn.Rename(s, fileName)); err != nil {
		return err
	}
	if err := s.checkFinite(); err != nil {
		return err
	}
	for l, b := range s.eps {
		var eps [1]float64
		be.Download(eps[:], b.Value)
		s.Encoder.(*gnn.GIN).Convs[l].Eps = eps[0]
	}
	return nil
}

// checkFinite returns an error that names the first tensor with a value that is not finite.
func (s *state) checkFinite() error {
	check := func(name string, t *tensor.Tensor) error {
		values := make([]float64, t.Len())
		s.backend().Download(values, t)
		for i, v := range values {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return fmt.Errorf("tensor %s: value %d of %d is %v", fileName(name), i, len(values), v)
			}
		}
		return nil
	}
	for _, p := range s.Parameters() {
		if err := check(p.Name, p.Value); err != nil {
			return err
		}
	}
	for _, b := range s.Buffers() {
		if err := check(b.Name, b.Value); err != nil {
			return err
		}
	}
	return nil
}

// encoderPrefix begins the names of an encoder's tensors in a program.
const encoderPrefix = "encoder."

var graphConv = regexp.MustCompile(`^convs\.\d+\.weight$`)

// fileName returns the name in a file of a tensor with a name in the program.
func fileName(name string) string {
	name = strings.TrimPrefix(name, encoderPrefix)
	switch {
	case graphConv.MatchString(name): // the weight of a layer within PyTorch Geometric's GCNConv
		return strings.TrimSuffix(name, "weight") + "lin.weight"
	case strings.HasPrefix(name, "input_node_embeddings."): // in the first layer of Hu et al.
		return "gnns.0." + name
	}
	return name
}

// Save writes the model to a file, which appears whole or not at all. It sets Card.Encoder, and
// Card.Provenance.Software if that is empty. Equal models give equal bytes.
func (m *Trained) Save(path string) error {
	if err := files.Write(path, m.Write); err != nil {
		return fmt.Errorf("specmatch: save %s: %w", path, err)
	}
	return nil
}

// Sum returns the SHA-256 of the file that [Trained.Save] writes, in hexadecimal digits.
func (m *Trained) Sum() (string, error) {
	h := sha256.New()
	if err := m.Write(h); err != nil {
		return "", fmt.Errorf("specmatch: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Write is [Trained.Save] to a stream, which an error may leave incomplete.
func (m *Trained) Write(w io.Writer) (err error) {
	defer backend.Recover(&err)
	if err := m.Complete(); err != nil {
		return err
	}
	text, err := json.Marshal(m.Card)
	if err != nil {
		return err
	}
	s := newState(m)
	defer s.free()
	return nn.Save(w, nn.Rename(s, fileName), map[string]string{cardKey: string(text)})
}

// Complete sets Card.Encoder, and Card.Provenance.Software if that is empty. It is an error if the card describes
// another model.
func (m *Trained) Complete() (err error) {
	c := &m.Card
	c.Encoder, err = gnn.ArchitectureOf(m.Encoder)
	if err != nil {
		return err
	}
	if c.Provenance.Software == "" {
		c.Provenance.Software = software()
	}
	if err := c.check(); err != nil {
		return err
	}
	switch {
	case (m.Head == nil) != (c.Head == nil):
		return fmt.Errorf("the model has a head (%v), its card describes one (%v)",
			m.Head != nil, c.Head != nil)
	case m.Head == nil:
	case m.Head.W.Name != predictor+".weight" || m.Head.B == nil:
		return fmt.Errorf("the head's weight is named %q (with a bias: %v); want %s.weight and a bias",
			m.Head.W.Name, m.Head.B != nil, predictor)
	case (m.Beside == nil) != (c.Beside == nil):
		return fmt.Errorf("the model has numbers beside it (%v), its card describes some (%v)",
			m.Beside != nil, c.Beside != nil)
	case m.Head.W.Value.Rows != c.headWidth(m.Width()) || m.Head.W.Value.Cols != c.Head.Outputs:
		return fmt.Errorf("the head is %v; want %d×%d",
			m.Head.W.Value, c.headWidth(m.Width()), c.Head.Outputs)
	}
	return nil
}

// Parameters returns the parameters of the encoder and of the head.
func (m *Trained) Parameters() []*autodiff.Param {
	if m.Head == nil {
		return m.Encoder.Parameters()
	}
	parameters := slices.Concat(m.Encoder.Parameters(), m.Head.Parameters())
	if m.Beside != nil {
		parameters = append(parameters, m.Beside.Hidden.Parameters()...)
	}
	return parameters
}

// Buffers returns the buffers of the encoder and of Beside.
func (m *Trained) Buffers() []*nn.Buffer {
	return append(slices.Clip(m.Encoder.Buffers()), m.Beside.buffers()...)
}

// backend returns the engine that embeds and predicts.
func (m *Trained) backend() backend.Backend {
	if m.engine != nil {
		return m.engine
	}
	return m.Encoder.Parameters()[0].Backend()
}

// Width returns the width of an embedding.
func (m *Trained) Width() int { return m.Encoder.Width() }

// WithReadout returns the encoder of the model, without the head, with another readout. The two
// share the weights.
func (m *Trained) WithReadout(r gnn.Readout) (*Trained, error) {
	bare := &Trained{Card: m.Card, Turn: m.Turn, engine: m.engine}
	var err error
	bare.Encoder, err = gnn.WithReadout(m.Encoder, r)
	if err == nil {
		bare.Card.Encoder, err = gnn.ArchitectureOf(bare.Encoder)
	}
	bare.Card.Head = nil
	bare.Card.Beside = nil
	bare.Card.Forest = nil
	bare.Card.Shares = nil
	bare.Card.Calibration = nil
	bare.Card.Domain = nil
	return bare, err
}

// Embed returns the embeddings of n graphs, row-major [n×Width]. The graphs must have the features
// that Card describes; Dataset.WithColumns of package dataset gives them to a data set. It is an
// error, with the graph's index and the reason, if the model cannot read a graph, or if a label did
// not occur in training. If ctx is cancelled, Embed returns its error.
func (m *Trained) Embed(ctx context.Context, graphs []*graph.Graph) (h []float64, err error) {
	defer backend.Recover(&err)
	add, err := m.checkGraphs(ctx, graphs)
	if err != nil {
		return nil, err
	}
	be := m.backend()
	if m.Turn != nil {
		return gnn.EmbedInTurn(ctx, be, m.Turn, m.Encoder, graphs, add)
	}
	if m.Memory != nil {
		return m.Memory.Embed(ctx, be, graphs, add)
	}
	return gnn.Embed(ctx, be, m.Encoder, graphs, add)
}

// Embed32 is [Trained.Embed] in float32, into dst [n×Width]. It converts nothing if the model has
// a cache ([Trained.Remembering]) that its engine can use.
func (m *Trained) Embed32(ctx context.Context, dst []float32, graphs []*graph.Graph) (err error) {
	defer backend.Recover(&err)
	add, err := m.checkGraphs(ctx, graphs)
	if err != nil {
		return err
	}
	switch {
	case m.Turn != nil:
		return gnn.EmbedInTurn32(ctx, m.backend(), m.Turn, m.Encoder, dst, graphs, add)
	case m.Memory != nil:
		return m.Memory.Embed32(ctx, m.backend(), dst, graphs, add)
	}
	h, err := gnn.Embed(ctx, m.backend(), m.Encoder, graphs, add)
	for i, v := range h {
		dst[i] = float32(v)
	}
	return err
}

// checkGraphs returns an error if the model cannot read one of the graphs, and else the function
// that appends one to a batch as the model reads it.
func (m *Trained) checkGraphs(
	ctx context.Context, graphs []*graph.Graph,
) (add func(b *graph.Batch, g *graph.Graph), err error) {
	a, err := gnn.ArchitectureOf(m.Encoder)
	if err != nil {
		return nil, err
	}
	for i, g := range graphs {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		err := a.Accepts(g)
		if err == nil && m.Card.Features != nil {
			err = m.Card.Features.CheckSeen(g)
		}
		if err != nil {
			return nil, fmt.Errorf("specmatch: graph %d: %w", i, err)
		}
	}
	raw := augment.Identity{SelfLoops: m.Card.SelfLoops}
	ws := new(augment.Workspace)
	return func(b *graph.Batch, g *graph.Graph) {
		// the encoder does not read edge labels, and other graphs may lack them
		if a.In > 0 && a.EdgeLabels == 0 && !a.Weights && g.EdgeLabel != nil {
			bare := *g
			bare.EdgeLabel = nil
			g = &bare
		}
		raw.Append(b, g, nil, ws)
	}, nil
}

// Remembering returns the model with a cache of atom environments of about this many bytes, if its
// encoder is of molecules and can use one. The two share all else; the weights must not change any
// more.
func (m *Trained) Remembering(bytes int) *Trained {
	c := *m
	if e, ok := m.Encoder.(*gnn.ChemGIN); ok {
		c.Memory = gnn.NewEnvironments(e, bytes)
	}
	return &c
}

// On returns the model on another engine of the same kind, for another goroutine. Both have the same
// weights, which must not change any more, and the same cache.
func (m *Trained) On(be backend.Backend) *Trained {
	c := *m
	c.engine = be
	if m.Memory != nil {
		c.Memory = m.Memory.Share()
	}
	return &c
}

// Predict returns the predictions of the head for n graphs, row-major [n×Outputs]: the probability
// of each class, the probability of 1 in each binary task, or numbers in the unit of the targets. A
// model without a head is an error; other errors are those of [Trained.Embed].
func (m *Trained) Predict(ctx context.Context, graphs []*graph.Graph) (y []float64, err error) {
	defer backend.Recover(&err)
	if m.Head == nil {
		return nil, errors.New("specmatch: the model is an encoder without a head: it can embed, but not predict")
	}
	h, err := m.embedIfUsed(ctx, graphs)
	if err != nil {
		return nil, err
	}
	return m.Apply(h, graphs)
}

// embedIfUsed returns the embeddings of graphs; nil if predictions do not use them.
func (m *Trained) embedIfUsed(ctx context.Context, graphs []*graph.Graph) ([]float64, error) {
	if m.ignoresEmbeddingsInTurn() {
		_, err := m.checkGraphs(ctx, graphs)
		return nil, err
	}
	return m.Embed(ctx, graphs)
}

// LoadWeights replaces the model's weights by those of a state_dict of PyTorch, in safetensors or
// as torch.save writes it, with exactly the tensors that [Open] lists. The error names all tensors
// that are missing, unexpected or of another shape.
func (m *Trained) LoadWeights(path string) (err error) {
	defer backend.Recover(&err)
	f, err := nn.ReadFile(path)
	if err != nil {
		return err
	}
	if err := newState(m).load(f); err != nil {
		return fmt.Errorf("specmatch: load %s: %w", path, err)
	}
	m.ForgetFit()
	return nil
}

// ForgetFit removes from the card what a fit left that holds for its weights only.
func (m *Trained) ForgetFit() {
	m.Card.Forest = nil
	m.Card.Shares = nil
	m.Card.Calibration = nil
	m.Card.Domain = nil
}

// CopyEncoder copies the weights and the running statistics of an encoder into one of the same
// architecture. Dropout and readout, with sum and center, may differ, since fine-tuning chooses its
// own.
func CopyEncoder(dst, src gnn.Encoder) (err error) {
	defer backend.Recover(&err)
	a, err := gnn.ArchitectureOf(dst)
	if err != nil {
		return err
	}
	b, err := gnn.ArchitectureOf(src)
	if err != nil {
		return err
	}
	if !sameWeights(a, b) {
		return fmt.Errorf("specmatch: the encoder is %+v, want %+v", b, a)
	}
	copies := values(dst)
	for i, v := range values(src) {
		x := make([]float64, v.Len())
		src.Parameters()[0].Backend().Download(x, v)
		dst.Parameters()[0].Backend().Upload(copies[i], x)
	}
	for l, c := range convs(src) {
		convs(dst)[l].Eps = c.Eps
	}
	return nil
}

// values returns the tensors of an encoder's parameters and buffers.
func values(e gnn.Encoder) (tensors []*tensor.Tensor) {
	for _, p := range e.Parameters() {
		tensors = append(tensors, p.Value)
	}
	for _, b := range e.Buffers() {
		tensors = append(tensors, b.Value)
	}
	return tensors
}

// sameWeights reports whether the weights of one architecture fit the other.
func sameWeights(a, b gnn.Architecture) bool {
	a.Dropout = b.Dropout
	a.Sum = b.Sum
	a.Center = b.Center
	a.Readout = b.Readout
	return a == b
}

// LoadEncoder reads the weights of a model file into an encoder of the same architecture. Dropout
// and readout, with sum and center, may differ, since fine-tuning chooses its own. A head in the
// file is ignored. LoadEncoder also reads files of earlier versions and of PyTorch, which do not
// describe the architecture.
func LoadEncoder(path string, e gnn.Encoder) (err error) {
	defer backend.Recover(&err)
	f, err := nn.ReadFile(path)
	if err != nil {
		return err
	}
	if err := loadEncoder(f, e); err != nil {
		return fmt.Errorf("specmatch: load %s: %w", path, err)
	}
	return nil
}

func loadEncoder(f *nn.File, e gnn.Encoder) error {
	if c, err := cardOf(f); err == nil {
		a, err := gnn.ArchitectureOf(e)
		if err != nil {
			return err
		}
		if !sameWeights(c.Encoder, a) {
			return fmt.Errorf("the file's encoder is %+v, want %+v", c.Encoder, a)
		}
	} else if err != errNoCard {
		return err
	}
	f = f.Without(predictor + ".").Without(beside + ".")
	if slices.ContainsFunc(f.Names(), func(name string) bool { return strings.HasPrefix(name, encoderPrefix) }) {
		return f.Without("proj_head.").Load(e)
	}
	return newState(&Trained{Encoder: e}).load(f)
}
