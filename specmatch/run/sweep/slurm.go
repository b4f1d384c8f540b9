package sweep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/tensor/files"
)

// Slurm is what the jobs request. An empty Partition leaves the choice to the cluster. An empty Time or
// Memory is estimated from tasks that ran on this machine.
type Slurm struct {
	Partition string
	Time      string // as for sbatch: minutes, or days-hours:minutes:seconds
	Memory    string // as for sbatch: megabytes, or with K, M, G, T
	CPUs      int    // per task
}

// maxArray is the default limit of Slurm on the tasks of a job array.
const maxArray = 1000

// Submit writes the scripts of two jobs and submits them. The first is an array of the tasks; a task
// restarts if its node is lost. The second runs after all tasks have succeeded: it joins the shards
// and then runs the command.
func (s *Sweep) Submit(stdout io.Writer, tasks []Task, o Slurm, command []string) error {
	if len(tasks) > maxArray {
		return fmt.Errorf("%d tasks are more than the %d of an array: want fewer -shares",
			len(tasks), maxArray)
	}
	if err := s.estimate(&o, tasks); err != nil {
		return err
	}
	dir, err := filepath.Abs(filepath.Join(s.Dir, "slurm"))
	if err != nil {
		return err
	}
	folder, err := os.Getwd()
	if err != nil {
		return err
	}
	words := append([]string{dir, folder, s.Program, o.Partition, o.Time, o.Memory}, command...)
	for _, t := range tasks {
		words = append(words, s.args(t)...)
	}
	if err := plain(words...); err != nil {
		return err
	}
	if strings.Contains(dir, `\`) { // Slurm would take it literally in the pattern of a log's name
		return fmt.Errorf("%s: Slurm cannot write logs to a folder with a \\ in its name", dir)
	}
	if err := s.writeScripts(dir, folder, tasks, o, command); err != nil {
		return err
	}
	array, err := sbatch(filepath.Join(dir, "array.sh"))
	if err != nil {
		return err
	}
	gather, err := sbatch("--dependency=afterok:"+array, "--kill-on-invalid-dep=yes", filepath.Join(dir, "gather.sh"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "job %s: %d tasks, each with --time=%s --mem=%s\n"+
		"job %s: joins their results afterwards\nlogs and scripts: %s\n",
		array, len(tasks), o.Time, o.Memory, gather, dir)
	return err
}

// writeScripts writes the tasks, one command per line, and the scripts of the two jobs to dir. The jobs
// run in folder.
func (s *Sweep) writeScripts(dir, folder string, tasks []Task, o Slurm, command []string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	var lines, gather strings.Builder
	for _, t := range tasks {
		lines.WriteString(s.command(t) + "\n")
	}
	for _, t := range s.Gather() {
		gather.WriteString(s.command(t) + "\n")
	}
	gather.WriteString(cli.ShellQuote(command...) + "\n")
	logs := strings.ReplaceAll(dir, "%", "%%") + string(filepath.Separator)
	array := o.header("sweep", folder, logs+"%a.log", fmt.Sprintf("--array=0-%d", len(tasks)-1))
	// exec lets signals reach the program, which then saves its state.
	array += "eval \"exec $(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" " +
		cli.ShellQuote(filepath.Join(dir, "tasks")) + ")\"\n"
	texts := map[string]string{
		"tasks":    lines.String(),
		"array.sh": array,
		"gather.sh": o.header("sweep-gather", folder, logs+"gather.log") +
			"set -e\n" + gather.String(),
	}
	for name, text := range texts {
		err := files.Write(filepath.Join(dir, name), func(w io.Writer) error {
			_, err := io.WriteString(w, text)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// header returns the first lines of a job's script, with its options.
func (o Slurm) header(name, folder, log string, extra ...string) string {
	options := append([]string{
		"--job-name=" + name,
		"--chdir=" + folder,
		"--output=" + log,
		"--open-mode=append",
		"--requeue",
		"--cpus-per-task=" + fmt.Sprint(max(1, o.CPUs)),
		"--time=" + o.Time,
		"--mem=" + o.Memory,
	}, extra...)
	if o.Partition != "" {
		options = append(options, "--partition="+o.Partition)
	}
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for _, option := range options {
		b.WriteString("#SBATCH " + cli.ShellQuote(option) + "\n")
	}
	return b.String()
}

func (s *Sweep) command(t Task) string {
	return cli.ShellQuote(append([]string{s.Program}, s.args(t)...)...)
}

func sbatch(args ...string) (string, error) {
	c := exec.Command("sbatch", append([]string{"--parsable"}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("sbatch %s: %w: %s", cli.ShellQuote(args...), err, strings.TrimSpace(stderr.String()))
	}
	job, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";") // the cluster's name may follow
	return job, nil
}

// estimate sets time and memory, unless given, from the largest measured values: three times the time
// plus a minute, and 1.5 times the memory plus 256 MB. A measured task with fewer units than one of tasks counts for as
// many times longer.
func (s *Sweep) estimate(o *Slurm, tasks []Task) error {
	if o.Time != "" && o.Memory != "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(s.Dir, costs))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	units := 0 // of the largest task
	for _, t := range tasks {
		units = max(units, t.units())
	}
	var largest cost
	for line := range bytes.Lines(data) {
		var c cost
		if err := json.Unmarshal(line, &c); err != nil {
			continue // a line that was cut off
		}
		if c.Units > 0 && c.Units < units {
			c.Seconds *= float64(units) / float64(c.Units)
		}
		largest.Seconds = max(largest.Seconds, c.Seconds)
		largest.Bytes = max(largest.Bytes, c.Bytes)
	}
	if largest.Seconds == 0 || largest.Bytes == 0 && o.Memory == "" {
		return fmt.Errorf("%s: no task has been measured: give -time and -memory, or first run -pilot", s.Dir)
	}
	if o.Time == "" {
		o.Time = fmt.Sprint(1 + int(math.Ceil(3*largest.Seconds/60)))
	}
	if o.Memory == "" {
		o.Memory = fmt.Sprintf("%dM", 256+int(math.Ceil(1.5*float64(largest.Bytes)/(1<<20))))
	}
	return nil
}
