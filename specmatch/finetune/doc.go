// Package finetune fits models that predict classes, binary tasks with or without missing labels, or numbers.
//
// The mental model: a model is an encoder with a linear head ([model.NewPredictor]). [Examples] are
// the records of a file with their targets and their split. A [Learner] trains the model on the
// training set, and evaluates it on the validation and test sets after every epoch.
//
//	x, err := finetune.Read(ctx, "molecules.csv", finetune.Task{Targets: []string{"logS"}}, records.Options{})
//	split, err := x.Divide(seed)
//	m, err := x.NewModel(be, gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 64, Layers: 3}, nil, seed)
//	l, err := finetune.New(m, x.Data(split), finetune.Options{Rate: 1e-3, Patience: 20})
//	result, err := l.Fit(ctx, train.Options{Epochs: 100}, nil)
//	err = m.Save("model.safetensors")
//
// [Examples.Fold] splits for cross-validation. [Examples.Predict] predicts for a part, with
// metrics, a baseline and confusion matrices. [Examples.Calibrate] notes in the model how far its
// predictions can be trusted.
//
// A learner takes any graphs and targets; those of a file are only the most common. Package train
// drives it, and so can its caller. With Options.Patience, training stops when the validation set
// has not improved for some epochs, and [Learner.Best] restores the weights of the best one. If the
// head sees numbers next to the graph, [Learner.Fit] also fits a linear model of them, and chooses
// its weight on the validation set.
//
// # Metrics of an epoch
//
// They are the "loss" of training and, after "valid_" or "test_":
//
//	classes     loss, accuracy (in per cent)
//	binary      loss; roc_auc (in per cent), the mean over the tasks with both answers;
//	            one_class, the number of other tasks
//	regression  loss, of standardised errors; rmse, mae, r2 and spearman of each task, in the unit
//	            of its targets, with the task's name if there are several ([TaskMetric])
//
// Epochs are chosen by roc_auc where it is defined, and by the loss where it is not or is equal.
package finetune
