// Package train is the one training loop of this module: what pre-training by
// any method and fine-tuning of any head go through.
//
// The mental model: a [Learner] knows how to learn from one mini-batch; [Run]
// knows everything else about training: epochs, progress, Ctrl-C, checkpoints.
// A run that is interrupted, however roughly, and started again with the same
// checkpoint file ends with the bits that it would have had without.
//
//	l := method.New(…)                       // or any other Learner
//	_, err := train.Run(ctx, l, train.Options{Epochs: 20, Checkpoint: "run.checkpoint"},
//		func(p train.Progress) error { fmt.Println(p.Epoch, p.Metrics["loss"]); return nil })
//
// [Minimize] is the step of a learner that has a loss and an optimizer.
package train
