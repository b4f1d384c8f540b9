//go:build unix

package sweep_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/run/sweep"
)

// A stand-in for sbatch notes its arguments. What the scripts ask for comes from what a
// pilot has measured; run by hand as Slurm would run them, they leave the tables.
// (.ci/slurm does it with Slurm.)
func TestSubmit(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash here")
	}
	bin := t.TempDir()
	sbatch := "#!/bin/sh\necho \"$@\" >> " + bin + "/calls\necho \"$(wc -l < " + bin + "/calls);cluster\"\n"
	if err := os.WriteFile(filepath.Join(bin, "sbatch"), []byte(sbatch), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	dir := filepath.Join(t.TempDir(), "a 'quoted' 100% name")
	s := prepared(t, dir, "toy -seeds 2\ngrid -beta 2 5\n")
	tasks := s.Tasks(0)
	if err := s.Submit(&bytes.Buffer{}, tasks, sweep.Slurm{Time: "5"}, nil); err == nil || !strings.Contains(err.Error(), "-pilot") {
		t.Errorf("nothing is measured: %v", err)
	}
	if err := s.Local(t.Context(), &bytes.Buffer{}, 1, tasks[:1]); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "costs.jsonl")); err != nil || !strings.Contains(string(text), `"units":1`) {
		t.Errorf("the costs are %s, %v", text, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "costs.jsonl"), []byte(`{"task":"x","seconds":100,"bytes":104857600}`+"\n"+`{"task":"y","seconds":200,"bytes":1}`+"\n{\"ta"), 0o644); err != nil {
		t.Fatal(err)
	}
	var stdout bytes.Buffer
	if err := s.Submit(&stdout, tasks, sweep.Slurm{Partition: "short", CPUs: 2}, []string{"touch", filepath.Join(bin, "reported")}); err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(dir, "slurm", "array.sh")
	text, err := os.ReadFile(script)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--array=0-3\n", "--partition=short\n", "--time=11\n", "--mem=406M\n", "--cpus-per-task=2\n", "--requeue\n",
		"'--output=" + strings.NewReplacer("'", `'\''`, "%", "%%").Replace(filepath.Join(dir, "slurm")) + "/%a.log'\n"} {
		if !strings.Contains(string(text), "#SBATCH "+want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	calls, err := os.ReadFile(filepath.Join(bin, "calls"))
	if want := fmt.Sprintf("--parsable %s\n--parsable --dependency=afterok:1 --kill-on-invalid-dep=yes %s\n", script, filepath.Join(dir, "slurm", "gather.sh")); err != nil || string(calls) != want {
		t.Errorf("sbatch is called with\n%s%v, want\n%s", calls, err, want)
	}
	for i := range tasks {
		c := exec.Command("bash", script)
		c.Env = append(os.Environ(), fmt.Sprint("SLURM_ARRAY_TASK_ID=", i))
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("task %d: %v: %s", i, err, out)
		}
	}
	if out, err := exec.Command("bash", filepath.Join(dir, "slurm", "gather.sh")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, path := range []string{filepath.Join(dir, "beta=2", "tables.md"), filepath.Join(dir, "beta=5", "tables.md"), filepath.Join(bin, "reported")} {
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
	// Two units take twice the time of one.
	line := `{"task":"x","seconds":200,"bytes":1,"units":1}` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "costs.jsonl"), []byte(line), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := s.Submit(&stdout, s.Tasks(1), sweep.Slurm{}, nil); err != nil || !strings.Contains(stdout.String(), "2 tasks, each with --time=21 ") {
		t.Errorf("%s%v", stdout.String(), err)
	}
	for _, o := range []sweep.Slurm{{Time: "5\n#SBATCH --uid=0"}, {Partition: "a\nb"}, {Memory: "\x1b1M"}, {Partition: "\xff"}} {
		if err := s.Submit(&stdout, tasks, o, nil); err == nil || !strings.Contains(err.Error(), "has control characters") {
			t.Errorf("%+v: %v", o, err)
		}
	}
	for _, name := range []string{"a\nb", `a\b`} {
		s.Dir = filepath.Join(t.TempDir(), name)
		if err := s.Submit(&stdout, tasks, sweep.Slurm{Time: "5", Memory: "1M"}, nil); err == nil {
			t.Errorf("logs in %q", name)
		}
	}
	t.Chdir(t.TempDir())
	if err := os.Mkdir("x\ny", 0o755); err != nil {
		t.Fatal(err)
	}
	t.Chdir("x\ny")
	s.Dir = dir
	if err := s.Submit(&stdout, tasks, sweep.Slurm{Time: "5", Memory: "1M"}, nil); err == nil || !strings.Contains(err.Error(), "has control characters") {
		t.Errorf("a working directory of two lines: %v", err)
	}
	if err := s.Submit(&stdout, make([]sweep.Task, 1001), sweep.Slurm{}, nil); err == nil || !strings.Contains(err.Error(), "-shares") {
		t.Errorf("too many tasks: %v", err)
	}
}
