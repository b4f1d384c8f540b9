package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/specmatch/specmatch/specmatch/run/runtest"
)

// TestMain lets the test binary be the tool, which says on stderr what the garbage collector keeps to.
func TestMain(m *testing.M) {
	runtest.Main(m, func(ctx context.Context, args []string, stdout, stderr io.Writer) error {
		fmt.Fprintln(stderr, "memory limit:", debug.SetMemoryLimit(-1))
		return execute(ctx, args, stdout, stderr)
	})
}

// limitMemory makes a control group with a limit of memory, and returns its file of processes. It skips the
// test where the machine does not let it.
func limitMemory(t *testing.T, bytes int) string {
	t.Helper()
	var reasons []string
	for root, limit := range map[string]string{
		"/sys/fs/cgroup":        "memory.max",
		"/sys/fs/cgroup/memory": "memory.limit_in_bytes",
	} {
		group, err := os.MkdirTemp(root, "specmatch-test-")
		if err != nil {
			reasons = append(reasons, err.Error())
			continue
		}
		t.Cleanup(func() {
			// The kernel may take a moment to let go of a process that has ended.
			for range 100 {
				if os.Remove(group) == nil {
					return
				}
				time.Sleep(10 * time.Millisecond)
			}
		})
		// Nothing is created: in a folder that is no control group, there is no such file.
		f, err := os.OpenFile(filepath.Join(group, limit), os.O_WRONLY, 0)
		if err == nil {
			_, err = fmt.Fprint(f, bytes)
			f.Close()
		}
		if err == nil {
			return filepath.Join(group, "cgroup.procs")
		}
		reasons = append(reasons, err.Error())
	}
	slices.Sort(reasons)
	t.Skip("no control group can be made here: " + strings.Join(reasons, "; "))
	return ""
}

// TestContainer: plain embed does its work in a container of 250 MB, whose limit the garbage collector knows.
func TestContainer(t *testing.T) {
	info, _ := debug.ReadBuildInfo()
	if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("the race detector needs more memory")
	}
	const limit = 250_000_000
	group := limitMemory(t, limit)
	t.Chdir(t.TempDir())
	groups := []string{"", "C", "CC", "CCC", "OC", "NC", "C(C)C", "C1CC1", "c1ccccc1", "c1ccncc1", "C(F)(F)F"}
	table := "smiles\n"
	for _, a := range groups {
		for _, b := range groups {
			for _, c := range groups {
				table += fmt.Sprintf("O=C(N%s)C(%s)S%s\n", "C"+a, "C"+b, "C"+c)
			}
		}
	}
	write(t, "molecules.csv", table)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command("sh", "-c", `echo $$ >"$0" && exec "$@"`,
		group, exe, "embed", "-in", "molecules.csv", "-out", "vectors.npy")
	command.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "GOMEMLIMIT=") || strings.HasPrefix(variable, "AUTOMEMLIMIT=")
	})
	command.Env = append(command.Env, runtest.AsExperiment+"=1")
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v:\n%s", err, output)
	}
	for _, want := range []string{"1331 rows of 1920 columns", "memory limit: 224"} { // 90 % of whole pages
		if !strings.Contains(string(output), want) {
			t.Errorf("no %q in\n%s", want, output)
		}
	}
}
