package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/specmatch/train"
)

// embedding is the command embed.
type embedding struct {
	input
	output
	engine   cli.Engine
	Model    string
	Readout  string
	Features []apply.Feature
	Memory   int // MB
}

func setupEmbed(f *cli.FlagSet) cli.Action {
	x := &embedding{
		Model:    builtin,
		Readout:  readoutAuto,
		Features: []apply.Feature{apply.Encoder},
		Memory:   apply.Memory >> 20,
	}
	x.output.input = &x.input
	x.output.models = func() []string { return []string{x.Model} }
	f.Common("in", "out", "model", "features", "readout", "id", "smiles-column", "keep", "workers",
		"float16", "shard", "collect")
	f.Arguments("in", "out")
	f.Section("Input", func() { f.Add(&x.input) })
	f.Section("Output", func() { f.Add(&x.output) })
	f.Section("Model", func() { x.registerModel(f) })
	f.Section("Engine", func() { f.Add(&x.engine) })
	return x.run
}

// registerModel adds the flags that say how a vector is made.
func (x *embedding) registerModel(f *cli.FlagSet) {
	cli.Var(f, &x.Model, "model", setting.Text,
		"model `file` with the encoder, from train or finetune; pretrained is the built-in encoder for molecules,\n"+
			"and pretrained:zinc the one of earlier versions")
	cli.Var(f, &x.Readout, "readout", readoutOf(readoutAuto, readoutOwn),
		"`readout` LAYERS:KINDS of the vectors, such as all:sum,mean,max, last:sum or 1,3:max: the layers to\n"+
			"read and how to pool their nodes; own is the encoder's readout; auto is the readout in the\n"+
			"model file, or else all:sum,mean,max for molecules and own for graphs")
	cli.Var(f, &x.Features, "features", setting.List(apply.ParseFeature),
		"`features A,B` of molecules to concatenate into a vector:\n"+apply.FeatureWords+",\n"+
			"that is the 52 descriptors, Crippen's logP and MR, and Morgan counts or bits as in RDKit\n"+
			"(2:2048 by default)")
	cli.Var(f, &x.Memory, "memory", setting.Int(0),
		"`MB` of memory for the cache of atom environments of all workers, which speeds up molecules;\n"+
			"by default at most a quarter of the memory that the process can have")
	f.Check(func() error {
		if !f.Given("memory") {
			x.Memory = defaultMemory(train.Memory())
		}
		return nil
	})
}

// defaultMemory returns the default of -memory in MB, where the process can have so many bytes: a
// quarter of them, but not more than [apply.Memory]. Weights, molecules and outputs need the rest.
func defaultMemory(available float64) int {
	return int(min(apply.Memory, available/4)) >> 20
}

// checkMemory returns an error if the process cannot have the cache. To join shards computes nothing, and needs none.
func (x *embedding) checkMemory() error {
	if x.Join {
		return nil
	}
	if err := train.MemoryFits("the cache of atom environments", float64(x.Memory)*(1<<20)); err != nil {
		return cli.Usagef("-memory %d: %w", x.Memory, err)
	}
	return nil
}

func (x *embedding) run(ctx context.Context, stdout, stderr io.Writer) error {
	if err := x.checkMemory(); err != nil {
		return err
	}
	path, err := oneModelFile(x.Model)
	if err != nil {
		return err
	}
	x.Model = path
	opened, err := x.openReplicas(x.engine, x.Model)
	if err != nil {
		return err
	}
	defer opened.Close()
	m, err := x.read(opened.models[0])
	if err != nil {
		return err
	}
	var replicas []apply.Model
	for _, copied := range opened.copies(m.Remembering(x.Memory << 20)) {
		rows, err := apply.Features(copied[0], x.Features...)
		if err != nil {
			return cli.Usagef("-features: %s: %w", x.Model, err)
		}
		replicas = append(replicas, rows)
	}
	if err := x.output.write(ctx, "embed", replicas, stdout, stderr); err != nil {
		return err
	}
	return x.writeNext(stdout)
}

// writeNext prints how to read the vectors.
func (x *embedding) writeNext(w io.Writer) (err error) {
	switch ending := strings.ToLower(filepath.Ext(x.Out)); {
	case x.Out == stdio || x.Shard.N > 0:
	case ending == ".npy":
		_, err = fmt.Fprintf(w, "next: numpy.load(%q) in Python; the ids are in %s.ids.csv\n", x.Out, x.Out)
	default:
		_, err = fmt.Fprintf(w, "next: pandas.read_%s(%q) in Python\n", ending[1:], x.Out)
	}
	return err
}

// read returns a model with the readout that is asked for.
func (x *embedding) read(m *model.Trained) (*model.Trained, error) {
	readout := gnn.Readout(x.Readout)
	switch encoder := m.Card.Encoder; {
	case x.Readout == readoutOwn:
		return m, nil
	case x.Readout == readoutAuto && (encoder.Kind != gnn.KindChemGIN || encoder.Readout != ""):
		return m, nil
	case x.Readout == readoutAuto:
		readout = gnn.ReadoutAll
	}
	m, err := m.WithReadout(readout)
	if err != nil {
		return nil, cli.Usagef("-readout: %w", err)
	}
	return m, nil
}
