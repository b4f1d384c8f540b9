package method

import (
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/train"
)

// contrastive learns from two views of every graph: what GraphCL, InfoNCE and
// SpecMatch-CL have in common.
type contrastive struct {
	train.Defaults
	trainer *specmatch.Trainer
	steps   specmatch.Stepper // trainer.Step or, where the engine records steps, replays of it
}

// newContrastive returns a learner of an objective. The weights of the projection
// head are drawn after those of the encoder.
func newContrastive(s Setup, o specmatch.Objective, loader *augment.Loader) (*Learner, error) {
	if err := checkTemperature(o.Contrast.Temperature); err != nil {
		return nil, err
	}
	e, rng, err := s.NewEncoder()
	if err != nil {
		return nil, err
	}
	m := specmatch.NewModel(s.Backend, e, rng)
	trainer := specmatch.NewTrainer(s.Backend, m, o, s.Rate)
	c := &contrastive{train.Defaults{Loader: loader}, trainer, specmatch.NewStepper(trainer)}
	return &Learner{Learner: c, Model: m}, nil
}

// twoViews returns the batches of two views by the same augmentation of a family.
func (s Setup) twoViews(impl augment.Impl, ratio float64) (*augment.Loader, error) {
	view, err := augment.ParsePolicy(s.Policy, impl, ratio)
	if err != nil {
		return nil, err
	}
	return s.loader(view, view), nil
}

// Step probes the first batch of every epoch. A batch of one graph has no negatives,
// and so nothing to learn from.
func (c *contrastive) Step(b train.Batch) (train.Metrics, error) {
	switch {
	case len(b.Samples) < 2:
		return nil, nil
	case b.Index == 0:
		stats, err := c.trainer.Step(b.Graphs, true)
		return metrics(stats, err == nil), err
	}
	stats, ok, err := c.steps.Step(b.Graphs)
	return metrics(stats, ok), err
}

// Last implements [train.Learner].
func (c *contrastive) Last() (train.Metrics, error) {
	stats, ok, err := c.steps.Last()
	return metrics(stats, ok), err
}

// State implements [train.Learner].
func (c *contrastive) State() (nn.Module, any) { return c.trainer.State() }

// Close implements [train.Learner].
func (c *contrastive) Close() error { return c.steps.Close() }

// metrics returns the metrics of a step; nil unless ok. Methods that do not train
// L_G compute it in probed steps only, so for all methods the probed step stands for
// its epoch.
func metrics(s specmatch.Stats, ok bool) train.Metrics {
	if !ok {
		return nil
	}
	m := train.Metrics{"loss": s.Loss, "loss_c": s.LossC}
	if p := s.Probe; p != nil {
		m["loss_g"], m["loss_g_hard"], m["beta"] = s.LossG, p.LossHard, s.Beta
		m["gradient_ratio"], m["gradient_cosine"] = p.Ratio, p.Cosine
		m["similarity_std"], m["edge_density"], m["isolated"] = p.Spread, p.Density, p.Isolated
		m["align"], m["uniform"] = p.Alignment, p.Uniformity
	}
	return m
}
