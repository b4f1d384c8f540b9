// Package eval turns frozen graph embeddings into the numbers of a results table:
// cross-validated accuracies of support vector machines. Package roc beside it has the
// ROC-AUC.
//
// The mental model: an encoder was trained without labels and is now a fixed
// function. Its outputs, one row per graph, are [Data]. [Protocol.Accuracy] asks how well a
// standard classifier does on them, by a [Protocol] that is nested cross-validation
// throughout: the hyper-parameter C is chosen inside the training part of each
// fold, so the graphs that are scored have no say in it.
//
//	outer 10 folds, stratified, shuffled with the run's seed
//	  └─ Train: inner 5 folds, stratified, in order: accuracy for each C in 1e-3…1e3
//	       └─ best C (the smallest of equals), fit on all of Train
//	  └─ Test: accuracy
//
// The value of a run is the mean over the outer folds; tables report mean and
// standard deviation of that over runs with different seeds. Two methods are best
// compared on the same folds; package compare says what their difference is worth.
//
// # The two classifiers
//
// [Protocol] GraphCL is an RBF machine, because that is what GraphCL's
// published script runs. It minimises, for every pair of classes,
//
//	½ αᵀQα − Σα_t,  0 ≤ α_t ≤ C,  Σ y_tα_t = 0,  Q_st = y_sy_t exp(−γ‖x_s − x_t‖²)
//
// by sequential minimal optimisation with second order working sets and shrinking,
// to a violation of 1e-3, and lets the pairs vote. It follows libsvm, and
// scikit-learn's SVC on top of it, step by step and not only to within its tolerance:
// two solutions that are both good to 1e-3 may still disagree about a test graph,
// and published accuracies come from libsvm's.
//
// [Protocol] Linear is what most papers say they use: a linear machine, here
// one with the squared hinge loss,
//
//	½‖w‖² + ½b² + C Σ max(0, 1 − t_i(w·x_i + b))²
//
// one class against the rest. Newton's method reaches its minimum for every C and
// badly scaled features, or returns an error. That is the point at
// which scikit-learn's LinearSVC(dual=False) aims; its default, dual coordinate
// descent with a thousand iterations, does not get there for C ≥ 1 on typical
// embeddings and loses several points of accuracy.
//
// Graph kernels go through the same nesting: [EvaluateKernels] takes kernel matrices,
// one for each number of rounds, say, and chooses one of them together with C;
// [EvaluateSparse] takes features of the same kernels, for sets whose matrices are
// large. Both also do the protocol of the kernel literature, whose validation part is
// left out of the final fit.
//
// Neither protocol scales the features, since GraphCL does not. Scaling would have
// to be fitted inside each training part, which these protocols do not offer.
//
// # Invariants
//
// Results are the same bits for any number of workers. Nothing is drawn at random:
// the folds are arguments. Bad input is an error that names the row, the
// label or the fold; nothing here panics or prints. Accuracies and areas are
// fractions, not percentages.
//
// # Cost
//
// Squared distances are computed once per data set, and a kernel matrix once per
// training part for all C: 8·n²/2 bytes for the data set and about 4·n² per worker,
// 100 MB and up to 200 MB at 5000 graphs. A pair whose solution never touched the
// bound C is the solution for all larger C and is not solved again.
//
// # Sources
//
//   - C.-C. Chang, C.-J. Lin: LIBSVM: A library for support vector machines. ACM TIST
//     2(3), 2011. Problem, stopping rule, shrinking, voting.
//   - R.-E. Fan, P.-H. Chen, C.-J. Lin: Working set selection using second order
//     information for training support vector machines. JMLR 6, 2005. WSS 2.
//   - C.-J. Hsieh, K.-W. Chang, C.-J. Lin, S. S. Keerthi, S. Sundararajan: A dual
//     coordinate descent method for large-scale linear SVM. ICML 2008. The method of
//     liblinear's default, which is used for sparse rows alone, and why its sweeps grow
//     with C.
//   - S. S. Keerthi, D. DeCoste: A modified finite Newton method for fast solution of
//     large scale linear SVMs. JMLR 6, 2005. The linear solver.
//   - T. Ogita, S. M. Rump, S. Oishi: Accurate sum and dot product. SIAM Journal on
//     Scientific Computing 26(6), 2005. Its margins where rounding is in the way.
//   - R.-E. Fan, K.-W. Chang, C.-J. Hsieh, X.-R. Wang, C.-J. Lin: LIBLINEAR. JMLR 9,
//     2008. The treatment of the intercept.
//   - Y. You, T. Chen, Y. Sui, T. Chen, Z. Wang, Y. Shen: Graph contrastive learning
//     with augmentations. NeurIPS 2020, and its code, unsupervised_TU/
//     evaluate_embedding.py (svc_classify). The protocol.
//   - J. A. Hanley, B. J. McNeil: The meaning and use of the area under a receiver
//     operating characteristic (ROC) curve. Radiology 143, 1982.
package eval
