package main

import (
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestCluster runs the commands of the job files as Slurm and Kubernetes would: the vectors
// are those of one process, and as float16 within a thousandth of those in float32.
func TestCluster(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash here")
	}
	folder, err := filepath.Abs("cluster")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	write(t, "molecules.csv", moleculeTable(3*batchRecords))
	write(t, "specmatch", "#!/bin/sh\necho \"$@\"\n")
	if err := os.Chmod("specmatch", 0o755); err != nil {
		t.Fatal(err)
	}
	// The command of a job's script, by way of a program that prints its arguments.
	slurm := func(task int, args ...string) string {
		t.Helper()
		c := exec.Command(bash, append([]string{filepath.Join(folder, "embed.sbatch")}, args...)...)
		c.Env = append(os.Environ(), "PATH=.:"+os.Getenv("PATH"), fmt.Sprint("SLURM_ARRAY_TASK_ID=", task), "SLURM_ARRAY_TASK_COUNT=8")
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s, %v", out, err)
		}
		return strings.TrimSpace(string(out))
	}
	var job struct {
		Kind string
		Spec struct {
			Completions    int
			CompletionMode string `yaml:"completionMode"`
			Template       struct {
				Spec struct {
					Containers []struct{ Command, Args []string }
				}
			}
		}
	}
	d := yaml.NewDecoder(strings.NewReader(read(t, filepath.Join(folder, "embed.yaml"))))
	if err := d.Decode(&job); err != nil {
		t.Fatal(err)
	}
	containers := job.Spec.Template.Spec.Containers
	if job.Kind != "Job" || job.Spec.CompletionMode != "Indexed" || job.Spec.Completions != 8 || len(containers) != 1 || containers[0].Command[0] != "specmatch" {
		t.Fatalf("%+v", job)
	}
	if text := read(t, filepath.Join(folder, "embed.sbatch")); !strings.Contains(text, "#SBATCH --array=0-7\n") {
		t.Error("the array is not 0-7")
	}
	must(t, "embed -in molecules.csv -out wide.npy")
	must(t, "embed -in molecules.csv -float16 -out whole.npy")
	for name, run := range map[string]func(i int) (line, variable string){
		"Slurm":      func(i int) (string, string) { return slurm(i), "SLURM_ARRAY_TASK_ID" },
		"Kubernetes": func(int) (string, string) { return strings.Join(containers[0].Args, " "), "JOB_COMPLETION_INDEX" },
	} {
		t.Run(name, func(t *testing.T) {
			for i := range 8 {
				line, variable := run(i)
				t.Setenv(variable, fmt.Sprint(i))
				must(t, line)
			}
			if idle := slurm(1, "collect"); idle != "" {
				t.Error("two tasks collect: ", idle)
			}
			must(t, slurm(0, "collect"))
			if read(t, "vectors.npy") != read(t, "whole.npy") || read(t, "vectors.npy.ids.csv") != read(t, "whole.npy.ids.csv") {
				t.Error("the vectors are not those of one process")
			}
			left, err := filepath.Glob("vectors.npy*")
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range left {
				if err := os.Remove(path); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
	wide, half := read(t, "wide.npy")[128:], read(t, "whole.npy")[128:]
	if len(wide) != 2*len(half) || len(half) == 0 {
		t.Fatalf("%d and %d bytes", len(wide), len(half))
	}
	worst := 0.0
	for i := 0; i < len(half)/2; i++ {
		v := float64(math.Float32frombits(uint32(wide[4*i]) | uint32(wide[4*i+1])<<8 | uint32(wide[4*i+2])<<16 | uint32(wide[4*i+3])<<24))
		bits := uint16(half[2*i]) | uint16(half[2*i+1])<<8
		h := math.Ldexp(float64(bits&0x3ff), -24)
		if e := int(bits >> 10 & 31); e > 0 {
			h = math.Ldexp(float64(bits&0x3ff|0x400), e-25)
		}
		if bits>>15 == 1 {
			h = -h
		}
		worst = max(worst, math.Abs(h-v)/max(1, math.Abs(v)))
	}
	if worst > 1e-3 {
		t.Errorf("float16 is off by %g", worst)
	}
}
