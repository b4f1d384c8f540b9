package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/shard"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor/files"
)

// builtin is the name of the encoder of molecules that is part of the program.
const builtin = "pretrained"

func openModel(path string, e cli.Engine) (m *model.Trained, be backend.Backend, err error) {
	be, err = e.Open()
	if err != nil {
		return nil, nil, err
	}
	if path == builtin {
		m, err = pretrained.Open(be)
	} else {
		m, err = model.Open(path, be)
	}
	if err != nil {
		be.Close()
		return nil, nil, err
	}
	return m, be, nil
}

func modelSum(ctx context.Context, path string) (string, error) {
	if path == builtin {
		return fmt.Sprintf("%x", sha256.Sum256(pretrained.Model)), nil
	}
	return dataset.SumFile(ctx, path)
}

type output struct {
	Out    string
	Format string // on standard output
	Strict bool
	Half   bool
	Shard  shard.Shard
	Join   bool
	Keep   []string

	// known are the columns that seen needs of every batch, behind those that are kept; earlier is how
	// many records an earlier start has written.
	known   []string
	seen    func(apply.Batch)
	earlier int

	in     *input
	models func() []string // that are read, too
}

func (o *output) Register(f *cli.FlagSet) {
	cli.Var(f, &o.Out, "out", setting.Text,
		"`file` to write: .npy (float32, with the ids in OUT.ids.csv), .csv or .parquet; - is standard "+
			"output,\n"+
			"in the form of -out-format")
	o.Format = "csv"
	cli.Var(f, &o.Format, "out-format", setting.OneOf("csv", "npy"),
		"`format` on standard output: csv, or npy for programs: a matrix of float32 for each batch of "+
			"records, one behind\n"+
			"the other, in which a record that cannot be read has a row of NaN")
	f.BoolVar(&o.Strict, "strict", false, "end with an error at the first record that cannot be read")
	f.BoolVar(&o.Half, "float16", false, "write .npy as float16: half the bytes, and three digits")
	cli.Var(f, &o.Shard, "shard", shard.Parse,
		"compute a share `i/n` of the records, i from 0, and write it beside -out; auto takes i and n "+
			"from\n"+
			"SLURM_ARRAY_TASK_ID and _COUNT, auto/n the i from there or from JOB_COMPLETION_INDEX")
	f.BoolVar(&o.Join, "collect", false,
		"join the shares that the same command with -shard has written, computing nothing")
	cli.Var(f, &o.Keep, "keep", setting.List(setting.Text),
		"`columns` A,B or keys of the records that are written behind the id, in .csv")
	f.Check(func() error {
		switch {
		case o.Keep != nil &&
			(o.Format != "csv" || o.Out != "-" && !strings.HasSuffix(strings.ToLower(o.Out), ".csv")):
			return cli.Usagef("-keep: -out %s: want a name that ends in .csv", o.Out)
		case o.Half && !strings.HasSuffix(strings.ToLower(o.Out), ".npy"):
			return cli.Usagef("-float16: -out %s: want a name that ends in .npy", o.Out)
		case (o.Join || o.Shard.N > 0) && (o.Out == "-" || o.in.In == "-"):
			return cli.Usagef("-shard and -collect need a file for -in and for -out")
		case o.Join && o.Shard.N > 0:
			return cli.Usagef("-collect joins all shares: leave -shard out")
		}
		if o.Out == "" {
			return cli.Usagef("-out is needed: a .npy, .csv or .parquet file, or -")
		}
		if o.Out == "-" {
			return nil
		}
		if o.Format != "csv" {
			return cli.Usagef("-out-format %s is for -out -; the name of a file tells its format", o.Format)
		}
		outputs, err := apply.Outputs(o.Out)
		if err != nil {
			return cli.Usagef("-out %s: want a name that ends in .npy, .csv or .parquet, or -", o.Out)
		}
		return apart(outputs, append(o.models(), o.in.In)...)
	})
}

// apart returns an error of the command line if a file that is to be written is one that is
// read, or a folder.
func apart(written []string, read ...string) error {
	if err := files.Apart(written, read); err != nil {
		return cli.Usagef("-out: %w", err)
	}
	return nil
}

// apartRun is [apart] for what a run leaves in its directory; "" is a new one. Of a folder
// that is read, the files have other names.
func apartRun(dir string, written []string, read ...string) error {
	if dir == "" {
		return nil
	}
	for i, name := range written {
		written[i] = filepath.Join(dir, name)
	}
	read = slices.DeleteFunc(read, func(name string) bool {
		info, err := os.Stat(name)
		return err == nil && info.IsDir()
	})
	return apart(written, read...)
}

func (o *output) write(ctx context.Context, label string, m apply.Model, stdout, stderr io.Writer) error {
	// Most of the heap is the engine's, which keeps what it has for the next batch, so
	// that leaving much garbage beside it would double the memory and gain nothing.
	defer debug.SetGCPercent(debug.SetGCPercent(5))
	options, err := o.in.options()
	if err != nil {
		return err
	}
	options.Fields = append(slices.Clone(o.Keep), o.known...)
	bar := progress.Start(stderr, progress.Options{Label: label, Unit: "record"})
	defer bar.Stop()
	count := bar.Skip
	shown := 0
	job := apply.Job{
		Path:    o.in.In,
		Records: options,
		Model:   m,
		Strict:  o.Strict,
		Half:    o.Half,
		Keep:    len(o.Keep),
		Seen:    o.seen,
		Shard:   o.Shard,
		Progress: func(done int) {
			count(done - shown)
			count = bar.Add
			shown = done
		},
	}
	if o.Out == "-" {
		to := job.WriteCSV
		if o.Format == "npy" {
			to = job.WriteNPY
		}
		_, err := to(ctx, stdout, stderr)
		o.in.compare(m.Trained, stderr)
		return err
	}
	r, err := job.WriteFile(ctx, o.Out)
	bar.Stop()
	o.in.compare(m.Trained, stderr)
	o.earlier = r.Records - o.in.reading.Records
	if err != nil {
		if ctx.Err() != nil && r.Resumes {
			fmt.Fprintf(stderr, "%d records are done: the same command goes on with the others\n", r.Records)
		}
		return err
	}
	if o.Shard.N > 0 {
		_, err := fmt.Fprintf(stdout, "share %v of %s is finished: %d records\n", o.Shard, o.Out, r.Records)
		return err
	}
	return o.say(stdout, r, len(m.Columns))
}

func (o *output) collect(ctx context.Context, stdout io.Writer) error {
	r, columns, err := apply.Collect(ctx, o.Out, o.Half)
	if err != nil {
		return err
	}
	return o.say(stdout, r, columns)
}

func (o *output) say(stdout io.Writer, r apply.Result, columns int) error {
	fmt.Fprintf(stdout, "%s: %d rows of %d columns\n", o.Out, r.Records-r.Rejected, columns)
	if r.Rejected > 0 {
		fmt.Fprintf(stdout, "%s: %d of %d records could not be used\n",
			o.Out+apply.Rejected, r.Rejected, r.Records)
	}
	return nil
}

func setupEmbed(f *cli.FlagSet) cli.Action {
	in := new(input)
	model := builtin
	o := &output{in: in, models: func() []string { return []string{model} }}
	var engine cli.Engine
	f.Add(in, o)
	cli.Var(f, &model, "model", setting.Text,
		"model `file`, such as train leaves; of one that predicts, the encoder;\n"+
			"pretrained is the encoder of molecules that is part of this program")
	readout := readoutAuto
	cli.Var(f, &readout, "readout", readoutOf(readoutAuto, readoutOwn),
		"`LAYERS:KINDS` of a vector, such as all:sum,mean,max, last:sum or 1,3:max: which layers of the "+
			"encoder are read, and\n"+
			"how their nodes are put together; own is the encoder's own way, and auto all:sum,mean,max "+
			"for molecules and own\n"+
			"for graphs, unless the model file has another")
	features := []apply.Feature{apply.Encoder}
	cli.Var(f, &features, "features", setting.List(apply.ParseFeature),
		"`features A,B` of molecules that make a vector, one behind the other: "+apply.FeatureWords+
			",\n"+
			"the 52 descriptors, Crippen's logP and MR, and the counts or bits of Morgan "+
			"fingerprints as RDKit has them (2:2048 if left out)")
	memory := apply.Memory >> 20
	cli.Var(f, &memory, "memory", setting.Int(0),
		"`MB` of memory for environments of atoms that come again, which makes molecules faster;\n"+
			"vectors do not depend on it")
	f.Add(&engine)
	return func(ctx context.Context, stdout, stderr io.Writer) error {
		if o.Join {
			return o.collect(ctx, stdout)
		}
		if err := train.MemoryFits("remembering environments", float64(memory)*(1<<20)); err != nil {
			return cli.Usagef("-memory %d: %w", memory, err)
		}
		m, be, err := openModel(model, engine)
		if err != nil {
			return err
		}
		defer be.Close()
		switch a := m.Card.Encoder; {
		case readout != readoutAuto && readout != readoutOwn:
			m, err = m.WithReadout(gnn.Readout(readout))
		case readout == readoutAuto && a.Kind == gnn.KindChemGIN && a.Readout == "":
			m, err = m.WithReadout(gnn.ReadoutAll)
		}
		if err != nil {
			return cli.Usagef("-readout: %w", err)
		}
		rows, err := apply.Features(m.Remembering(memory<<20), features...)
		if err != nil {
			return cli.Usagef("-features: %s: %w", model, err)
		}
		return o.write(ctx, "embed", rows, stdout, stderr)
	}
}

func needModel(paths ...string) error {
	if len(paths) == 0 || paths[0] == "" {
		return cli.Usagef("-model is needed: a file such as finetune leaves")
	}
	return nil
}

func setupPredict(f *cli.FlagSet) cli.Action {
	in := new(input)
	var paths []string
	o := &output{in: in, models: func() []string { return paths }}
	var engine cli.Engine
	f.Add(in, o)
	cli.Var(f, &paths, "model", setting.List(setting.Text),
		"model `files A,B` that finetune has left; of several the mean is given, and with _std behind\n"+
			"the name the standard deviation over them")
	var level float64
	cli.Var(f, &level, "level", setting.Float(0, 0.999),
		"`probability`, such as 0.9, of the intervals NAME_low to NAME_high of numbers, or the sets of "+
			"classes, NAME_in, that\n"+
			"are written beside predictions; 0 writes none")
	var explain string
	cli.Var(f, &explain, "explain", setting.Text,
		"`file` to write, too, as JSON Lines: for each record what each node, or atom, contributes to the "+
			"prediction, by how\n"+
			"much it falls without it; of one model")
	var targets []string
	cli.Var(f, &targets, "target", setting.List(setting.Text),
		"`columns` A,B or keys with what the model predicts, where it is known: metrics are printed; none "+
			"are those that\n"+
			"the model has learned, where the file has them, but for classes")
	distance := f.Bool("distance", false,
		"write the distance to the records that the model was trained on: 1 is usual, and more is less "+
			"like them")
	f.Add(&engine)
	f.Check(func() error {
		if len(paths) > 1 && (level > 0 || *distance || explain != "") {
			return cli.Usagef("-level, -distance and -explain are of one model: give one to -model")
		}
		if explain != "" && (o.Shard.N > 0 || o.Join) {
			return cli.Usagef("-explain goes without -shard and -collect")
		}
		if err := needModel(paths...); err != nil || explain == "" {
			return err
		}
		return apart([]string{explain}, append(paths, in.In, o.Out)...)
	})
	return func(ctx context.Context, stdout, stderr io.Writer) error {
		if o.Join {
			return o.collect(ctx, stdout)
		}
		var models []*model.Trained
		for _, path := range paths {
			m, be, err := openModel(path, engine)
			if err != nil {
				return err
			}
			defer be.Close()
			if m.Card.Head == nil {
				return fmt.Errorf(
					"%s: is an encoder without a head: embed takes it, and finetune makes a model that "+
						"predicts of it",
					path,
				)
			}
			in.Ignore = append(in.Ignore, m.Card.Head.Tasks...)
			models = append(models, m)
			if !apply.Alike(models[0].Card, m.Card) {
				return cli.Usagef("-model: %s and %s predict different things, or from different features",
					paths[0], path)
			}
		}
		rows, err := apply.Predictor(models...)
		if err == nil && (level > 0 || *distance) {
			rows, err = apply.Sure(models[0], level, *distance)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", paths[0], err)
		}
		s, err := o.score(ctx, *models[0].Card.Head, targets)
		if err != nil {
			return err
		}
		err = o.write(ctx, "predict", rows, stdout, stderr)
		if err == nil && s != nil {
			err = s.write(map[bool]io.Writer{true: stderr, false: stdout}[o.Out == "-"], o.earlier)
		}
		if err != nil || explain == "" {
			return err
		}
		options, err := in.options()
		if err != nil {
			return err
		}
		job := apply.Job{Path: in.In, Records: options, Model: rows}
		return files.Write(explain, func(w io.Writer) error {
			return job.Explain(ctx, models[0], w)
		})
	}
}

func setupInspect(f *cli.FlagSet) cli.Action {
	path := builtin
	cli.Var(f, &path, "model", setting.Text,
		"model `file` to look at; pretrained is the encoder of molecules that is part of this program")
	return func(ctx context.Context, stdout, _ io.Writer) error {
		m, be, err := openModel(path, cli.Engine{Backend: "cpu"})
		if err != nil {
			return err
		}
		defer be.Close()
		sum, err := modelSum(ctx, path)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%-11s %s\n%-11s %s\n%s",
			"file", files.Printable(path), "sha256", sum, apply.Describe(m.Card))
		return err
	}
}
