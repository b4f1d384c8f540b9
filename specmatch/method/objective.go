package method

import (
	"slices"

	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// The settings of the objective L_C + β·L_G.
var (
	Tau = setting.New("tau", "temperature `τ` of the contrastive loss", setting.Positive, 0.2).
		In(string(SemiSupervised), 0.5).
		In(string(Transfer), 0.1)
	Sum = setting.Flag("sum",
		"sum L_C over the batch, as in the paper, instead of averaging it")
	Beta = setting.New(
		"beta",
		"weight `β` of the Laplacian loss in L_C + β·L_G: a number, or auto:R to keep the ratio of the\n"+
			"two gradients' norms at R, such as auto:0.2",
		train.ParseBeta,
		train.Beta{Weight: 0.05},
	)
	Warmup    = setting.New("warmup", "number of `steps` over which β grows linearly from 0", setting.Int(0), 0)
	Adjacency = setting.New(
		"adjacency",
		"edge weights of the batch's similarity `graph`: sigmoid; spread (sigmoid with κ in units of the\n"+
			"similarities' standard deviation); hard; ste (hard, with the gradient of sigmoid)",
		specmatch.ParseAdjacency,
		usual.Adjacency,
	)
	Kappa = setting.New(
		"kappa", "sharpness `κ` of the soft adjacency σ(κ(S-θ))", setting.Positive, usual.Kappa,
	)
	Percentile = setting.New(
		"percentile",
		"`percentile` of a batch's similarities above which two graphs have an edge",
		setting.Float(0, 100),
		usual.Percentile,
	).
		Formerly("p")
	RandomWalk = setting.Flag("random-walk",
		"use random-walk Laplacians I - D⁻¹A instead of symmetric ones")
	ThetaGradient = setting.Flag("theta-gradient", "let the gradient flow through the threshold θ")
	OnH           = setting.Flag("on-h",
		"apply L_G to the encoder's output h instead of the projection z")
	Center = setting.Flag("center", "subtract the batch's mean embedding before L_G")
)

var usual = specmatch.DefaultLaplacianMatch()

// The settings of the methods that learn from two views.
var (
	// viewSettings are those of the views and of L_C.
	viewSettings = []setting.Setting{Policy, Ratio, Tau, Sum}
	// contrastSettings are those of methods that learn by L_C alone, and report L_G.
	contrastSettings = append(slices.Clone(viewSettings),
		Adjacency, Kappa, Percentile, RandomWalk, ThetaGradient, OnH, Center)
	// matchSettings are those of methods that learn by L_G, too.
	matchSettings = append(slices.Clone(contrastSettings), Beta, Warmup)
)

// Objective returns the loss for options that are resolved or set by flags.
func Objective(o Options) specmatch.Objective {
	return specmatch.Objective{
		Contrast: specmatch.InfoNCE{Tau: Tau.Of(o), Sum: Sum.Of(o)},
		Match: specmatch.LaplacianMatch{
			Adjacency:         Adjacency.Of(o),
			Kappa:             Kappa.Of(o),
			Percentile:        Percentile.Of(o),
			RandomWalk:        RandomWalk.Of(o),
			ThresholdGradient: ThetaGradient.Of(o),
		},
		OnH:    OnH.Of(o),
		Center: Center.Of(o),
		Beta:   Beta.Of(o),
		Warmup: Warmup.Of(o),
	}
}

// crossView returns GraphCL's loss with the setup's temperature, averaged over the batch.
func (s Setup) crossView() specmatch.InfoNCE {
	return specmatch.InfoNCE{Variant: specmatch.CrossView, Tau: Tau.Of(s.Options)}
}
