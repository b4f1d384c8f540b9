// Package train has the one training loop of this module, for pre-training by any
// method and for fine-tuning any head.
//
// The mental model: a [Learner] knows how to learn from one mini-batch; [Run]
// knows everything else about training: epochs, progress, Ctrl-C, checkpoints.
// A run that is interrupted, even by a kill, and started again with the same
// checkpoint file ends with the same bits as a run without the interruption.
//
//	l, err := method.New("infonce", setup) // or any other Learner
//	…
//	_, err = train.Run(ctx, l, train.Options{Epochs: 20, Checkpoint: "run.checkpoint"},
//		func(p train.Progress) error { fmt.Println(p.Epoch, p.Metrics["loss"]); return nil })
//
// [Minimize] is one step for learners that have one loss and one optimizer.
package train
