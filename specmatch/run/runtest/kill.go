package runtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
)

// AsExperiment is the environment variable that tells a test binary to be the experiment that it tests.
const AsExperiment = "SPECMATCH_TEST_AS_EXPERIMENT"

// Main is the TestMain of an experiment whose tests use [Kill]: only a process can be
// killed.
func Main(m *testing.M, run func(ctx context.Context, args []string, stdout, stderr io.Writer) error) {
	if os.Getenv(AsExperiment) != "" {
		cli.Main(run)
	}
	os.Exit(m.Run())
}

// Kill runs the experiment once without disturbance, and once with a SIGKILL at each
// of the given number of random moments within the length of the first, each followed
// by a start with -out alone; it fails unless both leave the same results, to the byte
// but for timings.
func Kill(t *testing.T, kills int, args ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the experiment many times; left out with -short")
	}
	whole := filepath.Join(t.TempDir(), "whole")
	killed := filepath.Join(t.TempDir(), "killed")
	begin := time.Now()
	if out, err := command(t, append(args, "-out", whole)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	length := time.Since(begin)
	// A start that is killed before it has read its flags leaves nothing; the first
	// one must leave a config.json for those that have -out alone.
	first := append(slices.Clone(args), "-checkpoint", "1ms", "-out", killed)
	rng := rand.New(rand.NewPCG(uint64(kills), 1))
	starts := 0
	for died := 0; ; starts++ {
		args := []string{"-out", killed}
		if _, err := os.Stat(filepath.Join(killed, "config.json")); err != nil {
			args = first
		}
		var output bytes.Buffer
		c := command(t, args)
		c.Stdout = &output
		c.Stderr = &output
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		var moment <-chan time.Time
		if died < kills {
			moment = time.After(time.Duration(rng.Float64() * float64(length)))
		}
		select {
		case err := <-ended:
			if err != nil {
				t.Fatalf("after %d kills: %v: %s", died, err, &output)
			}
			if died == kills {
				same(t, whole, killed)
				return
			}
			// It came to its end early: from the beginning, for the moments that are left.
			if err := os.RemoveAll(killed); err != nil {
				t.Fatal(err)
			}
		case <-moment:
			c.Process.Kill()
			<-ended
			died++
		}
	}
}

// Large reports whether the tests that take long are wanted, by the variable SPECMATCH_LARGE.
func Large() bool { return os.Getenv("SPECMATCH_LARGE") != "" }

// KillMethods is [Kill] for methods, as subtests, seven kills each. Resumption is the same code for all, only the
// state that they save differs: unless [Large], two are killed, SpecMatch-CL and one that saves more than weights.
func KillMethods(t *testing.T, methods []string, args ...string) {
	for _, name := range methods {
		t.Run(name, func(t *testing.T) {
			if !Large() && name != "specmatch" && name != "joaov2" {
				t.Skip("SPECMATCH_LARGE is not set")
			}
			t.Parallel() // a run waits for its disk and has one thread for the most part
			kills := 7
			if name == "specmatch" && Large() {
				kills = 20
			}
			Kill(t, kills, append([]string{"-method", name}, args...)...)
		})
	}
}

// FewGraphs returns a folder with a data set "few" of n graphs.
func FewGraphs(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	ds, err := dataset.Motifs(dataset.MotifConfig{Graphs: n})
	if err == nil {
		ds.Name = "few"
		err = dataset.WriteTU(dir, ds)
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Shares runs the experiment once in one process, and once in n shares at the same
// time, each of which is killed by SIGKILL that many times at random moments and
// started again; it fails unless what -collect makes of the shares is what the one
// process leaves, to the byte but for timings and the order of lines.
func Shares(t *testing.T, n, kills int, args ...string) {
	t.Helper()
	if testing.Short() {
		t.Skip("runs the experiment many times; left out with -short")
	}
	root := t.TempDir()
	whole := filepath.Join(root, "whole")
	shared := filepath.Join(root, "shared")
	collected := filepath.Join(root, "collected")
	begin := time.Now()
	if out, err := command(t, append(args, "-out", whole)).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	length := time.Since(begin)
	var wg sync.WaitGroup
	var all atomic.Int32
	for i := range n {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(i), 1))
			for died := 0; ; {
				c := command(t, append(slices.Clone(args), "-out", shared, "-shard", fmt.Sprintf("%d/%d", i, n)))
				var output bytes.Buffer
				c.Stdout = &output
				c.Stderr = &output
				if err := c.Start(); err != nil {
					t.Error(err)
					return
				}
				ended := make(chan error, 1)
				go func() { ended <- c.Wait() }()
				var moment <-chan time.Time
				if died < kills {
					moment = time.After(time.Duration(rng.Float64() * float64(length) / float64(n)))
				}
				select {
				case err := <-ended: // before the moment, or undisturbed
					if err != nil {
						t.Errorf("share %d after %d kills: %v: %s", i, died, err, &output)
					}
					all.Add(int32(died))
					return
				case <-moment:
					c.Process.Kill()
					<-ended
					died++
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d kills of %d shares", all.Load(), n)
	if int(all.Load()) < n {
		t.Errorf("only %d kills: the shares end too soon", all.Load())
	}
	if out, err := command(t, []string{
		"-out", collected, "-collect", shared,
	}).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	same(t, whole, collected)
}

func command(t *testing.T, args []string) *exec.Cmd {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), exe, args...)
	c.Env = append(os.Environ(), AsExperiment+"=1")
	return c
}

func same(t *testing.T, a, b string) {
	t.Helper()
	if d := cmp.Diff(left(t, a), left(t, b)); d != "" {
		t.Errorf("a run that was killed and resumed leaves something else:\n%.3000s", d)
	}
}

// left is what a run leaves, by file; of results and the journal without timings,
// of lines without their order.
func left(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, _ := filepath.Rel(dir, path)
		data, err := os.ReadFile(path)
		switch {
		case err != nil || slices.Contains([]string{"config.json", "log.jsonl", "lock"}, name):
			return err
		case name == "results.json":
			data, err = json.Marshal(withoutTimings(parsed(t, path, data)))
		case name == "done.jsonl":
			var lines []string
			for line := range strings.Lines(string(data)) {
				text, err := json.Marshal(withoutTimings(parsed(t, path, []byte(line))))
				if err != nil {
					return err
				}
				lines = append(lines, string(text))
			}
			slices.Sort(lines)
			data = []byte(strings.Join(lines, "\n"))
		case name == "metrics.csv":
			lines := slices.Sorted(strings.Lines(string(data)))
			data = []byte(strings.Join(lines, ""))
		}
		files[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func parsed(t *testing.T, path string, data []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatal(fmt.Errorf("%s: %w", path, err))
	}
	return v
}

// withoutTimings returns v without the fields that hold times and speeds, and without the sum of a
// record of the journal, whose result may hold some.
func withoutTimings(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = withoutTimings(v[i])
		}
	case map[string]any:
		if _, isRecord := v["unit"]; isRecord {
			delete(v, "sha256")
		}
		for key := range v {
			k := strings.ToLower(strings.ReplaceAll(key, "_", ""))
			if strings.HasSuffix(k, "seconds") || k == "graphspersecond" {
				delete(v, key)
			} else {
				v[key] = withoutTimings(v[key])
			}
		}
	}
	return v
}
