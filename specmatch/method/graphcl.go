package method

import (
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/specmatch"
)

// graphCL is GraphCL (You et al., Graph contrastive learning with augmentations,
// NeurIPS 2020). With s_ij the cosine of projection i of the first view and j of
// the second,
//
//	L = mean_i -ln( e^(s_ii/τ) / Σ_{j≠i} e^(s_ij/τ) ),
//
// which leaves the positive pair out of the denominator ([specmatch.CrossView]).
//
// The paper augments both views. Its code for the unsupervised regime takes the
// raw graph for the first, with self-loops that the second does not have, draws
// the order of the batches once for all epochs, and embeds graphs with the
// self-loops. Its code for the semi-supervised regime augments both views with its
// own variants of the augmentations ([augment.GraphCLSemi]). Options.GraphCLCode
// follows the code of the regime; without it the unsupervised regime has a raw first
// view, without self-loops, and the augmentations as intended for the second.
var graphCL = &Method{
	Name: GraphCL, Title: "GraphCL", Regimes: []Regime{Unsupervised, SemiSupervised, Transfer},
	reads: func(s Setup) settings {
		all := s.contrast()
		if s.Regime != Transfer {
			all["graphcl-code"] = s.GraphCLCode
		}
		if s.Regime == Unsupervised && s.GraphCLCode {
			delete(all, "ratio") // its code has its own
		}
		return all
	},
	new: func(s Setup) (*Learner, error) {
		impl, ratio, order := augment.ImplIntended, s.Ratio, augment.Reshuffle
		loops := false
		if s.GraphCLCode {
			switch s.Regime {
			case Unsupervised:
				impl, ratio, order = augment.ImplUnsupervised, 0, augment.ShuffleOnce // the ratios of its code
				loops = true
			case SemiSupervised:
				impl = augment.ImplSemi
			}
		}
		loader, err := s.twoViews(impl, ratio)
		if err != nil {
			return nil, err
		}
		if s.Regime == Unsupervised {
			loader.Collator.Views[0] = augment.Identity{SelfLoops: loops}
		}
		loader.Order = order
		o := s.Objective
		o.Contrast.Variant, o.Beta = specmatch.CrossView, specmatch.BetaSchedule{}
		l, err := newContrastive(s, o, loader)
		if err != nil {
			return nil, err
		}
		l.SelfLoops = loops
		return l, nil
	},
}
