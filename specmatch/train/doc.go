// Package train implements the training loop of this module, for pre-training with any method and for
// fine-tuning any head.
//
// The mental model: a [Learner] learns from one mini-batch. [Run] does everything else: epochs, progress,
// Ctrl-C and checkpoints. A run that is interrupted, even killed, and restarted with the same checkpoint
// file ends with the same bits as an uninterrupted run.
//
//	l, err := method.New("infonce", setup) // or any other Learner
//	…
//	_, err = train.Run(ctx, l, train.Options{Epochs: 20, Checkpoint: "run.checkpoint"},
//		func(p train.Progress) error { fmt.Println(p.Epoch, p.Metrics["loss"]); return nil })
//
// [Minimizer.Minimize] is one step for learners that have one loss and one optimizer.
package train
