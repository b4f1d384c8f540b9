package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/run/training"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// tiny are the arguments of a run of seconds.
func tiny(out string, more ...string) []string {
	return append([]string{"-out", out, "-hidden", "8", "-layers", "2", "-corpus-size", "300", "-batch", "64", "-epochs", "2", "-finetune-epochs", "2", "-finetune-batch", "128", "-seeds", "2"}, more...)
}

func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	var stdout, stderr bytes.Buffer
	if err := execute(t.Context(), tiny(out), &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	seen := map[string]bool{}
	for _, r := range runtest.Results(t, out) {
		seen[r.Protocol+"/"+r.Method] = true
		if r.Metric != "roc-auc" || len(r.PerSeed) != 2 || !(r.Mean > 20 && r.Mean <= 100) {
			t.Errorf("row %+v", r)
		}
	}
	for _, p := range protocols {
		for _, m := range tableRows {
			if !seen[p+"/"+m] {
				t.Errorf("no row for %s, %s", p, m)
			}
		}
	}
	// Of every epoch of a contrastive method L_G is known, trained or not; of a
	// pretext task there is the loss alone.
	rows := runtest.Metrics(t, out)
	if len(rows) != 2*(len(tableRows)-1) {
		t.Errorf("%d rows of metrics", len(rows))
	}
	for _, row := range rows {
		contrastive := slices.Contains([]string{method.GraphCL, method.InfoNCE, method.SpecMatch}, row["method"])
		for column, v := range row {
			switch column {
			case "unit", "epoch", "dataset", "method", "seed", "loss":
				if v == "" || v == "NaN" {
					t.Errorf("%s is %q in %v", column, v, row)
				}
			default:
				if strings.HasPrefix(column, "p_") { // JOAO's distribution
					if strings.HasPrefix(row["method"], "joao") != (v != "") {
						t.Errorf("%s: %s is %q", row["unit"], column, v)
					}
					continue
				}
				if _, err := strconv.ParseFloat(v, 64); (err == nil && v != "NaN") != contrastive {
					t.Errorf("%s: %s is %q", row["unit"], column, v)
				}
			}
		}
		if trained := row["method"] == method.SpecMatch; contrastive && (row["gradient_ratio"] != "0") != trained {
			t.Errorf("%s: ‖β∇L_G‖/‖∇L_C‖ is %s", row["unit"], row["gradient_ratio"])
		}
	}
	runtest.Files(t, out, "plots/augmentations.svg")
	// Again: everything comes from the journal, and the tables are the same.
	var again bytes.Buffer
	if err := execute(t.Context(), tiny(out), &again, &stderr); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(stdout.String(), again.String()); d != "" {
		t.Errorf("the second report differs:\n%s", d)
	}
}

// TestPretrained: a run with the weights of another ends where that one did, and
// one that those weights are not for is refused.
func TestPretrained(t *testing.T) {
	from, dir := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "run")
	perSeed := func(out string, more ...string) map[string][]float64 {
		t.Helper()
		var stderr bytes.Buffer
		if err := execute(t.Context(), tiny(out, more...), io.Discard, &stderr); err != nil {
			t.Fatalf("%v\n%s", err, &stderr)
		}
		all := map[string][]float64{}
		for _, r := range runtest.Results(t, out) {
			all[r.Protocol+"/"+r.Method] = r.PerSeed
		}
		return all
	}
	want := perSeed(from, "-method", "none,specmatch")
	if d := cmp.Diff(want, perSeed(dir, "-method", "none,specmatch", "-pretrained", from, "-data", t.TempDir())); d != "" {
		t.Error(d)
	}
	if _, err := os.Stat(filepath.Join(dir, "weights")); err == nil {
		t.Error("it has pre-trained all the same")
	}
	for want, args := range map[string][]string{
		"-epochs was 2, now it is 3": {"-epochs", "3"},
		"graphcl-0.safetensors":      {"-method", "graphcl"},
		"config.json":                {"-pretrained", dir + "-none"},
	} {
		args = tiny(filepath.Join(t.TempDir(), "run"), slices.Concat([]string{"-method", "specmatch", "-pretrained", from}, args)...)
		var usage *cli.UsageError
		if err := execute(t.Context(), args, io.Discard, io.Discard); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %s", args, err, want)
		}
	}
}

func TestUsage(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no data":        {[]string{"-dataset", "bace"}, "-data"},
		"no corpus":      {[]string{"-dataset", "bace", "-data", t.TempDir()}, "-corpus is needed"},
		"bio, no data":   {[]string{"-domain", "bio"}, "-domain bio needs -data"},
		"bio, no corpus": {[]string{"-domain", "bio", "-data", t.TempDir()}, "-corpus"},
		"bio, molecules": {[]string{"-domain", "bio", "-data", t.TempDir(), "-corpus", "net", "-method", "descriptors"}, "-method descriptors is for molecules"},
		"method":         {[]string{"-method", "magic"}, "magic"},
	} {
		t.Run(name, func(t *testing.T) {
			err := execute(t.Context(), c.args, &bytes.Buffer{}, &bytes.Buffer{})
			var usage *cli.UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a usage error with %q", err, c.want)
			}
		})
	}
	err := execute(t.Context(), []string{"-dataset", "bace", "-data", t.TempDir(), "-method", "none"}, &bytes.Buffer{}, &bytes.Buffer{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a set that is not there: %v", err)
	}
	// It is missed before the corpus is read, which may take long.
	err = execute(t.Context(), []string{"-corpus", "none.smi", "-dataset", "bace", "-data", t.TempDir()}, &bytes.Buffer{}, &bytes.Buffer{})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "bace") {
		t.Errorf("neither a set nor a corpus: %v", err)
	}
}

// TestSizes: what no memory holds is refused before anything is made, and the flag
// named; Ctrl-C is not needed.
func TestSizes(t *testing.T) {
	for args, want := range map[string]string{
		"-method none -hidden 1000000000000": "-hidden 1000000000000 -layers 3: ",
		"-hidden 1000000":                    "-hidden 1000000 -layers 3: training needs about ",
		"-layers 1000000000":                 "-hidden 32 -layers 1000000000: ",
		"-layers 20000 -hidden 10000":        "-hidden 10000 -layers 20000: training needs about ",
	} {
		var usage *cli.UsageError
		if err := execute(t.Context(), append([]string{"-out", filepath.Join(t.TempDir(), "run")}, strings.Fields(args)...), io.Discard, io.Discard); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
	var help bytes.Buffer
	if err := execute(t.Context(), []string{"-h"}, &help, io.Discard); !errors.Is(err, flag.ErrHelp) || !strings.Contains(help.String(), "default: 300; without -corpus and -dataset 32\n") {
		t.Errorf("-h: %v\n%s", err, help.String())
	}
}

// TestProteins runs the whole on a made-up network.
func TestProteins(t *testing.T) {
	dir := t.TempDir()
	var edges, labels strings.Builder
	edges.WriteString("u,v,a,b\n")
	labels.WriteString("node,t0,t1\n")
	for i := range 60 {
		for _, j := range []int{(i + 1) % 60, (i + 7) % 60} {
			edges.WriteString(strings.Join([]string{strconv.Itoa(min(i, j)), strconv.Itoa(max(i, j)), strconv.Itoa(i % 2), strconv.Itoa(j % 2)}, ",") + "\n")
		}
		labels.WriteString(strings.Join([]string{strconv.Itoa(i), strconv.Itoa(i % 2), strconv.Itoa(i / 3 % 2)}, ",") + "\n")
	}
	moved, other := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"net_edges.csv": edges.String(), "net_labels.csv": labels.String()} {
		for dir, more := range map[string]string{dir: "", moved: "", other: map[string]string{"net_edges.csv": "0,30,1,1\n"}[name]} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text+more), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var stdout, stderr bytes.Buffer
	args := func(out, data string, more ...string) []string {
		return append(tiny(filepath.Join(dir, out), "-domain", "bio", "-corpus", "net", "-dataset", "net", "-data", data, "-batch", "16"), more...)
	}
	err := execute(t.Context(), args("run", dir), &stdout, &stderr)
	if err != nil || !strings.Contains(stdout.String(), "SpecMatch-CL") {
		t.Errorf("%v\n%s%s", err, &stdout, &stderr)
	}
	// The network may lie elsewhere, but not be another one.
	second := args("second", moved, "-pretrained", filepath.Join(dir, "run"))
	if err := execute(t.Context(), second, &stdout, &stderr); err != nil {
		t.Errorf("weights of a network in another folder: %v", err)
	}
	for _, out := range []string{"second", "third"} {
		err := execute(t.Context(), args(out, other, "-pretrained", filepath.Join(dir, "run")), &stdout, &stderr)
		if err == nil || !strings.Contains(err.Error(), "net_edges.csv has changed") {
			t.Errorf("%s: weights of another network: %v", out, err)
		}
	}
	x := &experiment{source: source{Domain: domainBio, Corpus: "net"}}
	x.Data = cli.Data{Dir: dir, Datasets: []string{"net"}}
	d, err := x.openProteins(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	x.domain, x.model = d, architecture{Hidden: 8, Layers: 2}
	x.checkViews(t, augment.NodeDropping{Ratio: 0.2}, augment.Subgraph{Ratio: 0.2}, augment.EdgePerturbation{Ratio: 0.2})
	// While fine-tuning there is the centre node's vector beside the mean.
	be := cpu.New(tensor.Float32)
	alone, err := x.pretraining(method.SpecMatch).NewEncoder(be)
	if err != nil {
		t.Fatal(err)
	}
	tuned, err := x.learner(be, &tuning{set: d.sets[0], method: paper.None})
	if err != nil {
		t.Fatal(err)
	}
	if before, after := alone.Width(), parameters(tuned)["predictor.weight"].Value.Rows; before != 8 || after != 16 {
		t.Errorf("embeddings of width %d to pre-train and %d to fine-tune, want 8 and 16", before, after)
	}
	bare := filepath.Join(dir, "bare_edges.csv")
	if err := os.WriteFile(bare, []byte("u,v\n0,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err = execute(t.Context(), []string{"-domain", "bio", "-corpus", "net", "-dataset", "bare", "-data", dir}, &stdout, &stderr)
	if err == nil || !strings.Contains(err.Error(), "no labels") {
		t.Errorf("a network without labels: %v", err)
	}
}

// TestEmptyPart: where all molecules share a scaffold all of them are in the test
// part. A loader without samples visits every graph, so that nothing but the error
// keeps fine-tuning from the test molecules.
func TestEmptyPart(t *testing.T) {
	dir := t.TempDir()
	var table strings.Builder
	table.WriteString("smiles,p_np\n")
	for n := range 20 {
		table.WriteString(strings.Repeat("C", n+1) + "," + strconv.Itoa(n%2) + "\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "bbbp.csv"), []byte(table.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	err := execute(t.Context(), tiny(filepath.Join(dir, "run"), "-dataset", "bbbp", "-data", dir, "-method", "none"), io.Discard, io.Discard)
	if want := "bbbp: its 20 graphs are split into 0 for training, 0 for validation and 20 for testing"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("one scaffold: %v, want %s", err, want)
	}
}

// TestSplit: four fifths of the molecules of a file to train on, a tenth to
// validate. Here every molecule has a scaffold of its own, a ring.
func TestSplit(t *testing.T) {
	dir := t.TempDir()
	var table strings.Builder
	table.WriteString("smiles,p_np\n")
	for n := range 50 {
		table.WriteString("C1C" + strings.Repeat("C", n+1) + "1," + strconv.Itoa(n%2) + "\n")
	}
	if err := os.WriteFile(filepath.Join(dir, "bbbp.csv"), []byte(table.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	x := &experiment{source: source{Domain: domainChem}}
	x.Methods.Names = []string{paper.None}
	x.Data = cli.Data{Dir: dir, Datasets: []string{"bbbp"}}
	d, err := x.openDomain(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	flags := cli.NewFlagSet("transfer", "", "")
	if err := x.noteInputs(t.Context(), flags); err != nil || flags.Inputs()["bbbp.csv"] != fmt.Sprintf("%x", sha256.Sum256([]byte(table.String()))) || len(flags.Inputs()) != 1 {
		t.Errorf("inputs %v, %v", flags.Inputs(), err)
	}
	// What is fine-tuned on is not what weights were trained on.
	x.source.Corpus = filepath.Join(dir, "bbbp.csv")
	if err := x.noteInputs(t.Context(), flags); err != nil || len(x.corpusSums) != 1 || x.corpusSums["corpus"] != flags.Inputs()["bbbp.csv"] {
		t.Errorf("sums of the corpus %v, %v", x.corpusSums, err)
	}
	if p := x.pretraining("graphcl"); !maps.Equal(p.Dataset.Sums, x.corpusSums) {
		t.Errorf("a model would say %v", p.Dataset.Sums)
	}
	if s := d.sets[0].split; len(s.Train) != 40 || len(s.Valid) != 5 || len(s.Test) != 5 {
		t.Errorf("parts of %d, %d and %d", len(s.Train), len(s.Valid), len(s.Test))
	}
}

// newExperiment is an experiment on toy molecules in a run directory of its own.
func newExperiment(t *testing.T) *experiment {
	t.Helper()
	x := &experiment{
		Experiment: paper.Experiment{
			Recipe:   cli.Recipe{Epochs: 3, Batch: 20, LR: 0.01, Seeds: 1},
			Engine:   cli.Engine{Backend: "cpu"},
			Settings: training.Settings{Options: method.Options{"beta": train.Beta{Weight: 0.05}, "tau": 0.1}},
		},
		source: source{Domain: domainChem},
		model:  architecture{Hidden: 8, Layers: 2, Dropout: 0.5},
		fine:   paper.Finetuning{Epochs: 2, Batch: 32, LR: 0.01},
	}
	var err error
	if x.domain, err = x.openDomain(t.Context(), &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	x.domain.corpus, x.domain.smiles = x.domain.corpus[:130], x.domain.smiles[:130]
	x.Dir = runtest.Open(t, "transfer")
	return x
}

// recording is an engine whose steps are recorded, as a GPU's are, and counted.
type recording struct{ backend.Backend }

var captures atomic.Int32

func (recording) Records() bool { return true }

func (r recording) Capture(step func()) (backend.Step, error) {
	captures.Add(1)
	return r.Backend.Capture(step)
}

func init() {
	backend.Register("recording", func(p tensor.Precision) (backend.Backend, error) { return recording{cpu.New(p)}, nil })
}

// TestRecording: on an engine that records, contrastive pre-training has the
// losses that it has elsewhere, all of them.
func TestRecording(t *testing.T) {
	for _, name := range []string{method.GraphCL, method.SpecMatch} {
		var losses [2][]float64
		for k, engine := range []string{"cpu", "recording"} {
			x := newExperiment(t)
			x.Engine.Backend, x.Engine.Precision = engine, tensor.Float64
			before := captures.Load()
			out, err := x.pretrain(t.Context(), name, quiet)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range out.Epochs {
				losses[k] = append(losses[k], m.Get("loss"), m.Get("loss_c"))
			}
			if n := captures.Load() - before; (n > 0) != (engine == "recording") {
				t.Errorf("%s on %s: %d recordings", name, engine, n)
			}
		}
		if d := cmp.Diff(losses[0], losses[1], cmpopts.EquateApprox(0, 1e-7)); d != "" {
			t.Errorf("%s: losses (-cpu +recording): %s", name, d)
		}
	}
}

// TestResume: pre-training that was interrupted in the middle of an epoch and taken
// up again leaves the same weights and losses as without interruption.
func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		method, engine string
		beta           train.Beta
	}{
		"SpecMatch-CL":                {method.SpecMatch, "cpu", train.Beta{Weight: 0.05}},
		"SpecMatch-CL, recorded":      {method.SpecMatch, "recording", train.Beta{Weight: 0.05}},
		"SpecMatch-CL with steered β": {method.SpecMatch, "cpu", train.Beta{Ratio: 0.5}},
		"masking":                     {"attrmasking", "cpu", train.Beta{}},
		"context":                     {"contextpred", "cpu", train.Beta{}},
	} {
		t.Run(name, func(t *testing.T) {
			newExperiment := func() *experiment {
				x := newExperiment(t)
				x.Engine.Backend = c.engine
				x.Settings.Options["beta"] = c.beta
				return x
			}
			weights := func(x *experiment) []byte {
				data, err := os.ReadFile(x.pretraining(c.method).Weights(x.Dir.Path))
				if err != nil {
					t.Fatal(err)
				}
				return data
			}
			whole := newExperiment()
			want, err := whole.pretrain(t.Context(), c.method, quiet)
			if err != nil {
				t.Fatal(err)
			}
			// A start says something after its first step, and is then cancelled.
			x := newExperiment()
			interrupted, seconds := 0, 0.0
			var got training.Trained
			for { // each start takes a step of 21
				if interrupted > 21 {
					t.Fatal("a start does not go on where the one before has ended")
				}
				ctx, cancel := context.WithCancel(t.Context())
				got, err = x.pretrain(ctx, c.method, func(string, ...any) { cancel() })
				cancel()
				if got.TrainSeconds <= seconds {
					t.Errorf("%v s in all, and %v before the interruption", got.TrainSeconds, seconds)
				}
				if seconds = got.TrainSeconds; !errors.Is(err, context.Canceled) {
					break
				}
				interrupted++
			}
			if err != nil || interrupted < 2 {
				t.Fatalf("%d interruptions, %v", interrupted, err)
			}
			if graphs := float64(got.GraphsPerSecond) * got.TrainSeconds; math.Abs(graphs-3*130) > 1e-6 {
				t.Errorf("trained on %v graphs, want 3 epochs of 130", graphs)
			}
			if d := cmp.Diff(want.Epochs, got.Epochs); d != "" {
				t.Errorf("epochs after %d interruptions:\n%s", interrupted, d)
			}
			if !bytes.Equal(weights(whole), weights(x)) {
				t.Error("the weights differ")
			}
			if ended, err := x.pretrain(t.Context(), c.method, quiet); err != nil || !cmp.Equal(ended, got) {
				t.Errorf("a finished one, taken up: %v, %v, want %v", ended, err, got)
			}
		})
	}
}

// TestSteered: a β that is to keep a ratio of gradients is measured in every epoch,
// not in the first step only.
func TestSteered(t *testing.T) {
	x := newExperiment(t)
	x.Settings.Options["beta"] = train.Beta{Ratio: 0.5}
	out, err := x.pretrain(t.Context(), method.SpecMatch, quiet)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[float64]int{}
	for e, m := range out.Epochs {
		if before, ok := seen[m["beta"]]; ok || !(m["beta"] > 0) {
			t.Errorf("β is %v in epoch %d, and was in epoch %d", m["beta"], e+1, before)
		}
		seen[m["beta"]] = e + 1
	}
}

// checkViews fails the test unless two views of the corpus are pre-trained on, each
// by one of the augmentations.
func (x *experiment) checkViews(t *testing.T, want ...augment.Augmentation) {
	t.Helper()
	r := x.pretraining(method.SpecMatch)
	view, err := r.Setup(nil).View()
	if err != nil || !reflect.DeepEqual(view, augment.Choice(want)) {
		t.Errorf("views %v, %v, want %v", view, err, want)
	}
	x.Recipe = cli.Recipe{Batch: 20, LR: 0.01}
	l, err := r.Learner(cpu.New(tensor.Float32))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for samples, b := range l.Epoch(t.Context(), 0) {
		if b.Views() != 2 || b.Graphs() != 2*len(samples) {
			t.Fatalf("%d views with %d graphs of %d", b.Views(), b.Graphs(), len(samples))
		}
	}
}

// TestViews: molecules are augmented as the literature does.
func TestViews(t *testing.T) {
	newExperiment(t).checkViews(t, augment.NodeDropping{Ratio: 0.2}, augment.Subgraph{Ratio: 0.2})
}

func TestChoose(t *testing.T) {
	r := &tuning{}
	valid := []float64{math.NaN(), 60, 80, 80, 70} // the first has none
	for e, v := range valid {
		m := train.Metrics{testAUC: float64(e + 1)}
		if e > 0 {
			m[validAUC] = v
		}
		r.result.Epochs = append(r.result.Epochs, m)
	}
	if auc := r.choose(protocolLast); auc != 5 {
		t.Errorf("last: %v", auc)
	}
	if auc := r.choose(protocolBest); auc != 3 {
		t.Errorf("best: %v", auc)
	}
	for e, m := range r.result.Epochs { // no validation task has both classes
		delete(m, validAUC)
		m[validLoss] = []float64{0.7, 0.6, 0.5, 0.4, 0.9}[e]
	}
	if auc := r.choose(protocolBest); auc != 4 {
		t.Errorf("best by the loss: %v", auc)
	}
}
