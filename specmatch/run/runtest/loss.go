package runtest

import (
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// Loss is a group of flags of different types, as experiments have them.
type Loss struct {
	Methods    []string
	Beta       train.Beta
	Percentile float64
	Tau        float64
	Kappa      float64
}

// Register implements [cli.Group].
func (l *Loss) Register(f *cli.FlagSet) {
	cli.Var(f, &l.Methods, "method", setting.List(setting.OneOf(l.Methods...)), "`methods` to compare")
	f.Grows("method")
	cli.Var(f, &l.Beta, "beta", train.ParseBeta, "weight `β`")
	cli.Var(f, &l.Percentile, "p", setting.Float(0, 100), "`percentile`")
	cli.Var(f, &l.Tau, "tau", setting.Positive, "temperature `τ`")
	cli.Var(f, &l.Kappa, "kappa", setting.Positive, "sharpness `κ`")
}
