// Package finetune fits a head to an encoder: classes, yes-or-no tasks of which
// some labels may be missing, or numbers.
//
// The mental model: a [Predictor] is an encoder with a linear layer behind it; a
// [Learner] trains all of it on the labelled part of a data set and looks at the
// other parts after every epoch. Package train drives it.
//
//	p := finetune.NewPredictor(be, encoder, finetune.Head{Kind: finetune.Classes, Outputs: 2}, rng)
//	l, err := finetune.New(p, finetune.Data{Graphs: graphs, Y: y, Train: train, Valid: valid, Test: test}, finetune.Options{Rate: 1e-3})
//	_, err = train.Run(ctx, l, train.Options{Epochs: 100}, func(p train.Progress) error { … })
//	y, err := p.Predict(ctx, graphs)
//
// What a learner reports of an epoch, besides "loss", begins with "valid_" or
// "test_": loss and accuracy (a share) of classes; roc_auc, a mean over the tasks
// that have both classes, and one_class, the number of those that have not; rmse,
// mae and r2 of numbers, means over the tasks in the unit of the targets.
package finetune
