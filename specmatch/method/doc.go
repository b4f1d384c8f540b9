// Package method implements methods of learning without labels, in one file each. A file begins with the
// paper, the formula and the differences of the reference code.
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
// Learners with the same seed share the initial weights of the encoder. Those that learn from the same
// views also share batches and augmentations.
//
// [setting.New] declares a setting of a method once, next to the code that reads it, and Method.Settings
// lists it: flags, run directories, model files and -h follow. Settings that several methods share are in
// objective.go and views.go.
//
// A new method is a file with a Method and a line in list.go; the tests of this package and the experiments
// then include it. Its new returns a Learner: a model from Setup.newModel, batches from Setup.twoViews or
// Setup.loader, and a Step that minimizes a loss. In a batch, view v has the graphs from ViewPtr[v] to
// ViewPtr[v+1]. The file simgrace.go is an example with two settings. The interface [train.Learner] defines
// what a method may do: choose the views of every epoch, keep state between steps and epochs, own further
// networks and optimizers, use all graphs before or after an epoch, and end training early.
package method
