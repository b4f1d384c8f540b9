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

	"github.com/specmatch/specmatch/tensor/files"
)

// Slurm is what the jobs ask for. Empty texts leave it to the cluster, but for Time and
// Memory: they are taken from what tasks took on this machine.
type Slurm struct {
	Partition string
	Time      string // as sbatch has it: minutes, or days-hours:minutes:seconds
	Memory    string // as sbatch has it: megabytes, or with K, M, G, T
	CPUs      int    // per task
}

// maxArray is the most tasks that an array of Slurm has where its administrator has
// not said otherwise.
const maxArray = 1000

// Submit writes the scripts of two jobs and submits them: an array with the tasks, each
// of which is started again if its node is lost, and, after all have ended well, one
// that puts the shards together and then runs the command last.
func (s *Sweep) Submit(stdout io.Writer, tasks []Task, o Slurm, last []string) error {
	if len(tasks) > maxArray {
		return fmt.Errorf("%d tasks are more than the %d of an array: want fewer -shares",
			len(tasks), maxArray)
	}
	if err := s.estimate(&o); err != nil {
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
	words := append([]string{dir, folder, s.Program, o.Partition, o.Time, o.Memory}, last...)
	for _, t := range tasks {
		words = append(words, s.args(t)...)
	}
	if err := plain(words...); err != nil {
		return err
	}
	if strings.Contains(dir, `\`) { // turns patterns off
		return fmt.Errorf("%s: Slurm cannot write logs to a folder with a \\ in its name", dir)
	}
	if err := s.writeScripts(dir, folder, tasks, o, last); err != nil {
		return err
	}
	array, err := sbatch(filepath.Join(dir, "array.sh"))
	if err != nil {
		return err
	}
	after, err := sbatch(
		"--dependency=afterok:"+array, "--kill-on-invalid-dep=yes", filepath.Join(dir, "gather.sh"),
	)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "job %s: %d tasks, each with --time=%s --mem=%s\n",
		array, len(tasks), o.Time, o.Memory)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "job %s: puts them together afterwards\nlogs and scripts: %s\n",
		after, dir)
	return err
}

// writeScripts writes the tasks, a command a line, and the scripts of the two jobs into dir. The
// jobs run in folder.
func (s *Sweep) writeScripts(dir, folder string, tasks []Task, o Slurm, last []string) error {
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
	gather.WriteString(quote(last) + "\n")
	logs := strings.ReplaceAll(dir, "%", "%%") + string(filepath.Separator)
	array := o.header(
		"sweep", folder, logs+"%a.log", fmt.Sprintf("--array=0-%d", len(tasks)-1),
	)
	// exec, so that signals reach the program, which then saves what it does.
	array += "eval \"exec $(sed -n \"$((SLURM_ARRAY_TASK_ID + 1))p\" " +
		quote([]string{filepath.Join(dir, "tasks")}) + ")\"\n"
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

// header returns the first lines of a job's script: its options.
func (o Slurm) header(name, folder, log string, more ...string) string {
	options := append([]string{
		"--job-name=" + name,
		"--chdir=" + folder,
		"--output=" + log,
		"--open-mode=append",
		"--requeue",
		"--cpus-per-task=" + fmt.Sprint(max(1, o.CPUs)),
		"--time=" + o.Time,
		"--mem=" + o.Memory,
	}, more...)
	if o.Partition != "" {
		options = append(options, "--partition="+o.Partition)
	}
	var b strings.Builder
	b.WriteString("#!/bin/bash\n")
	for _, option := range options {
		b.WriteString("#SBATCH " + quote([]string{option}) + "\n")
	}
	return b.String()
}

func (s *Sweep) command(t Task) string {
	return quote(append([]string{s.Program}, s.args(t)...))
}

func quote(words []string) string {
	var quoted []string
	for _, w := range words {
		if strings.Trim(w,
			"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+.,:/@%") != "" ||
			w == "" {
			w = "'" + strings.ReplaceAll(w, "'", `'\''`) + "'"
		}
		quoted = append(quoted, w)
	}
	return strings.Join(quoted, " ")
}

func sbatch(args ...string) (string, error) {
	c := exec.Command("sbatch", append([]string{"--parsable"}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("sbatch %s: %w: %s", quote(args), err, strings.TrimSpace(stderr.String()))
	}
	job, _, _ := strings.Cut(strings.TrimSpace(string(out)), ";") // the cluster's name may follow
	return job, nil
}

// estimate sets time and memory, unless they are given, from the dearest task that was
// measured: three times its time and a minute, one and a half times its memory and
// 256 MB.
func (s *Sweep) estimate(o *Slurm) error {
	if o.Time != "" && o.Memory != "" {
		return nil
	}
	data, err := os.ReadFile(filepath.Join(s.Dir, costs))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	var most cost
	for line := range bytes.Lines(data) {
		var c cost
		if err := json.Unmarshal(line, &c); err != nil {
			continue // a line that was cut off
		}
		most.Seconds = max(most.Seconds, c.Seconds)
		most.Bytes = max(most.Bytes, c.Bytes)
	}
	if most.Seconds == 0 || most.Bytes == 0 && o.Memory == "" {
		return fmt.Errorf(
			"%s: no task has been measured: give -time and -memory, or first do a shard of every run "+
				"here with -pilot",
			s.Dir,
		)
	}
	if o.Time == "" {
		o.Time = fmt.Sprint(1 + int(math.Ceil(3*most.Seconds/60)))
	}
	if o.Memory == "" {
		o.Memory = fmt.Sprintf("%dM", 256+int(math.Ceil(1.5*float64(most.Bytes)/(1<<20))))
	}
	return nil
}
