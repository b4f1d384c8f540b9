package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

func TestDefaults(t *testing.T) {
	c, _, err := runtest.ParseExperiment()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"untrained", "graphcl", "infonce", "specmatch"}; !reflect.DeepEqual(c.Loss.Methods, want) {
		t.Errorf("methods %q, want %q", c.Loss.Methods, want)
	}
	if c.Engine != (cli.Engine{Backend: "cpu", Precision: tensor.Float32}) {
		t.Errorf("engine %v", c.Engine)
	}
	if c.Data.Datasets != nil || c.Recipe.Epochs != 20 || c.Loss.Beta.Weight != 1 {
		t.Errorf("defaults changed: %+v", c)
	}
}

func TestValues(t *testing.T) {
	c, _, err := runtest.ParseExperiment(strings.Fields("-dataset MUTAG,NCI1 -data /d -method infonce,specmatch -beta auto:0.2 -p 50 -tau 0.5 -kappa 5" +
		" -epochs 0 -batch 512 -lr 1e-3 -seeds 1 -first-seed 7 -protocol linear,rbf -folds 5 -backend cuda -precision float64 -out o")...)
	if err != nil {
		t.Fatal(err)
	}
	want := &runtest.Experiment{
		Data:     cli.Data{Datasets: []string{"MUTAG", "NCI1"}, Dir: "/d"},
		Loss:     runtest.Loss{Methods: []string{"infonce", "specmatch"}, Beta: train.Beta{Ratio: 0.2}, Percentile: 50, Tau: 0.5, Kappa: 5},
		Recipe:   cli.Recipe{Epochs: 0, Batch: 512, LR: 0.001, Seeds: 1, FirstSeed: 7},
		Protocol: cli.Protocol{Protocols: []string{"linear", "rbf"}, Choices: []string{"rbf", "linear"}, Folds: 5},
		Engine:   cli.Engine{Backend: "cuda", Precision: tensor.Float64},
		Output:   run.Output{Dir: "o", Every: 20 * time.Second},
	}
	equal := gocmp.Comparer(func(a, b cli.Data) bool { return slices.Equal(a.Datasets, b.Datasets) && a.Dir == b.Dir })
	if d := gocmp.Diff(want, c, equal); d != "" {
		t.Error(d)
	}
}

// Every message names flag and value and says what is wanted.
func TestRejected(t *testing.T) {
	for _, tt := range []struct{ flag, value, want string }{
		{"dataset", "", `want a name, not an empty string`},
		{"dataset", "MUTAG,", `"": want a name`},
		{"dataset", "MUTAG,NCI1,MUTAG", `"MUTAG" is listed twice`},
		{"data", " ", `want a name`},
		{"method", "simclr", `"simclr": want untrained, graphcl, infonce or specmatch`},
		{"beta", "-1", `want a number of at least 0, or auto:R`},
		{"beta", "NaN", `want a number of at least 0`},
		{"beta", "auto:0", `with R above 0`},
		{"beta", "auto", `with R above 0`},
		{"p", "120", `want a number from 0 to 100`},
		{"p", "NaN", `want a number from 0 to 100`},
		{"tau", "0", `want a number above 0`},
		{"kappa", "+Inf", `want a number above 0`},
		{"epochs", "1.5", `want a whole number of at least 0`},
		{"batch", "1", `want a whole number of at least 2`},
		{"lr", "fast", `want a number above 0`},
		{"seeds", "-1", `want a whole number of at least 1`},
		{"protocol", "svm", `"svm": want rbf or linear`},
		{"backend", "tpu", `want cpu, cuda or cuda-3xtf32; did you mean "cpu"?`},
		{"precision", "float16", `want float32 or float64`},
		{"out", "", `want a name`},
	} {
		t.Run(tt.flag+"="+tt.value, func(t *testing.T) {
			_, _, err := runtest.ParseExperiment("-"+tt.flag, tt.value)
			var usage *cli.UsageError
			if !errors.As(err, &usage) {
				t.Fatalf("got %v, want a UsageError", err)
			}
			prefix := fmt.Sprintf("invalid value %q for flag -%s: ", tt.value, tt.flag)
			if msg := err.Error(); !strings.HasPrefix(msg, prefix) || !strings.Contains(msg, tt.want) {
				t.Errorf("got %s\nwant %s…%s…", msg, prefix, tt.want)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv("SPECMATCH_BACKEND", "cuda")
	t.Setenv("SPECMATCH_PRECISION", "float64")
	c, _, err := runtest.ParseExperiment()
	if err != nil || c.Engine != (cli.Engine{Backend: "cuda", Precision: tensor.Float64}) {
		t.Errorf("from the environment: %v, %v", c.Engine, err)
	}
	c, _, err = runtest.ParseExperiment("-backend", "cpu")
	if err != nil || c.Engine != (cli.Engine{Backend: "cpu", Precision: tensor.Float64}) {
		t.Errorf("flag above environment: %v, %v", c.Engine, err)
	}

	t.Setenv("SPECMATCH_BACKEND", "tpu")
	_, _, err = runtest.ParseExperiment()
	if want := `invalid value "tpu" for environment variable SPECMATCH_BACKEND: want cpu, cuda or cuda-3xtf32; did you mean "cpu"?`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, _, err = runtest.ParseExperiment("-backend", "cpu"); err != nil {
		t.Errorf("the flag hides a bad variable, but: %v", err)
	}
	t.Setenv("SPECMATCH_BACKEND", "")
	if c, _, err = runtest.ParseExperiment(); err != nil || c.Engine.Backend != "cpu" {
		t.Errorf("an empty variable is none, but: %v, %v", c.Engine, err)
	}
}

// TestRoundedProducts: -tf32 names an engine of cuda and -bf16 one of cpu; elsewhere they
// are refused.
func TestRoundedProducts(t *testing.T) {
	c, _, err := runtest.ParseExperiment("-backend", "cuda", "-tf32")
	if err != nil || c.Engine.Name() != "cuda-tf32" {
		t.Errorf("engine %v, %v", c.Engine, err)
	}
	if c, _, err := runtest.ParseExperiment("-bf16"); err != nil || c.Engine.Name() != "cpu-bf16" {
		t.Errorf("engine %v, %v", c.Engine, err)
	}
	if _, err := c.Engine.Open(); err == nil || slices.Contains(backend.Names(), "cuda") == strings.Contains(err.Error(), "rebuild with -tags cuda") {
		t.Errorf("the engine opens with %v", err)
	}
	for args, want := range map[string]string{
		"-tf32":                                  "-tf32 needs -backend cuda, not cpu",
		"-tf32 -backend cuda -precision float64": "-tf32 needs -precision float32",
		"-bf16 -backend cuda":                    "-bf16 needs -backend cpu, not cuda",
		"-bf16 -precision float64":               "-bf16 needs -precision float32",
	} {
		var usage *cli.UsageError
		if _, _, err := runtest.ParseExperiment(strings.Fields(args)...); !errors.As(err, &usage) || err.Error() != want {
			t.Errorf("%s: %v, want %s", args, err, want)
		}
	}
}

func TestHelp(t *testing.T) {
	_, stdout, err := runtest.ParseExperiment("-help")
	if !errors.Is(err, flag.ErrHelp) {
		t.Fatalf("got %v, want flag.ErrHelp", err)
	}
	help := stdout.String()
	for _, want := range []string{
		"Table 1.\n",
		"Usage: go run ./experiments/unsupervised [flags]\n",
		"  go run ./experiments/unsupervised -beta auto:0.2\n",
		"  -batch size\n\tbatch size, ",
		"default: untrained,graphcl,infonce,specmatch\n",
		"\tdefault: $SPECMATCH_BACKEND, else cpu\n",
		"\tdefault: none\n",
		"  -beta β\n", "  -p percentile\n", "\tdefault: 80\n",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("help lacks %q:\n%s", want, help)
		}
	}
	if got := strings.Count(help, "\tdefault: "); got != 25 {
		t.Errorf("%d defaults, want 25:\n%s", got, help)
	}
	if err := cli.NewFlagSet("x", "X.", "").Parse([]string{"-h"}, brokenPipe{}); err == nil || errors.Is(err, flag.ErrHelp) {
		t.Errorf("help on a broken pipe: %v", err)
	}
}

// TestShortHelp: the common flags are explained without defaults that say nothing.
func TestShortHelp(t *testing.T) {
	f := cli.NewFlagSet("x", "X.", "")
	f.String("in", "", "`file` to read")
	f.Int("epochs", 3, "`number` of epochs")
	f.Common("in", "epochs")
	var help bytes.Buffer
	if err := f.Parse([]string{"-h"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	for _, want := range []string{"  -in file\n\tfile to read\n", "\tnumber of epochs (default 3)\n"} {
		if !strings.Contains(help.String(), want) {
			t.Errorf("no %q in\n%s", want, help.String())
		}
	}
}

// TestMerge: what is given is added to the lists of the run, once, and what is not given is the run's.
func TestMerge(t *testing.T) {
	var sets, methods, columns []string
	var out string
	f := cli.NewFlagSet("x", "X.", "")
	cli.Var(f, &columns, "column", setting.List(setting.Text), "columns")
	cli.Var(f, &out, "out", setting.Text, "a text with commas")
	cli.Var(f, &sets, "dataset", setting.List(setting.Text), "sets")
	cli.Var(f, &methods, "method", setting.List(setting.Text), "methods")
	f.Grows("dataset", "method")
	if err := f.Parse([]string{"-method", "b,c"}, io.Discard); err != nil {
		t.Fatal(err)
	}
	previous := map[string]json.RawMessage{
		"dataset": json.RawMessage(`["MUTAG"]`),
		"method":  json.RawMessage(`["a","b"]`),
		"column":  json.RawMessage(`["IC50, nM","5\" tube"]`),
		"out":     json.RawMessage(`"a,b"`),
	}
	if err := f.Merge("RUN", previous, map[string]bool{"method": true}, false); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(sets, []string{"MUTAG"}) || !slices.Equal(methods, []string{"a", "b", "c"}) {
		t.Errorf("sets %q, methods %q", sets, methods)
	}
	if !slices.Equal(columns, []string{"IC50, nM", `5" tube`}) || out != "a,b" {
		t.Errorf("columns %q, out %q", columns, out)
	}
	if text, want := f.Lookup("column").Value.String(), `"IC50, nM","5"" tube"`; text != want {
		t.Errorf("columns are shown as %s, want %s", text, want)
	}
}

type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, os.ErrClosed }

func TestBeta(t *testing.T) {
	for s, want := range map[string]string{"0.5": "0.5", "0": "0", "auto:0.2": `"auto:0.2"`} {
		b, err := train.ParseBeta(s)
		if err != nil || b.String() != s {
			t.Errorf("%q became %v, %v", s, b, err)
		}
		data, err := json.Marshal(b)
		if err != nil || string(data) != want {
			t.Errorf("JSON of %s is %s, %v; want %s", s, data, err, want)
		}
		var back train.Beta
		if err := json.Unmarshal(data, &back); err != nil || back != b {
			t.Errorf("JSON %s became %v, %v", data, back, err)
		}
	}
	var b train.Beta
	if err := json.Unmarshal([]byte(`"always"`), &b); err == nil {
		t.Error("β = always was accepted")
	}
}

func Example() {
	recipe := cli.Recipe{Epochs: 20, Batch: 128, LR: 0.01, Seeds: 5}
	flags := cli.NewFlagSet("unsupervised", "Unsupervised learning on TU data sets.", "-seeds 3")
	flags.Add(&recipe)
	if err := flags.Parse([]string{"-h"}, os.Stdout); err == nil {
		fmt.Println("training") // not with -h
	}
	// Output:
	// Unsupervised learning on TU data sets.
	//
	// Usage: go run ./experiments/unsupervised [flags]
	//
	// For example:
	//   go run ./experiments/unsupervised -seeds 3
	//
	// Flags:
	//   -batch size
	// 	batch size, at least 2; contrastive losses use the other graphs of a batch as negatives
	// 	default: 128
	//   -epochs epochs
	// 	number of training epochs
	// 	default: 20
	//   -first-seed seed
	// 	first seed
	// 	default: 0
	//   -lr rate
	// 	learning rate of Adam
	// 	default: 0.01
	//   -seeds N
	// 	number N of independent runs with consecutive seeds
	// 	default: 5
}

// TestImply: a flag that is given implies another one that is not.
func TestImply(t *testing.T) {
	for args, want := range map[string]bool{"": true, "-epochs 3": false, "-epochs 3 -own": true, "-own=false": false, "-other 1": true} {
		f := cli.NewFlagSet("x", "", "")
		own := f.Bool("own", true, "")
		f.Int("epochs", 1, "")
		f.Int("other", 1, "")
		f.Small("with -epochs", func() bool { return f.Given("epochs") }, map[string]string{"own": "false"})
		if err := f.Parse(strings.Fields(args), new(bytes.Buffer)); err != nil || *own != want {
			t.Errorf("%q: own %v, %v; want %v", args, *own, err, want)
		}
	}
}

// TestQuoted: a comma within quotes is part of an item, such as the name of a column.
func TestQuoted(t *testing.T) {
	parse := setting.List(setting.Text)
	for text, want := range map[string]string{
		`a,b`: "a|b", `"solubility, mg/l",b`: "solubility, mg/l|b", `b,"say ""so"""`: `b|say "so"`, `5" tube,b`: `5" tube|b`,
	} {
		got, err := parse(text)
		if err != nil || strings.Join(got, "|") != want {
			t.Errorf("%s: %q, %v", text, got, err)
		}
		if again, err := parse(setting.JoinList(got)); err != nil || !slices.Equal(again, got) {
			t.Errorf("%s: %q are joined to %s, which is %q, %v", text, got, setting.JoinList(got), again, err)
		}
	}
	if _, err := parse(`"a,b`); err == nil || !strings.Contains(err.Error(), "want quotes as in CSV") {
		t.Error(err)
	}
}
