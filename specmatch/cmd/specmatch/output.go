package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/shard"
	"github.com/specmatch/specmatch/tensor/files"
)

// maxWorkers bounds -workers, since each has an engine and a batch.
const maxWorkers = 1024

// stdio is the value of -in and -out that stands for standard input and output.
const stdio = "-"

// output holds the output flags of embed and predict.
type output struct {
	Out     string
	Format  string // of standard output
	Strict  bool
	Half    bool
	Shard   shard.Shard
	Join    bool
	Keep    []string
	Workers int

	input  *input
	models func() []string // paths of the model files

	scored  []string          // columns that the scorer reads, after the columns of -keep
	named   []string          // those of them that the user named
	observe func(apply.Batch) // sees every batch after it is written; may be nil
	resumed int               // records that earlier starts of the job wrote
}

func (o *output) Register(f *cli.FlagSet) {
	cli.Var(f, &o.Out, "out", setting.Text,
		"output `file`: .npy (float32, ids in OUT.ids.csv), .csv or .parquet;\n"+
			"- is standard output, in the format of -out-format")
	o.Format = formatCSV
	cli.Var(f, &o.Format, "out-format", setting.OneOf(formatCSV, formatNPY, formatRequests),
		"`format` of standard output: csv, or npy for programs: one float32 matrix per batch, with a row\n"+
			"of NaN for each unusable record; requests keeps the process open: each request on standard input is\n"+
			"a line with a number of bytes, and a file of that size; each answer a line of JSON, and its matrices")
	f.BoolVar(&o.Strict, "strict", false, "stop with an error at the first unusable record")
	f.BoolVar(&o.Half, "float16", false, "write .npy as float16: half the size, three significant digits")
	cli.Var(f, &o.Shard, "shard", shard.Parse,
		"compute shard `i/n` of the records, i from 0, and write it next to -out;\n"+shard.Usage)
	f.BoolVar(&o.Join, "collect", false,
		"join the shards that the same command wrote with -shard, without computing anything")
	cli.Var(f, &o.Keep, "keep", setting.List(setting.Text),
		"input `columns` or keys A,B to copy after the id, in a .csv")
	cli.Var(f, &o.Workers, "workers", setting.IntIn(0, maxWorkers),
		"`number` of batches to compute in parallel, each on one CPU thread, or to make and write\n"+
			"next to a GPU; 0 is one per core; the output does not change")
	f.Check(o.check)
	f.Check(o.checkPlaces)
}

// check returns an error if flags contradict each other.
func (o *output) check() error {
	ending := strings.ToLower(filepath.Ext(o.Out))
	switch {
	case o.Keep != nil && (o.Format != formatCSV || o.Out != stdio && ending != ".csv"):
		return cli.Usagef("-keep: -out %s: want a name that ends in .csv", o.Out)
	case o.Half && ending != ".npy":
		return cli.Usagef("-float16: -out %s: want a name that ends in .npy", o.Out)
	case (o.Join || o.Shard.N > 0) && (o.Out == stdio || o.input.In == stdio):
		return cli.Usagef("-shard and -collect need files for -in and -out")
	case o.Join && o.Shard.N > 0:
		return cli.Usagef("-collect joins all shards: drop -shard")
	case o.Out == "":
		return cli.Usagef("-out is needed: a .npy, .csv or .parquet file, or -")
	case o.Format == formatRequests && (o.Out != stdio || o.input.In != stdio):
		return cli.Usagef("-out-format requests needs -in - and -out -")
	case o.Out == stdio:
		return nil
	case o.Format != formatCSV:
		return cli.Usagef("-out-format %s is for -out -; the name of a file sets its format", o.Format)
	}
	return nil
}

// checkPlaces returns an error if there is no folder for the output, if there is no input, or if an output is also an
// input.
func (o *output) checkPlaces() error {
	if o.Out == stdio {
		return nil
	}
	outputs, err := apply.Outputs(o.Out, o.Shard)
	if err != nil {
		return cli.Usagef("-out %s: want a name that ends in .npy, .csv or .parquet, or -", o.Out)
	}
	if err := checkFolder("out", o.Out); err != nil {
		return err
	}
	if err := o.input.checkFile(); err != nil {
		return err
	}
	return checkOutputs("out", outputs, append(filesOfModels(o.models()...), o.input.In)...)
}

// checkFolder returns an error if there is no folder for the output of a flag.
func checkFolder(flag, path string) error {
	folder := filepath.Dir(path)
	info, err := os.Stat(folder)
	if err != nil || !info.IsDir() {
		return fmt.Errorf("-%s %s: there is no folder %s; make it first, as by mkdir -p %[3]s", flag, path, folder)
	}
	return nil
}

// checkOutputs returns a usage error of the flag if an output is also an input, or cannot be replaced.
func checkOutputs(flag string, written []string, read ...string) error {
	if err := files.Apart(written, read); err != nil {
		return cli.Usagef("-%s: %w", flag, err)
	}
	return nil
}

// checkRunOutputs calls [checkOutputs] for the files of a run directory; dir "" stands for a new one.
// It skips inputs that are directories, whose files have other names.
func checkRunOutputs(dir string, written []string, read ...string) error {
	if dir == "" {
		return nil
	}
	var paths []string
	for _, name := range append(written, runFiles...) {
		paths = append(paths, filepath.Join(dir, name))
	}
	read = slices.DeleteFunc(read, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.IsDir()
	})
	return checkOutputs("out", paths, read...)
}

// runFiles lists the files of every run directory.
var runFiles = []string{
	"config.json", "done.jsonl", "metrics.csv", "log.jsonl", "results.json", "tables.md", "report.html",
}

// write applies a model to the input, and writes a row per record, or collects shards of these rows.
func (o *output) write(ctx context.Context, label string, models []apply.Model, stdout, stderr io.Writer) error {
	m := models[0]
	// The engine holds most of the heap and reuses it for the next batch. Letting as much garbage
	// pile up would double the memory and gain nothing.
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	repeats := newIDs()
	job, err := o.job(models, repeats)
	if err != nil {
		return err
	}
	if o.Join {
		return o.collect(ctx, job, stdout)
	}
	bar := progress.Start(stderr, progress.Options{Label: label, Unit: "record"})
	defer bar.Stop()
	count := bar.Skip // records of earlier starts come first
	shown := 0
	job.Progress = func(done int) {
		count(done - shown)
		count = bar.Add
		shown = done
	}
	if o.Out == stdio {
		if o.Format == formatRequests {
			bar.Stop()
			return o.answer(ctx, job, stdout)
		}
		defer o.describe(m.Trained, stderr)
		return o.stream(ctx, job, stdout, stderr)
	}
	_, absent := os.Stat(o.Out)
	result, err := job.WriteFile(ctx, o.Out)
	bar.Stop()
	o.describe(m.Trained, stderr)
	if text := repeats.String(); text != "" {
		fmt.Fprintf(stderr, "%s: %s\n", o.input.In, text)
	}
	if absent == nil && err == nil && o.Shard.N == 0 {
		fmt.Fprintf(stderr, "%s: replaces an earlier file\n", o.Out)
	}
	o.resumed = result.Records - o.input.reading.Records
	return o.conclude(ctx, result, len(m.Columns), err, stdout, stderr)
}

// describe prints what was read, and which named fields are not there. Tasks of a model that the file may have are
// not named: the metrics say how many records have them.
func (o *output) describe(trained string, stderr io.Writer) {
	o.input.describe(trained, stderr)
	o.input.warnAbsent(append(slices.Clone(o.Keep), o.named...), stderr)
}

// job returns the job of the flags, which notes ids that are there twice.
func (o *output) job(models []apply.Model, repeats *ids) (job apply.Job, err error) {
	options, err := o.input.options()
	if err != nil {
		return job, err
	}
	options.Fields = append(slices.Clone(o.Keep), o.scored...)
	return apply.Job{
		Path:     o.input.In,
		Records:  options,
		Model:    models[0],
		Replicas: models[1:],
		Strict:   o.Strict,
		Half:     o.Half,
		Keep:     len(o.Keep),
		Written: func(b apply.Batch) {
			if o.input.ID != "" {
				repeats.add(b)
			}
			if o.observe != nil {
				o.observe(b)
			}
		},
		Shard: o.Shard,
	}, nil
}

// stream writes the rows to standard output.
func (o *output) stream(ctx context.Context, job apply.Job, stdout, stderr io.Writer) error {
	if err := cli.CheckStdout(); err != nil {
		return err
	}
	write := job.WriteCSV
	if o.Format == formatNPY {
		write = job.WriteNPY
	}
	_, err := write(ctx, stdout, stderr)
	return err
}

// conclude prints what a job that ended with err has done.
func (o *output) conclude(
	ctx context.Context, result apply.Result, columns int, err error, stdout, stderr io.Writer,
) error {
	switch {
	case err != nil:
		if ctx.Err() != nil && result.Resumes {
			fmt.Fprintf(stderr, "%d records are done; repeat the command to resume\n",
				result.Records)
		}
		return err
	case o.Shard.N > 0:
		_, err := fmt.Fprintf(stdout, "%s: shard %v is finished: %d records; join all shards with -collect\n",
			o.Out, o.Shard, result.Records)
		return err
	}
	return o.summarise(stdout, result, columns)
}

// collect joins the shards of the output.
func (o *output) collect(ctx context.Context, job apply.Job, stdout io.Writer) error {
	result, err := job.Collect(ctx, o.Out)
	if err != nil {
		return err
	}
	return o.summarise(stdout, result, len(job.Model.Columns))
}

// summarise prints the numbers of written rows and rejected records.
func (o *output) summarise(stdout io.Writer, r apply.Result, columns int) error {
	_, err := fmt.Fprintf(stdout, "%s: %d rows of %d columns\n", o.Out, r.Records-r.Rejected, columns)
	if err == nil && r.Rejected > 0 {
		_, err = fmt.Fprintf(stdout, "%s: %d of %d records could not be used\n",
			o.Out+apply.Rejected, r.Rejected, r.Records)
	}
	return err
}
