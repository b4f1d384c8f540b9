package method

import (
	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// rawStatistics is a setting of all methods.
var rawStatistics = setting.Flag("raw-statistics",
	"take batch norm's running statistics, which embeddings use, from raw graphs instead of views;\n"+
		"MSSGCL always does")

// rawStatistics returns a learner whose running statistics come from raw graphs, by an additional
// forward pass for every batch.
func (s Setup) rawStatistics(l *Learner) *Learner {
	if _, done := l.Learner.(*tracking); !done {
		l.Learner = &tracking{
			Learner: l.Learner,
			encoder: l.Model.Encoder,
			graphs:  s.Graphs,
			form:    augment.Identity{SelfLoops: l.SelfLoops},
			tape:    autodiff.NewInference(s.Backend),
		}
	}
	return l
}

// tracking is a learner that updates the running statistics with raw graphs before each step, and
// restores them after it.
type tracking struct {
	train.Learner
	encoder gnn.Encoder
	graphs  []*graph.Graph
	form    augment.Identity
	tape    *autodiff.Tape
	raw     rawBatch
}

// rawBatch collates graphs as they are.
type rawBatch struct {
	batch graph.Batch
	ws    augment.Workspace
}

// of returns a batch of the samples, valid until the next call.
func (r *rawBatch) of(graphs []*graph.Graph, samples []int, identity augment.Identity) *graph.Batch {
	r.batch.Reset(graphs[samples[0]].X.Width)
	for _, i := range samples {
		identity.Append(&r.batch, graphs[i], nil, &r.ws)
	}
	r.batch.EndView()
	return &r.batch
}

func (l *tracking) Step(b train.Batch) (m train.Metrics, err error) {
	defer backend.Recover(&err)
	defer l.tape.Reset()
	l.encoder.Forward(gnn.NewBatch(l.tape, l.raw.of(l.graphs, b.Samples, l.form)), nn.Train)
	buffers := train.Keep(l.encoder)
	defer buffers.Free()
	defer buffers.Restore()
	return l.Learner.Step(b)
}
