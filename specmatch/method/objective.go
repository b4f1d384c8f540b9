package method

import (
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
		"sum L_C over the batch, as the paper writes it, instead of taking its mean")
	Beta = setting.New(
		"beta",
		"weight `β` of the Laplacian loss in L_C + β·L_G: a number as in 1, or as in auto:0.2\n"+
			"the ratio of the two gradients' norms to aim at",
		train.ParseBeta,
		train.Beta{Weight: 0.05},
	)
	Warmup    = setting.New("warmup", "`steps` over which β grows linearly from 0", setting.Int(0), 0)
	Adjacency = setting.New(
		"adjacency",
		"how a similarity becomes an edge of the batch's similarity `graph`: sigmoid, spread\n"+
			"(sigmoid with κ in units of the spread of the similarities), hard, ste",
		specmatch.ParseAdjacency,
		usual.Adjacency,
	)
	Kappa = setting.New(
		"kappa", "sharpness `κ` of the soft adjacency σ(κ(S-θ))", setting.Positive, usual.Kappa,
	)
	Percentile = setting.New(
		"percentile",
		"`percentile` of a batch's similarities above which two graphs are joined",
		setting.Float(0, 100),
		usual.Percentile,
	).
		Formerly("p")
	RandomWalk = setting.Flag("random-walk",
		"compare random-walk Laplacians I - D⁻¹A instead of symmetric ones")
	ThetaGradient = setting.Flag("theta-gradient", "let the gradient flow through the threshold θ")
	OnH           = setting.Flag("on-h",
		"apply L_G to the encoder's output h instead of the projection z")
	Center = setting.Flag("center", "subtract the batch's mean embedding before L_G")
)

var usual = specmatch.DefaultLaplacianMatch()

// contrastSettings are those of the methods that learn from two views with L_C.
var contrastSettings = []setting.Setting{
	Policy, Ratio, Tau, Sum, Beta, Warmup, Adjacency, Kappa, Percentile, RandomWalk, ThetaGradient,
	OnH, Center,
}

// Objective returns the loss that options, which are resolved or set by flags, ask for.
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

// crossView returns GraphCL's loss as most methods have it: with the setup's temperature, as a mean.
func (s Setup) crossView() specmatch.InfoNCE {
	return specmatch.InfoNCE{Variant: specmatch.CrossView, Tau: Tau.Of(s.Options)}
}
