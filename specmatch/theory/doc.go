// Package theory computes both sides of the paper's Theorems 4.2 and 4.3 for embeddings, on the host in
// float64, in every reading of the terms that the paper leaves open. It shows where the theorems hold,
// where they are vacuous and where they fail.
//
// The mental model: a [View] describes one augmented view of a batch of n graphs by its unit embeddings
// z [n×d], the similarity graph that they induce, its Laplacian L and the spectrum of L. Theorem 4.2 is
// about two views, Theorem 4.3 about many draws of one:
//
//	v1, err := theory.NewView(z1, n, d, match)
//	v2, err := theory.NewView(z2, n, d, match)
//	left  := theory.AlignmentGap(v1, v2, tau)         // |L_C - L_C*|
//	right := theory.Alignment(v1, v2, tau, td).Right  // t_d²·c·L_G/τ
//	both, err := theory.Uniformity(draws, 2)          // L_unif and its bound
//
// All numbers below were measured on NCI1 with
//
//	go run ./experiments/theory -dataset NCI1 -data DIR
//
// with a batch of 128 graphs, 16 draws of the augmentations, 3 seeds and checkpoints every two epochs up to
// 20, for β = 0 and β = 0.5, with the paper's hard threshold and with the sigmoid of training; or the tests
// of this package log them (go test -v ./specmatch/theory). The tables are in experiments/theory/results.
//
// # Theorem 4.2: the gap to perfect alignment
//
//	|L_C - L_C*| ≤ t_d²·c·L_G/τ   if   Σ‖z¹_i-z²_i‖² ≤ c·‖P¹-P²‖²_F,   P = e^(-t_d·L)
//
// It holds if L_C* is L_C with the similarity of positives set to 1 and unchanged negatives, as in the
// proof. This was so in all of 1600 random cases and at every checkpoint, where the left side reached 0.85
// of the right one at t_d = 0.1, 0.24 at t_d = 1 and 0.01 at t_d = 5. Every step of the proof holds as
// well, such as ‖P¹-P²‖² ≤ t_d²·L_G.
//
// It fails if L_C* is the loss at z*¹ = z*² = z¹, which the statement allows. Negatives then move in first
// order of z¹-z², while the bound is of second order. 87 of 344 random pairs violate it, by a factor of up
// to 280, all with close views, whose mean ‖z¹-z²‖² is under 0.08. On NCI1 the mean is 0.46 (β = 0) and 0.17
// (β = 0.5), and no pair violated it (0.90 at most).
//
// It says nothing about the training loss. The constant c is not a constant: it is as large as the batch
// requires, Σ‖z¹-z²‖²/‖P¹-P²‖², between 85 and 7600 depending on graph and t_d for the same batches at
// β = 0. With that c, L_G almost cancels:
//
//	right side = Σ‖z¹-z²‖²/τ · (t_d²·L_G/‖P¹-P²‖²)
//
// where the last factor is 1 or more, and close to 1 for small t_d. At β = 0 the graphs with L_G = 4.4
// (hard, p = 80), 1.1 (hard, p = 50) and 1.0 (sigmoid) have nearly the same right side at t_d = 0.1: 374,
// 377 and 372. Only alignment itself makes it smaller: with β = 0.5 it is 138, since L_align falls from 0.46
// to 0.17, while L_G with the paper's threshold rises to 6.2.
//
// It does not apply if L¹ = L². Any rotation of a view keeps its graph, and between close views the hard
// threshold often moves no edge (256 of 300 random pairs at 2 % noise; the paper calls it rare). On NCI1
// this did not happen. The proof also excludes random-walk Laplacians I - D⁻¹A, whose ‖e^(-tL)‖₂ exceeds 1.
//
// # Theorem 4.3: uniformity
//
//	L_unif ≤ a/(2√2)·(3/2 - E‖μ‖²)·√E[L_G] - a/2·λ̄₂·(1 - E‖μ‖²),   a = 1-e^(-4t)
//
// It holds, as does every step, if λ̄₂ is the second smallest eigenvalue of L̄, also for soft weights that
// grow with the similarity. With the smallest non-zero eigenvalue, as the paper defines it, the step
// (λ₂-λ̄₂)² ≤ ‖L-L̄‖² is false in 232 of 313 random cases, since L̄ is not the Laplacian of a graph and has no
// eigenvalue 0; the theorem remains true, but is weaker.
//
// It is vacuous on real batches. L_unif is never positive, but the right side was positive at every
// checkpoint with the sigmoid: at β = 0, epoch 20, L_unif is -3.40, the bound before L_G enters
// ([UniformityBound].Direct) is -0.24, and the right side is +0.24. It would be negative only for E[L_G] below
//
//	8·(½·λ̄₂·(1-E‖μ‖²)/(3/2-E‖μ‖²))²,
//
// which is 0.25 there and 0.04 at β = 0.5; E[L_G] was 0.92 and 0.64. It also points the wrong way: training
// L_G lowers E[L_G] from 0.92 to 0.64 but makes uniformity worse, L_unif from -3.40 to -1.75, since the
// embeddings move together (E‖μ‖² from 0.03 to 0.50).
//
// It often does not apply. It needs connected graphs, and with β = 0.5 and the paper's threshold 131 of 480
// draws have one. It also needs both views to have the same distribution, unlike GraphCL's raw and augmented
// pair, and a threshold that does not depend on the batch, unlike a percentile.
package theory
