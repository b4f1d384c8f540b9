package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/experiments/internal/rundir"
	"github.com/specmatch/specmatch/experiments/internal/rundirtest"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/augment"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/pretext"
	"github.com/specmatch/specmatch/tensor"
)

// tiny are the arguments of a run of seconds.
func tiny(out string, more ...string) []string {
	return append([]string{"-out", out, "-hidden", "8", "-layers", "2", "-corpus-size", "300", "-batch", "64", "-epochs", "2", "-finetune-epochs", "2", "-finetune-batch", "128", "-seeds", "2"}, more...)
}

func TestRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "run")
	var stdout, stderr bytes.Buffer
	if err := run(t.Context(), tiny(out), &stdout, &stderr); err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	seen := map[string]bool{}
	for _, r := range rundirtest.Results(t, out) {
		seen[r.Protocol+"/"+r.Method] = true
		if r.Metric != "roc-auc" || len(r.PerSeed) != 2 || !(r.Mean > 20 && r.Mean <= 100) {
			t.Errorf("row %+v", r)
		}
	}
	for _, p := range protocols {
		for _, m := range methods {
			if !seen[p+"/"+m] {
				t.Errorf("no row for %s, %s", p, m)
			}
		}
	}
	// Of every epoch of a contrastive method L_G is known, trained or not; of a
	// pretext task there is the loss alone.
	rows := rundirtest.Metrics(t, out)
	if len(rows) != 2*(len(methods)-1) {
		t.Errorf("%d rows of metrics", len(rows))
	}
	for _, row := range rows {
		contrastive := slices.Contains([]string{cli.GraphCL, cli.InfoNCE, cli.SpecMatch}, row["method"])
		for column, v := range row {
			switch column {
			case "unit", "epoch", "method", "loss":
				if v == "" || v == "NaN" {
					t.Errorf("%s is %q in %v", column, v, row)
				}
			default:
				if _, err := strconv.ParseFloat(v, 64); (err == nil && v != "NaN") != contrastive {
					t.Errorf("%s: %s is %q", row["unit"], column, v)
				}
			}
		}
		if trained := row["method"] == cli.SpecMatch; contrastive && (row["gradient_ratio"] != "0") != trained {
			t.Errorf("%s: ‖β∇L_G‖/‖∇L_C‖ is %s", row["unit"], row["gradient_ratio"])
		}
	}
	// Again: everything comes from the journal, and the tables are the same. How
	// often there are checkpoints does not matter.
	var again bytes.Buffer
	if err := run(t.Context(), tiny(out, "-checkpoint", "7m"), &again, &stderr); err != nil {
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
		if err := run(t.Context(), tiny(out, more...), io.Discard, &stderr); err != nil {
			t.Fatalf("%v\n%s", err, &stderr)
		}
		all := map[string][]float64{}
		for _, r := range rundirtest.Results(t, out) {
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
		"graphcl.safetensors":        {"-method", "graphcl"},
		"config.json":                {"-pretrained", dir + "-none"},
	} {
		args = tiny(filepath.Join(t.TempDir(), "run"), slices.Concat([]string{"-method", "specmatch", "-pretrained", from}, args)...)
		var usage *cli.UsageError
		if err := run(t.Context(), args, io.Discard, io.Discard); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
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
		"method":         {[]string{"-method", "magic"}, "magic"},
	} {
		t.Run(name, func(t *testing.T) {
			err := run(t.Context(), c.args, &bytes.Buffer{}, &bytes.Buffer{})
			var usage *cli.UsageError
			if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want a usage error with %q", err, c.want)
			}
		})
	}
	err := run(t.Context(), []string{"-dataset", "bace", "-data", t.TempDir(), "-method", "none"}, &bytes.Buffer{}, &bytes.Buffer{})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a set that is not there: %v", err)
	}
	// It is missed before the corpus is read, which may take long.
	err = run(t.Context(), []string{"-corpus", "none.smi", "-dataset", "bace", "-data", t.TempDir()}, &bytes.Buffer{}, &bytes.Buffer{})
	if !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "bace") {
		t.Errorf("neither a set nor a corpus: %v", err)
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
	other := t.TempDir()
	for name, text := range map[string]string{"net_edges.csv": edges.String(), "net_labels.csv": labels.String()} {
		for _, dir := range []string{dir, other} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	var stdout, stderr bytes.Buffer
	args := func(out, data string, more ...string) []string {
		return append(tiny(filepath.Join(dir, out), "-domain", "bio", "-corpus", "net", "-dataset", "net", "-data", data, "-batch", "16"), more...)
	}
	err := run(t.Context(), args("run", dir), &stdout, &stderr)
	if err != nil || !strings.Contains(stdout.String(), "SpecMatch-CL") {
		t.Errorf("%v\n%s%s", err, &stdout, &stderr)
	}
	// A network of the same name elsewhere may be another one.
	err = run(t.Context(), args("second", other, "-pretrained", filepath.Join(dir, "run")), &stdout, &stderr)
	if err == nil || !strings.Contains(err.Error(), "-data was") {
		t.Errorf("weights of a network in another folder: %v", err)
	}
	x := &experiment{source: source{Domain: domainBio, Corpus: "net"}, data: cli.Data{Dir: dir, Datasets: []string{"net"}}}
	d, err := x.openProteins()
	if err != nil {
		t.Fatal(err)
	}
	recipe := augment.Choice{augment.NodeDropping{Ratio: 0.2}, augment.Subgraph{Ratio: 0.2}, augment.EdgePerturbation{Ratio: 0.2}}
	if !reflect.DeepEqual(d.view, recipe) {
		t.Errorf("views %v, want %v", d.view, recipe)
	}
	be := cpu.New(tensor.Float32)
	x.domain, x.model, x.recipe.LR = d, model{Hidden: 8, Layers: 2}, 0.01
	context := x.stepper(be, methodContext).all.(*pretext.ContextPrediction)
	if depth := context.Context.(*gnn.BioGIN).Config.Layers; !context.First || context.Inner != 1 || context.Outer < 60 || context.Hops < 60 || depth != 3 {
		t.Errorf("context prediction over %d, %d and %d steps with %d layers", context.Hops, context.Inner, context.Outer, depth)
	}
	for tuned, want := range map[bool]int{false: 8, true: 16} { // the centre node's vector beside the mean
		if got := d.encoder(be, model{Hidden: 8, Layers: 2}, tuned, random.Stream(0, purposeInit, 0, 0)).Width(); got != want {
			t.Errorf("fine-tuning %v: width %d, want %d", tuned, got, want)
		}
	}
	bare := filepath.Join(dir, "bare_edges.csv")
	if err := os.WriteFile(bare, []byte("u,v\n0,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	err = run(t.Context(), []string{"-domain", "bio", "-corpus", "net", "-dataset", "bare", "-data", dir}, &stdout, &stderr)
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
	err := run(t.Context(), tiny(filepath.Join(dir, "run"), "-dataset", "bbbp", "-data", dir, "-method", "none"), io.Discard, io.Discard)
	if want := "bbbp: its 20 graphs are divided into 0 to train on, 0 to validate and 20 to test"; err == nil || !strings.Contains(err.Error(), want) {
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
	x := &experiment{source: source{Domain: domainChem, Methods: []string{methodNone}}, data: cli.Data{Dir: dir, Datasets: []string{"bbbp"}}}
	d, err := x.openDomain(t.Context(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if s := d.sets[0].split; len(s.Train) != 40 || len(s.Valid) != 5 || len(s.Test) != 5 {
		t.Errorf("parts of %d, %d and %d", len(s.Train), len(s.Valid), len(s.Test))
	}
}

// newExperiment is an experiment on toy molecules in a run directory of its own.
func newExperiment(t *testing.T) *experiment {
	t.Helper()
	x := &experiment{
		source: source{Domain: domainChem},
		loss:   cli.Loss{Beta: cli.Beta{Weight: 0.05}, P: 80, Tau: 0.1, Kappa: 10},
		recipe: cli.Recipe{Epochs: 3, Batch: 20, LR: 0.01, Seeds: 1},
		model:  model{Hidden: 8, Layers: 2, Dropout: 0.5},
		fine:   fine{Epochs: 2, Batch: 32, LR: 0.01},
		engine: cli.Engine{Backend: "cpu"},
	}
	var err error
	if x.domain, err = x.openDomain(t.Context(), &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	x.domain.corpus = x.domain.corpus[:130]
	x.dir = rundirtest.Open(t, "transfer")
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
	for _, method := range []string{cli.GraphCL, cli.SpecMatch} {
		var losses [2][]rundir.Float
		for k, engine := range []string{"cpu", "recording"} {
			x := newExperiment(t)
			x.engine.Backend, x.engine.Precision = engine, tensor.Float64
			before := captures.Load()
			out, err := x.pretrain(t.Context(), method, quiet)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range out.Epochs {
				losses[k] = append(losses[k], e.Loss, e.LossC)
			}
			if n := captures.Load() - before; (n > 0) != (engine == "recording") {
				t.Errorf("%s on %s: %d recordings", method, engine, n)
			}
		}
		if d := cmp.Diff(losses[0], losses[1], cmp.Comparer(func(a, b rundir.Float) bool { return math.Abs(float64(a-b)) < 1e-7 })); d != "" {
			t.Errorf("%s: losses (-cpu +recording): %s", method, d)
		}
	}
}

// TestResume: pre-training that was interrupted in the middle of an epoch and taken
// up again leaves the same weights and losses as without interruption.
func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		method, engine string
		beta           cli.Beta
	}{
		"SpecMatch-CL":                {cli.SpecMatch, "cpu", cli.Beta{Weight: 0.05}},
		"SpecMatch-CL, recorded":      {cli.SpecMatch, "recording", cli.Beta{Weight: 0.05}},
		"SpecMatch-CL with steered β": {cli.SpecMatch, "cpu", cli.Beta{Ratio: 0.5}},
		"masking":                     {methodMasking, "cpu", cli.Beta{}},
		"context":                     {methodContext, "cpu", cli.Beta{}},
	} {
		t.Run(name, func(t *testing.T) {
			method := c.method
			newExperiment := func(t *testing.T) *experiment {
				x := newExperiment(t)
				x.engine.Backend, x.loss.Beta = c.engine, c.beta
				return x
			}
			x := newExperiment(t)
			want, err := x.pretrain(t.Context(), method, quiet)
			if err != nil {
				t.Fatal(err)
			}
			weights, err := os.ReadFile(x.weights(method))
			if err != nil {
				t.Fatal(err)
			}

			x = newExperiment(t)
			x.source.Checkpoint = 1 << 62
			ctx, cancel := context.WithCancel(t.Context())
			calls := 0
			_, err = x.interrupt(ctx, method, func() {
				if calls++; calls == 10 { // of 7 an epoch
					cancel()
				}
			})
			if !errors.Is(err, context.Canceled) {
				t.Fatalf("interrupted: %v", err)
			}
			meta, err := nn.ReadMetadata(x.checkpoint(method))
			var at standing
			if err = errors.Join(err, json.Unmarshal([]byte(meta["standing"]), &at)); err != nil || len(at.Epochs) != 1 || at.Batches == 0 {
				t.Fatalf("checkpoint at %v, %v", meta, err)
			}
			got, err := x.pretrain(t.Context(), method, quiet)
			if err != nil {
				t.Fatal(err)
			}
			if at.Graphs != 10*x.recipe.Batch-10 || got.Seconds <= at.Seconds || !(got.GraphsPerSecond > 0) {
				t.Errorf("%d graphs in %v s before the interruption; %v s in all, %v graphs/s", at.Graphs, at.Seconds, got.Seconds, got.GraphsPerSecond)
			}
			if ended, err := x.pretrain(t.Context(), method, quiet); err != nil || fmt.Sprint(ended) != fmt.Sprint(got) {
				t.Errorf("a finished one, taken up: %v, %v, want %v", ended, err, got)
			}
			if was, is := fmt.Sprint(want.Epochs), fmt.Sprint(got.Epochs); was != is {
				t.Errorf("epochs\n%s, want\n%s", is, was)
			}
			again, err := os.ReadFile(x.weights(method))
			if err != nil || !bytes.Equal(weights, again) {
				t.Errorf("the weights differ (%v)", err)
			}
		})
	}
}

// TestSteered: a β that is to keep a ratio of gradients is measured in every epoch,
// not in the first step only.
func TestSteered(t *testing.T) {
	seen := map[float64]int{}
	for epochs := 1; epochs <= 3; epochs++ {
		x := newExperiment(t)
		x.loss.Beta, x.recipe.Epochs = cli.Beta{Ratio: 0.5}, epochs
		if _, err := x.pretrain(t.Context(), cli.SpecMatch, quiet); err != nil {
			t.Fatal(err)
		}
		meta, err := nn.ReadMetadata(x.checkpoint(cli.SpecMatch))
		var at standing
		if err = errors.Join(err, json.Unmarshal([]byte(meta["standing"]), &at)); err != nil {
			t.Fatal(err)
		}
		if before, ok := seen[at.Trainer.Beta]; ok || !(at.Trainer.Beta > 0) {
			t.Errorf("β is %v after %d epochs, and was after %d", at.Trainer.Beta, epochs, before)
		}
		seen[at.Trainer.Beta] = epochs
	}
}

// interrupt is pretrain with a function that is called before every step.
func (x *experiment) interrupt(ctx context.Context, method string, before func()) (pretrained, error) {
	x.beforeStep = before
	defer func() { x.beforeStep = nil }()
	return x.pretrain(ctx, method, quiet)
}

// TestViewsDiffer: the two views of a graph never share random state, as they do in
// the code that the published figures come from.
func TestViewsDiffer(t *testing.T) {
	x := newExperiment(t)
	recipe := augment.Choice{augment.NodeDropping{Ratio: 0.2}, augment.Subgraph{Ratio: 0.2}}
	c := augment.Collator{Views: x.stepper(cpu.New(tensor.Float32), cli.SpecMatch).views}
	if !reflect.DeepEqual(c.Views, []augment.Augmentation{recipe, recipe}) {
		t.Errorf("views %v, want %v twice", c.Views, recipe)
	}
	samples := make([]int, len(x.domain.corpus))
	for i := range samples {
		samples[i] = i
	}
	var first, second graph.Batch
	c.Collate(&first, x.domain.corpus, samples, 0)
	c.Collate(&second, x.domain.corpus, samples, 1)
	same, repeated := 0, 0
	nodes := func(b *graph.Batch, g int) []int32 { return b.X.Category[b.GraphPtr[g]:b.GraphPtr[g+1]] }
	n := len(samples)
	for g := range n {
		if slices.Equal(nodes(&first, g), nodes(&first, n+g)) {
			same++
		}
		if slices.Equal(nodes(&first, g), nodes(&second, g)) {
			repeated++
		}
	}
	if same > n/2 || repeated > n/2 {
		t.Errorf("of %d graphs %d have two equal views and %d the same view in two epochs", n, same, repeated)
	}
}

// TestLoss compares the loss with its definition, with labels missing.
func TestLoss(t *testing.T) {
	be := cpu.New(tensor.Float64)
	x := newExperiment(t)
	set := x.domain.sets[0]
	set.labels[0], set.labels[5] = 0, 0
	e := x.domain.encoder(be, x.model, false, random.Stream(1, purposeInit, 0, 0))
	p := &predictor{Encoder: e, be: be, tape: autodiff.NewTape(be), output: nn.NewLinear(be, "predictor", e.Width(), 2, nn.KaimingUniform, random.Stream(1, purposeHead, 0, 0))}
	samples := []int{0, 1, 2, 3}
	batch := func() *graph.Batch { return graph.Collate(set.graphs[:4]...) }
	got := p.loss(batch(), set, samples).Float()
	logits := p.output.Forward(p.Forward(gnn.NewBatch(p.tape, batch()), nn.Train)).Data()
	want, count := 0.0, 0.0
	for k, s := range logits {
		switch set.labels[k] {
		case 1:
			want += math.Log1p(math.Exp(-s))
			count++
		case -1:
			want += math.Log1p(math.Exp(s))
			count++
		}
	}
	if want /= count; count != 6 || math.Abs(got-want) > 1e-12 {
		t.Errorf("loss %v over %v labels, want %v over 6", got, count, want)
	}
	none := &taskSet{graphs: set.graphs, tasks: 2, labels: make([]int8, len(set.labels))}
	if p.loss(batch(), none, samples) != nil {
		t.Error("a loss without labels")
	}
}

func TestChoose(t *testing.T) {
	nan := rundir.Float(math.NaN())
	r := tuned{Valid: []rundir.Float{nan, 60, 80, 80, 70}, Test: []rundir.Float{1, 2, 3, 4, 5}}
	if auc, epoch := r.choose(protocolLast); auc != 5 || epoch != 5 {
		t.Errorf("last: %v at %d", auc, epoch)
	}
	if auc, epoch := r.choose(protocolBest); auc != 3 || epoch != 3 {
		t.Errorf("best: %v at %d", auc, epoch)
	}
}
