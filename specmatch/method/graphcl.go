package method

import (
	"errors"

	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// graphCL is GraphCL (You et al., Graph contrastive learning with augmentations,
// NeurIPS 2020). With s_ij the cosine of projection i of the first view and j of
// the second,
//
//	L = mean_i -ln( e^(s_ii/τ) / Σ_{j≠i} e^(s_ij/τ) ),
//
// which leaves the positive pair out of the denominator ([specmatch.CrossView]).
//
// The paper augments both views. Its code for the unsupervised regime uses the raw graph as the first
// view, with self-loops that the second lacks, draws the order of the batches once for all epochs, and
// embeds graphs with the self-loops. Its code for the semi-supervised regime augments both views with
// its own variants of the augmentations ([augment.GraphCLSemi]). The setting graphcl-code follows the
// code of the regime. Without it, the unsupervised regime has a raw first view without self-loops, and
// the intended augmentations for the second.
var graphCL = &Method{
	Name:     GraphCL,
	Title:    "GraphCL",
	Regimes:  []Regime{Unsupervised, SemiSupervised, Transfer},
	Settings: append([]setting.Setting{GraphCLCode}, contrastSettings...),
	ignores: func(s Setup) []setting.Setting {
		switch {
		case s.Regime == Transfer:
			return []setting.Setting{GraphCLCode}
		case s.Regime == Unsupervised && GraphCLCode.Of(s.Options):
			return []setting.Setting{Ratio} // the code has its own ratios
		}
		return nil
	},
	check: func(s Setup) error {
		if s.Regime == Unsupervised && GraphCLCode.Of(s.Options) && selfLoops.Of(s.Options) {
			return errors.New(
				"-self-loops would add a second self-loop to GraphCL's raw graphs: add -graphcl-code=false",
			)
		}
		return nil
	},
	new: newGraphCL,
}

// GraphCLCode follows GraphCL's code to the letter, for comparisons with its paper. Vectors of encoders so trained
// depend on the numbers of nodes, see [augment.Identity].
var GraphCLCode = setting.New(
	"graphcl-code",
	"use the augmentations, batch order and self-loops of GraphCL's code, whose self-loops, and thus vectors,\n"+
		"depend on how nodes are numbered;\n"+
		"false: the intended augmentations and reshuffled batches of the other methods",
	setting.Bool,
	true,
)

func newGraphCL(s Setup) (*Learner, error) {
	impl := augment.ImplIntended
	ratio := Ratio.Of(s.Options)
	order := augment.Reshuffle
	loops := false
	switch code := GraphCLCode.Of(s.Options); {
	case code && s.Regime == Unsupervised:
		impl = augment.ImplUnsupervised
		ratio = 0 // the ratios of its code
		order = augment.ShuffleOnce
		loops = true
	case code && s.Regime == SemiSupervised:
		impl = augment.ImplSemi
	}
	view, err := augment.ParsePolicy(Policy.Of(s.Options), impl, ratio)
	if err != nil {
		return nil, err
	}
	loader := s.loader(view, view)
	if s.Regime == Unsupervised {
		loader.Collator.Views[0] = augment.Identity{SelfLoops: loops}
	}
	loader.Order = order
	o := Objective(s.Options)
	o.Contrast.Variant = specmatch.CrossView
	o.Beta = specmatch.Beta{}
	o.Warmup = 0
	l, err := newContrastive(s, o, loader)
	if err != nil {
		return nil, err
	}
	l.SelfLoops = loops
	return l, nil
}
