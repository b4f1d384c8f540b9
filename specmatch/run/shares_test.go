package run_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/specmatch/run/runtest"
	"github.com/specmatch/specmatch/specmatch/table"
)

func TestMain(m *testing.M) { runtest.Main(m, toy) }

// toy is an experiment of 200 units: 100 that take five epochs each, with metrics and
// a file, and 100 that read those files.
func toy(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	var output run.Output
	recipe := cli.Recipe{Seeds: 100}
	flags := cli.NewFlagSet("toy", "", "")
	flags.Add(&output)
	recipe.RegisterSeeds(flags)
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	dir, err := run.StartHost("toy", flags, nil, recipe, "host", output)
	if err != nil {
		return err
	}
	defer dir.Close()
	var train, score []run.Unit[float64]
	for seed := range recipe.Seeds {
		name := fmt.Sprintf("toy/method/seed=%d", seed)
		file := fmt.Sprintf("weights-%d", seed)
		train = append(train, run.Unit[float64]{Name: name, Files: []string{file}, Run: func(ctx context.Context, _ backend.Backend, _ run.Status) (float64, error) {
			x := float64(seed)
			for e := range 5 {
				time.Sleep(2 * time.Millisecond)
				x = math.Sin(x) + 1
				if err := errors.Join(ctx.Err(), dir.Metrics(name, e+1, slog.Float64("loss", x))); err != nil {
					return 0, err
				}
			}
			return x, os.WriteFile(dir.Join(file), []byte(fmt.Sprint(x)), 0o644)
		}})
		score = append(score, run.Unit[float64]{Name: name + "/score", With: name, Run: func(context.Context, backend.Backend, run.Status) (float64, error) {
			data, err := os.ReadFile(dir.Join(file))
			if err != nil {
				return 0, err
			}
			x, err := strconv.ParseFloat(string(data), 64)
			return 100 * x, err
		}})
	}
	plan := run.NewPlan(dir)
	run.Add(plan, train)
	scores := run.Add(plan, score)
	return plan.Run(ctx, stdout, stderr, func() error {
		t := table.New("seed", table.Column{Name: "score", Best: table.Max})
		for seed, x := range *scores {
			t.Add(fmt.Sprint(seed), table.Number(x, 6))
		}
		return dir.Report(stdout, []run.Row{{Experiment: "toy", PerSeed: *scores}}, t)
	})
}

// 200 units in 7 shares with kills at random moments leave what one process leaves.
func TestKilledShares(t *testing.T) { runtest.Shares(t, 7, 5) }
