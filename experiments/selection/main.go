// Command selection measures the gain from selecting on the test folds. It trains encoders without labels,
// as experiment unsupervised does, and evaluates them every few epochs. It prints the accuracy of the last
// epoch next to rows marked "oracle", which select the epoch, and the setting if there are several, on the
// test folds: for all seeds, for each seed or for each fold. Rows "by validation" select inside the
// training set of each fold, which is honest.
//
//	go run ./experiments/selection
//	go run ./experiments/selection -dataset MUTAG,PROTEINS -data DIR -seeds 10
//	go run ./experiments/selection -dataset MUTAG -data DIR -beta-values 0,0.1,0.3,0.5,1,1.5 -p-values 60,80,100
//	go run ./experiments/selection -dataset NCI1 -data DIR -tau-values 0.2,0.05,0.1,0.5 -eval-every 20
//	go run ./experiments/selection -dataset MUTAG -data DIR -method infograph,mssgcl,cuco
package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/backend"
	_ "github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/eval"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

func main() { cli.Main(execute) }

const synopsis = `Measures the gain from selecting the epoch, or the setting, on the test folds: the
accuracy of the last epoch next to that of the best ones, which are marked "oracle".`

type experiment struct {
	paper.Experiment
	settings settings
}

type settings struct {
	methods []string
	every   int
	betas   []float64
	ps      []float64
	taus    []float64
}

// methods returns the methods that train for several epochs and have no β of their own.
func methods() []string {
	return slices.DeleteFunc(method.Names(method.Unsupervised), func(name string) bool {
		return method.Frozen(name) || name == method.SpecMatch
	})
}

func (s *settings) Register(f *cli.FlagSet) {
	cli.Var(f, &s.methods, "method", setting.List(setting.OneOf(methods()...)),
		"`methods`, with separate tables for each: "+strings.Join(methods(), ","))
	cli.Var(f, &s.every, "eval-every", setting.Int(1),
		"number of `epochs` between two evaluations; the last epoch is always evaluated")
	cli.Var(f, &s.betas, "beta-values", setting.List(setting.Float(0, math.MaxFloat64)),
		"`values` of the weight β of the Laplacian loss, for -method infonce, which has β = 0")
	f.Check(func() error {
		if !slices.Contains(s.methods, method.InfoNCE) && slices.Max(s.betas) > 0 {
			return cli.Usagef("-beta-values %v are for -method infonce, not for %s",
				s.betas, strings.Join(s.methods, ","))
		}
		return nil
	})
	cli.Var(f, &s.ps, "p-values", setting.List(setting.Float(0, 100)),
		"`values` of the percentile p, for each β above 0")
	cli.Var(f, &s.taus, "tau-values", setting.List(setting.Positive),
		"`values` of the temperature τ; all settings are compared with the first one")
}

type variant struct {
	name    string
	method  string
	options method.Options
}

// list returns the settings of a method: for every τ every β, and for every β above 0
// every p. Only InfoNCE has a β.
func (s *settings) list(name string) []variant {
	betas := []float64{0}
	if name == method.InfoNCE {
		betas = s.betas
	}
	var variants []variant
	for _, tau := range s.taus {
		suffix := ""
		if len(s.taus) > 1 {
			suffix = fmt.Sprintf(", τ = %v", tau)
		}
		for _, beta := range betas {
			ps := s.ps
			if beta == 0 {
				ps = ps[:1]
			}
			for _, p := range ps {
				// Without the β = 0 that would be all that InfoNCE says beside rows with a β.
				title := strings.TrimSuffix(method.Title(name), " (β = 0)")
				options := method.Options{"beta": train.Beta{Weight: beta}, "percentile": p, "tau": tau}
				x := variant{title + suffix, name, options}
				if beta > 0 {
					x.name = fmt.Sprintf("β = %v, p = %v", beta, p) + suffix
					x.method = method.SpecMatch
				}
				variants = append(variants, x)
			}
		}
	}
	return variants
}

func execute(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	x := &experiment{
		Experiment: paper.Unsupervised(5, training.Settings{OwnRecipes: true}, "graphcl", "linear", "graphcl-c10"),
		settings: settings{
			methods: []string{method.InfoNCE},
			every:   2,
			betas:   []float64{0},
			ps:      []float64{80},
			taus:    []float64{0.2},
		},
	}

	flags := cli.NewFlagSet("selection", synopsis, "", "-dataset MUTAG,PROTEINS -data DIR -seeds 10",
		"-dataset MUTAG -data DIR -beta-values 0,0.1,0.3,0.5,1,1.5 -p-values 60,80,100",
		"-dataset NCI1 -data DIR -tau-values 0.2,0.05,0.1,0.5 -eval-every 20",
		"-dataset MUTAG -data DIR -method infograph,mssgcl,cuco")
	flags.Add(&x.Data, &x.settings, &x.Recipe, &x.Protocol, &x.Engine, &x.Output)
	flags.Grows("method", "protocol", "beta-values", "p-values", "tau-values")
	x.Settings.RegisterRecipes(flags, method.Unsupervised)
	flags.Check(func() error {
		if x.Recipe.Epochs == 0 {
			return cli.Usagef("-epochs 0 leaves no epoch to select")
		}
		return nil
	})
	sets, err := x.Open(ctx, flags, args, stdout, stderr)
	if err != nil {
		return err
	}
	runs := x.runs(sets)
	plan, err := x.Plan(flags, plain(runs), true)
	if err != nil {
		return err
	}
	defer x.Dir.Close()
	scores := x.units(plan, runs)
	return plan.Run(ctx, stdout, stderr, func() error {
		return x.report(stdout, sets, runs, *scores)
	})
}

type settingRun struct {
	training.Run
	table   string // the method in whose tables it is
	setting variant
	epochs  []int // after which there is an evaluation
	scores  int   // its first in the list of all, by epoch and protocol
}

func plain(runs []*settingRun) []*training.Run {
	var plain []*training.Run
	for _, r := range runs {
		plain = append(plain, &r.Run)
	}
	return plain
}

// runs lists the trainings: of every setting on every data set with every seed.
func (x *experiment) runs(sets []*dataset.Dataset) []*settingRun {
	var runs []*settingRun
	for _, ds := range sets {
		for _, name := range x.settings.methods {
			for _, s := range x.settings.list(name) {
				for _, r := range x.Seeds(ds, s.method, s.options) {
					r.Setting = s.key()
					runs = append(runs, &settingRun{
						Run:     *r,
						table:   name,
						setting: s,
						epochs:  steps(x.settings.every, r.Epochs()),
					})
				}
			}
		}
	}
	return runs
}

// steps lists the multiples of a number below the last one, and that.
func steps(every, final int) []int {
	var list []int
	for e := every; e < final; e += every {
		list = append(list, e)
	}
	return append(list, final)
}

func (s variant) key() string {
	tau := s.options["tau"]
	if s.method != method.SpecMatch {
		return fmt.Sprintf("%s,tau=%v", s.method, tau)
	}
	return fmt.Sprintf("beta=%v,p=%v,tau=%v", s.options["beta"], s.options["percentile"], tau)
}

func (r *settingRun) snapshot(epochs int) *training.Run {
	s := r.Run
	s.File = fmt.Sprintf("weights/%s-%s-%d-epoch%d.safetensors",
		r.Dataset.Name, r.Setting, r.Seed, epochs)
	return &s
}

// units adds the two halves of the experiment to the plan: every run trains and saves
// its models, and every model is evaluated.
func (x *experiment) units(plan *run.Plan, runs []*settingRun) *[]eval.Score {
	var trainings []run.Unit[training.Trained]
	var scoring []run.Unit[eval.Score]
	for _, r := range runs {
		var files []string
		r.scores = len(scoring)
		for _, epoch := range r.epochs {
			files = append(files, r.snapshot(epoch).Weights(""))
			for _, protocol := range x.Protocol.Protocols {
				name := fmt.Sprintf("%s/epoch=%d/%s", r.Name(), epoch, protocol)
				scoring = append(scoring, x.Score(r.snapshot(epoch), name, protocol))
			}
		}
		compute := func(
			ctx context.Context, be backend.Backend, status run.Status,
		) (training.Trained, error) {
			return x.train(ctx, be, r, status)
		}
		trainings = append(trainings, run.Unit[training.Trained]{
			Name:   r.Name(),
			Files:  files,
			Engine: &x.Engine,
			Run:    compute,
		})
	}
	run.Add(plan, trainings)
	return run.Add(plan, scoring)
}

func (x *experiment) train(
	ctx context.Context, be backend.Backend, r *settingRun, status run.Status,
) (out training.Trained, err error) {
	l, err := r.Learner(be)
	if err != nil {
		return out, err
	}
	defer l.Close()
	out, err = r.Train(ctx, &saving{l, func(epochs int) error {
		if !slices.Contains(r.epochs, epochs) {
			return nil
		}
		return r.snapshot(epochs).Save(x.Dir.Path, l, epochs)
	}}, x.Dir, r.Name(), status)
	for _, epoch := range r.epochs { // after a method that stops by itself, as CuCo does, it is the same
		if err == nil && epoch > len(out.Epochs) {
			err = r.snapshot(epoch).Save(x.Dir.Path, l, len(out.Epochs))
		}
	}
	return out, err
}

// saving is a learner that is saved at the end of epochs. An epoch that a checkpoint
// holds as ended has been saved before.
type saving struct {
	*method.Learner
	save func(epochs int) error
}

func (s *saving) End(ctx context.Context, epoch int) (train.Metrics, error) {
	if err := s.save(epoch + 1); err != nil {
		return nil, err
	}
	return s.Learner.End(ctx, epoch)
}
