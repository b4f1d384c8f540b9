package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/shard"
)

// TestMain turns the test binary into a small experiment when a test starts it
// as a process of its own: only a process has an exit status.
func TestMain(m *testing.M) {
	if os.Getenv("CLI_TEST_EXPERIMENT") != "" {
		cli.Main(experiment)
	}
	os.Exit(m.Run())
}

func experiment(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	recipe := cli.Recipe{Epochs: 20, Batch: 128, LR: 0.01, Seeds: 5}
	end := "ok"
	flags := cli.NewFlagSet("experiment", "An experiment.", "-seeds 3")
	flags.Add(&recipe)
	cli.Var(flags, &end, "end", setting.OneOf("ok", "fail", "print", "check", "wait", "hang"), "how to `end`")
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	switch end {
	case "fail":
		return errors.New("disk full")
	case "print":
		fmt.Fprintln(stdout, "a line") // whose error is ignored
	case "check":
		return cli.CheckStdout()
	case "wait": // stops cleanly
		fmt.Fprintln(stdout, "started")
		<-ctx.Done()
		return fmt.Errorf("epoch 3: %w", ctx.Err())
	case "hang": // does not listen
		fmt.Fprintln(stdout, "started")
		time.Sleep(time.Minute)
	}
	return nil
}

func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), exe, args...)
	cmd.Env = append(os.Environ(), "CLI_TEST_EXPERIMENT=1")
	return cmd
}

func TestExitStatus(t *testing.T) {
	for _, tt := range []struct {
		name, args     string
		code           int
		stdout, stderr string // substrings
	}{
		{"success", "", cli.ExitOK, "", ""},
		{"help", "-h", cli.ExitOK, "go run ./experiments/experiment -seeds 3", ""},
		{"failure", "-end fail", cli.ExitFailure, "", "disk full\n"},
		{"bad value", "-seeds 0", cli.ExitUsage, "", `invalid value "0" for flag -seeds: want a whole number of at least 1 (-h explains the flags)`},
		{"unknown flag", "-sedes 3", cli.ExitUsage, "", "there is no flag -sedes; did you mean -seeds?"},
		{"escape codes", "-s\x1b[31m 3", cli.ExitUsage, "", `there is no flag -s\x1b[31m`},
		{"argument", "MUTAG", cli.ExitUsage, "", `unexpected argument "MUTAG"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			cmd := command(t, strings.Fields(tt.args)...)
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			_ = cmd.Run() // the status is what is tested
			if code := cmd.ProcessState.ExitCode(); code != tt.code {
				t.Errorf("exit status %d, want %d", code, tt.code)
			}
			if !strings.Contains(stdout.String(), tt.stdout) {
				t.Errorf("stdout %q, want %q in it", &stdout, tt.stdout)
			}
			if !strings.Contains(stderr.String(), tt.stderr) || tt.stderr == "" && stderr.Len() > 0 {
				t.Errorf("stderr %q, want %q in it", &stderr, tt.stderr)
			}
		})
	}
}

// TestLostOutput: output that cannot be written, or has nowhere to go, is a failure.
func TestLostOutput(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct {
		script string
		code   int
		stderr string
	}{
		{`"$0" -end print >/dev/full`, cli.ExitFailure, "standard output: write /dev/stdout: no space left on device"},
		{`"$0" -end print >/dev/null`, cli.ExitOK, ""},
		{`"$0" -end check >&-`, cli.ExitFailure, "standard output is closed"},
		{`"$0" -end check >/dev/null`, cli.ExitOK, ""},
		{`"$0" -end check | cat`, cli.ExitOK, ""},
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.script, exe)
		cmd.Env = append(os.Environ(), "CLI_TEST_EXPERIMENT=1")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		_ = cmd.Run() // the status is what is tested
		if code := cmd.ProcessState.ExitCode(); code != c.code || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%s: status %d, %s", c.script, code, &stderr)
		}
	}
}

func TestInterrupt(t *testing.T) {
	for _, tt := range []struct {
		end     string
		signals int
		stderr  string
	}{
		{"wait", 1, "interrupted\n"},
		{"hang", 2, "once more to quit at once\n"},
		{"hang", 1, "interrupted\n"}, // within a second
	} {
		t.Run(tt.end, func(t *testing.T) {
			cmd := command(t, "-end", tt.end)
			stdout, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			stderr, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "started\n" {
				t.Fatalf("stdout %q, %v", line, err)
			}
			var said strings.Builder
			lines := bufio.NewReader(stderr)
			for range tt.signals {
				if err := cmd.Process.Signal(os.Interrupt); err != nil {
					t.Fatal(err)
				}
				// Equal signals that are pending at once arrive as one, so
				// wait until the process has answered the first.
				for !strings.Contains(said.String(), "once more") {
					line, err := lines.ReadString('\n')
					if said.WriteString(line); err != nil {
						t.Fatalf("stderr %q: %v", said.String(), err)
					}
				}
			}
			start := time.Now()
			rest, _ := io.ReadAll(lines)
			if took := time.Since(start); took > 2*time.Second {
				t.Errorf("it took %v to stop", took)
			}
			said.Write(rest)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != cli.ExitInterrupted {
				t.Errorf("exit status %d, want %d", code, cli.ExitInterrupted)
			}
			if !strings.HasSuffix(said.String(), tt.stderr) {
				t.Errorf("stderr %q, want %q at its end", said.String(), tt.stderr)
			}
		})
	}
}

// Work that was cancelled by something else than a signal has failed.
func TestCancelledWithoutSignal(t *testing.T) {
	if code := cli.Exit(t.Context(), context.Canceled, "x", io.Discard); code != cli.ExitFailure {
		t.Errorf("exit status %d, want %d", code, cli.ExitFailure)
	}
}

// TestSlurmCores: a task takes the cores that Slurm gives it and the machine has, unless it is told.
func TestSlurmCores(t *testing.T) {
	for _, tt := range []struct {
		gomaxprocs, cpus string
		want             int
	}{{"", "", 0}, {"", "1", 1}, {"8", "1", 0}, {"", "all", 0}, {"", "100000", runtime.NumCPU()}, {"", "99999999999999999999", runtime.NumCPU()}} {
		env := map[string]string{"GOMAXPROCS": tt.gomaxprocs, "SLURM_CPUS_PER_TASK": tt.cpus}
		if got := cli.SlurmCores(func(name string) string { return env[name] }); got != tt.want {
			t.Errorf("%v: %d, want %d", env, got, tt.want)
		}
	}
}

// TestParseShard: shares as they are written, and as Slurm and Kubernetes number them.
func TestParseShard(t *testing.T) {
	for _, tt := range []struct {
		text string
		env  string
		want shard.Shard
	}{
		{"0/1", "", shard.Shard{I: 0, N: 1}}, {"6/7", "", shard.Shard{I: 6, N: 7}},
		{"auto", "SLURM_ARRAY_TASK_ID=2 SLURM_ARRAY_TASK_COUNT=4", shard.Shard{I: 2, N: 4}},
		{"auto/9", "SLURM_ARRAY_TASK_ID=5 SLURM_ARRAY_TASK_COUNT=2", shard.Shard{I: 5, N: 9}},
		{"auto/3", "JOB_COMPLETION_INDEX=1", shard.Shard{I: 1, N: 3}},
		{text: "7/7"}, {text: "-1/7"}, {text: "1"}, {text: "a/b"}, {text: "auto"}, {text: "auto", env: "JOB_COMPLETION_INDEX=1"},
	} {
		t.Run(tt.text+tt.env, func(t *testing.T) {
			for _, name := range []string{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_COUNT", "JOB_COMPLETION_INDEX"} {
				t.Setenv(name, "")
			}
			for _, pair := range strings.Fields(tt.env) {
				name, value, _ := strings.Cut(pair, "=")
				t.Setenv(name, value)
			}
			got, err := shard.Parse(tt.text)
			if got != tt.want || (err == nil) != (tt.want != shard.Shard{}) {
				t.Errorf("%v, %v; want %v", got, err, tt.want)
			}
		})
	}
}
