// Package pretrain is training without labels as the experiments do it: it sets a
// method of package method up from flags, keeps its progress, metrics and checkpoints
// in the run directory, and for the unsupervised regime measures the accuracy of a
// support vector machine on frozen embeddings.
//
// The mental model: a [Run] describes one training; [Run.Learner] sets the method
// up, [Run.Train] trains it, [Run.Evaluate] measures it, and [Experiment.Add] makes units of it all.
// Runs that share a data set and a seed share the folds and, where no recipe of its own
// gives a method another encoder, order of batches or views, the initial weights, the
// batches and the augmentations.
package pretrain

import (
	"errors"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// Settings are switches of the methods, of the loss and of the views.
type Settings struct {
	method.Options // but for the numbers of the objective, which [cli.Loss] has
	Policy         string
	Ratio          float64
	OwnRecipes     bool // methods with a [method.Recipe] train by it
	SelfLoops      bool // a GIN sees every node as its own neighbour too
}

// DefaultSettings are those of Table 1.
func DefaultSettings() Settings {
	return Settings{Options: method.DefaultOptions(method.Unsupervised), Policy: autoPolicy, Ratio: 0.2, OwnRecipes: true}
}

func (s *Settings) Register(f *cli.FlagSet) {
	o := &s.Objective
	cli.Var(f, &o.Match.Adjacency, "adjacency", specmatch.ParseAdjacency, "how a similarity becomes an edge of the batch's similarity `graph`: sigmoid, spread\n(sigmoid with κ in units of the spread of the similarities), hard, ste")
	f.BoolVar(&o.Match.RandomWalk, "random-walk", o.Match.RandomWalk, "compare random-walk Laplacians I - D⁻¹A instead of symmetric ones")
	f.BoolVar(&o.Match.ThresholdGradient, "theta-gradient", o.Match.ThresholdGradient, "let the gradient flow through the threshold θ")
	f.BoolVar(&o.OnH, "on-h", o.OnH, "apply L_G to the encoder's output h instead of the projection z")
	f.BoolVar(&o.Center, "center", o.Center, "subtract the batch's mean embedding before L_G")
	f.BoolVar(&o.Contrast.Sum, "sum", o.Contrast.Sum, "sum L_C over the batch, as the paper writes it, instead of taking its mean")
	cli.Var(f, &o.Beta.WarmupSteps, "warmup", setting.Int(0), "`steps` over which β grows linearly from 0")
	cli.Var(f, &s.Policy, "policy", policy, "`augmentations`, one drawn per graph and view: auto (by data set), random2, random3, random4,\nor a list of dropN, permE, maskN, subgraph")
	cli.Var(f, &s.Ratio, "ratio", share, "`share` of nodes or edges that an augmentation changes, above 0")
}

const autoPolicy = "auto"

func policy(s string) (string, error) {
	if s == autoPolicy {
		return s, nil
	}
	_, err := augment.ParsePolicy(s, augment.ImplIntended, 0)
	return s, err
}

// share accepts a share of nodes or edges above 0: package augment would replace 0
// by the usual ratio, which is not what a user who asks for 0 expects.
func share(s string) (float64, error) {
	x, err := setting.Float(0, 1)(s)
	if err != nil || x == 0 {
		return 0, errors.New("want a number above 0 and up to 1; for no change use -policy none")
	}
	return x, nil
}

// Note is the sentence of a table's caption on methods that train by recipes of their
// own, "" without any.
func (s *Settings) Note(r method.Regime, methods []string) string {
	own := method.Recipes(r, methods)
	if own == "" || !s.OwnRecipes {
		return ""
	}
	return " By recipes of their own: " + own + "."
}

// RegisterMorgan registers the flag of the method descriptors.
func (s *Settings) RegisterMorgan(f *cli.FlagSet) {
	cli.Var(f, &s.Morgan, "morgan", setting.Int(0), "`number` of folded counts of Morgan's environments that descriptors predicts as well; 0 is none")
}

// RegisterRecipes registers the switch between the methods' own recipes and one for all.
func (s *Settings) RegisterRecipes(f *cli.FlagSet, r method.Regime) {
	f.BoolVar(&s.OwnRecipes, "own-recipes", s.OwnRecipes, "methods whose papers train otherwise do so ("+method.Recipes(r, method.Names(r))+");\nfalse: all train alike")
	others := func() bool { return f.Given("epochs", "lr", "layers") }
	f.Small("with -epochs, -lr or -layers", others, map[string]string{"own-recipes": "false"})
}

// reads reports whether a method depends on a flag; true for one that package method does
// not know, such as training with labels alone.
func (s *Settings) reads(name, flag string, r method.Regime) bool {
	m, err := method.Get(name)
	if err != nil {
		return true
	}
	_, ok := m.Settings(method.Setup{Regime: r, Options: s.Options})[flag]
	return ok
}

// shared are the flags of [Settings] and [cli.Loss] that only some methods read.
var shared = []string{
	"adjacency", "beta", "center", "kappa", "morgan", "on-h", "p", "policy", "random-walk", "ratio", "sum", "tau", "theta-gradient", "warmup",
}

// RegisterMethods sets the options to the defaults of a regime and registers the flags
// of single methods, for experiments with a row for each of its methods. A flag that is
// given and that none of the chosen methods reads is a mistake.
func (s *Settings) RegisterMethods(f *cli.FlagSet, r method.Regime, chosen func() []string) {
	s.Options = method.DefaultOptions(r)
	f.Check(func() error {
		if s.RawStatistics && s.JOAO.ProbeMoves {
			return cli.Usagef("-raw-statistics keeps all else from moving the running statistics, and -joao-probe-moves wants that: want one of them")
		}
		names := chosen()
		for _, flag := range shared {
			if f.Given(flag) && len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return s.reads(name, flag, r) }) {
				return cli.Usagef("-%s has no effect on %s", flag, strings.Join(names, ", "))
			}
		}
		return nil
	})
	s.RegisterRecipes(f, r)
	if r == method.Transfer {
		s.RegisterMorgan(f)
	} else {
		f.BoolVar(&s.GraphCLCode, "graphcl-code", s.GraphCLCode, "the graphcl row takes augmentations, self-loops and batch order from GraphCL's code;\nfalse: the intended augmentations and reshuffled batches of the other rows")
	}
	cli.Var(f, &s.JOAO.Gamma, "joao-gamma", setting.Float(0, 1), "how strongly `γ` JOAO's distribution over augmentations is drawn to the uniform one")
	f.BoolVar(&s.JOAO.HeadsByEpoch, "joao-heads-by-epoch", s.JOAO.HeadsByEpoch, "JOAOv2's projection heads are drawn once an epoch for all graphs, as in its code;\nfalse: they are those of a graph's augmentations")
	f.BoolVar(&s.JOAO.ProbeMoves, "joao-probe-moves", s.JOAO.ProbeMoves, "measuring JOAO's augmentations moves the running statistics, as in its code")
	cli.Var(f, &s.SimGRACE.Eta, "simgrace-eta", setting.Positive, "strength `η` of SimGRACE's noise, in standard deviations of a weight matrix")
	f.BoolVar(&s.SimGRACE.PerturbedRows, "simgrace-perturbed-rows", s.SimGRACE.PerturbedRows, "SimGRACE's anchors are the perturbed encoder's, as in its unsupervised code; false: the clean one's")
	f.BoolVar(&s.RawStatistics, "raw-statistics", s.RawStatistics, "batch norm's running statistics, with which graphs are embedded, are those of raw graphs\nfor all methods, as they always are for MSSGCL")
	if r != method.Transfer {
		cli.Var(f, &s.MSSGCL.Global, "mssgcl-global", setting.Float(0, 1), "`share` of the nodes in MSSGCL's global views; 0, with -mssgcl-local 0: by -policy")
		cli.Var(f, &s.MSSGCL.Local, "mssgcl-local", setting.Float(0, 1), "`share` of the nodes in MSSGCL's local views")
		f.Check(func() error {
			if (s.MSSGCL.Global == 0) != (s.MSSGCL.Local == 0) {
				return cli.Usagef("-mssgcl-global %v -mssgcl-local %v: want both above 0, or neither", s.MSSGCL.Global, s.MSSGCL.Local)
			}
			return nil
		})
	}
	if r == method.Unsupervised {
		f.BoolVar(&s.SelfLoops, "self-loops", s.SelfLoops, "every node is its own neighbour as well, in raw graphs and in views, as in the graphs that the codes of\nJOAO, SimGRACE, MSSGCL and CuCo load")
		f.Check(func() error {
			if s.SelfLoops && s.GraphCLCode && slices.Contains(chosen(), method.GraphCL) {
				return cli.Usagef("-self-loops gives GraphCL's raw graphs a second one: want -graphcl-code=false as well")
			}
			return nil
		})
		f.BoolVar(&s.CuCo.Inverted, "cuco-inverted", s.CuCo.Inverted, "CuCo's view keeps a tenth of the nodes, as in its code")
	}
}
