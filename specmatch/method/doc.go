// Package method has the ways of learning without labels, one file each, which
// begins with the paper, the formula, and what the reference code does differently.
//
// The mental model: a [Method] turns a [Setup], graphs and the description of an
// encoder, into a [Learner], which package train drives:
//
//	l, err := method.New("specmatch", method.Setup{
//		Backend: be,
//		Encoder: gnn.Architecture{Kind: gnn.KindGIN, In: width, Hidden: 32, Layers: 3},
//		Graphs:  graphs,
//		Options: method.Options{"kappa": 5},
//	})
//	…
//	defer l.Close()
//	_, err = train.Run(ctx, l, train.Options{Epochs: 20}, nil)
//	h, err := l.Embed(ctx, graphs) // [n×96]
//
// Learners with the same seed share the initial weights of the encoder; those that
// learn from the same views also share batches and augmentations.
//
// A setting of a method is declared once, by [setting.New] next to the code that reads it, and
// listed in Method.Settings: flags, run directories, model files and -h follow from it.
// The settings that several methods share are in objective.go and views.go.
//
// A new method is a file with a Method and a line in the list of method.go; the
// tests of this package and the experiments take it from there. Its new returns a
// Learner: a model by Setup.newModel, batches by Setup.twoViews or Setup.loader, and a
// Step that minimizes a loss. In a batch, view v has the graphs from ViewPtr[v] to
// ViewPtr[v+1]. The file simgrace.go is a pattern with two settings. What a method may
// do is the interface [train.Learner]: choose the views of every epoch, keep
// state of its own between steps and epochs, own further networks and optimizers,
// look at all graphs before or after an epoch, and end training early.
package method
