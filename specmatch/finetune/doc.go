// Package finetune fits a head to an encoder: classes, yes-or-no tasks of which
// some labels may be missing, or numbers.
//
// The mental model: a [Predictor] is an encoder followed by a linear layer; a
// [Learner] trains both on the labelled part of a data set and evaluates them on
// the other parts after every epoch. Package train drives it.
//
//	p := finetune.NewPredictor(be, encoder, finetune.Head{Kind: finetune.Classes, Outputs: 2}, rng)
//	l, err := finetune.New(p, finetune.Data{Graphs: graphs, Y: y, Train: train, Valid: valid, Test: test}, finetune.Options{Rate: 1e-3})
//	_, err = train.Run(ctx, l, train.Options{Epochs: 100}, func(p train.Progress) error { … })
//	y, err := p.Predict(ctx, graphs)
//
// With Options.Patience training ends when the validation part has not become better
// for some epochs, and [Learner.Best] then restores the weights of the best one.
//
// The metrics of an epoch, besides "loss", begin with "valid_" or "test_": for
// classes loss and accuracy (in per cent); for yes-or-no tasks roc_auc (in per cent),
// a mean over the tasks that have both answers, and one_class, the number of tasks
// that do not; for numbers rmse, mae and r2, means over the tasks, the first two in
// the unit of the targets.
package finetune
