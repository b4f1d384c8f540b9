package method

import "github.com/specmatch/specmatch/specmatch"

// infoNCE is the paper's contrastive loss L_C alone, on two augmented views: what
// SpecMatch-CL is with β = 0. See [specmatch.InfoNCE] for the formula.
var infoNCE = &Method{
	Name:     InfoNCE,
	Title:    "InfoNCE (β = 0)",
	Regimes:  []Regime{Unsupervised, SemiSupervised, Transfer},
	Settings: contrastSettings,
	new: func(s Setup) (*Learner, error) {
		s.Options = s.Options.With(Options{"beta": specmatch.Beta{}})
		return specMatch.new(s)
	},
}
