package method

import (
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/train"
)

// contrastive learns from two views of every graph: what GraphCL, InfoNCE and
// SpecMatch-CL have in common.
type contrastive struct {
	train.Defaults
	*specmatch.Trainer
	recorded *specmatch.Recorded // nil where steps are not recorded
}

// newContrastive returns a learner of an objective. The weights of the projection
// head are drawn after those of the encoder.
func newContrastive(s Setup, o specmatch.Objective, loader *augment.Loader) (*Learner, error) {
	m, _, err := s.newModel()
	if err != nil {
		return nil, err
	}
	c := &contrastive{
		Defaults: train.Defaults{Loader: loader},
		Trainer:  specmatch.NewTrainer(s.Backend, m, o, s.Rate),
	}
	if c.Records() && !m.Encoder.Reads().Host {
		c.recorded, err = specmatch.NewRecorded(c.Trainer)
		if err != nil {
			return nil, err
		}
	}
	return &Learner{Learner: c, Model: m}, nil
}

// Step probes the first batch of every epoch. A batch of one graph has no negatives,
// and so nothing to learn from. Methods that do not train L_G compute it in probed
// steps only, so for all methods the probed step stands for its epoch.
func (c *contrastive) Step(b train.Batch) (train.Metrics, error) {
	if len(b.Samples) < 2 {
		return nil, nil
	}
	if c.recorded != nil && b.Index > 0 {
		return metrics(c.recorded.Step(b.Graphs))
	}
	s, err := c.Trainer.Step(b.Graphs, b.Index == 0)
	m, err := metrics(&s.Stats, err)
	p := s.Probe
	d := s.Diagnosis
	if err == nil && d != nil {
		m["loss_g"], m["loss_g_hard"], m["beta"] = s.Aux, d.LossHard, s.Beta
		m["gradient_ratio"], m["gradient_cosine"] = p.Ratio, p.Cosine
		m["similarity_std"], m["edge_density"], m["isolated"] = d.Spread, d.Density, d.Isolated
		m["align"], m["uniform"] = d.Alignment, d.Uniformity
	}
	return m, err
}

// metrics returns the metrics of a step without a probe; nil of none.
func metrics(s *train.Stats, err error) (train.Metrics, error) {
	if s == nil || err != nil {
		return nil, err
	}
	return train.Metrics{"loss": s.Loss, "loss_c": s.Main}, nil
}

// Last implements [train.Learner].
func (c *contrastive) Last() (train.Metrics, error) {
	if c.recorded == nil {
		return nil, nil
	}
	return metrics(c.recorded.Last())
}

// Close implements [train.Learner].
func (c *contrastive) Close() error {
	if c.recorded == nil {
		return nil
	}
	return c.recorded.Close()
}
