package method

import (
	"errors"

	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// PolicyAuto is the value of [Policy] that selects the augmentations for the data set.
const PolicyAuto = "auto"

// The settings of augmented views.
var (
	Policy = setting.New(
		"policy",
		"`augmentations` to draw from for each graph and view: auto (depends on the data set), random2,\n"+
			"random3, random4, or a list of dropN, permE, maskN, subgraph",
		parsePolicy,
		PolicyAuto,
	)
	Ratio = setting.New(
		"ratio", "`fraction` of nodes or edges that an augmentation changes, above 0", parseRatio, 0.2,
	)
)

func parsePolicy(s string) (string, error) {
	if s == PolicyAuto {
		return s, nil
	}
	_, err := augment.ParsePolicy(s, augment.ImplIntended, 0)
	return s, err
}

// parseRatio accepts a fraction above 0. Package augment would replace 0 by the default ratio, which a
// user who asks for 0 does not expect.
func parseRatio(s string) (float64, error) {
	x, err := setting.Float(0, 1)(s)
	if err != nil || x == 0 {
		return 0, errors.New("want a number above 0 and up to 1; for no change use -policy none")
	}
	return x, nil
}

// View returns the augmentation for the setup's policy and ratio.
func (s Setup) View() (augment.Augmentation, error) {
	s, err := s.Complete()
	if err != nil {
		return nil, err
	}
	return augment.ParsePolicy(Policy.Of(s.Options), augment.ImplIntended, Ratio.Of(s.Options))
}

// twoViews returns a loader of batches of two views by the same augmentation.
func (s Setup) twoViews() (*augment.Loader, error) {
	view, err := s.View()
	if err != nil {
		return nil, err
	}
	return s.loader(view, view), nil
}
