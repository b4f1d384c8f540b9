// Package finetune fits models that predict: classes, yes-or-no tasks of which some
// labels may be missing, or numbers.
//
// The mental model: a model is an encoder with a linear layer behind it
// ([specmatch.NewPredictor]); [Examples] are the records of a file with their targets and
// their division; a [Learner] trains the model on one part and evaluates it on the others
// after every epoch.
//
//	x, err := finetune.Read(ctx, "molecules.csv", finetune.Task{Targets: []string{"logS"}}, records.Options{})
//	split, err := x.Divide(seed)
//	m, err := x.NewModel(be, gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 64, Layers: 3}, nil, seed)
//	l, err := finetune.New(m, x.Data(split), finetune.Options{Rate: 1e-3, Patience: 20})
//	result, err := l.Fit(ctx, train.Options{Epochs: 100}, nil)
//	err = m.Save("model.safetensors")
//
// [Examples.Fold] divides for cross-validation, [Examples.Predict] predicts for a part, with
// metrics, a baseline and confusion matrices beside them, and [Examples.Calibrate] notes in the
// model how far its predictions are to be trusted.
//
// A learner takes any graphs and targets; those of a file are only the commonest. Package train
// drives it, and so can its caller. With Options.Patience training ends when the validation part
// has not become better for some epochs, and [Learner.Best] then restores the weights of the best
// one. Where the head sees numbers beside the graph, [Learner.Fit] then fits a linear model of
// them, and chooses on the validation part how much it has to say.
//
// The metrics of an epoch, besides the "loss" of training, begin with "valid_" or "test_":
// for classes loss and accuracy (in per cent); for yes-or-no tasks loss, roc_auc (in per cent),
// a mean over the tasks that have both answers, and one_class, the number of tasks that do
// not; for numbers loss, which is of standardised errors, and the [Metrics] of each task, in
// the unit of its targets: rmse, mae, r2 and spearman, of several tasks with the task's name
// behind ([TaskMetric]). Epochs are chosen by roc_auc where it is defined, and
// by the loss where it is not or is equal.
package finetune
