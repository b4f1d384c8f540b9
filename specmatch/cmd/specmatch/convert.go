package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/tensor/files"
)

// conversion is the command convert.
type conversion struct {
	In, Like, Out string
	engine        cli.Engine
}

func setupConvert(f *cli.FlagSet) cli.Action {
	x := new(conversion)
	cli.Var(f, &x.In, "in", setting.Text,
		"`file` with a PyTorch state_dict: .pth from torch.save, or .safetensors;\n"+
			"pretrained copies the built-in encoder for molecules; the directory of a run of finetune has the\n"+
			"models of an ensemble")
	cli.Var(f, &x.Like, "like", setting.Text,
		"model `file` with the architecture, such as one from train that PyTorch trained further;\n"+
			"by default the weights are of a GNN of Hu et al. or GraphCL, for molecules or proteins")
	cli.Var(f, &x.Out, "out", setting.Text,
		"model `file` to write: .safetensors, or .zip for an ensemble, which is one file for all models of a run")
	f.Add(&x.engine)
	f.Arguments("in", "out")
	f.Check(func() error {
		_, isBuiltin, _ := builtinEncoder(x.In)
		switch {
		case x.In == "":
			return cli.Usagef("-in is needed: a .pth or .safetensors file from PyTorch")
		case isBuiltin && x.Like != "":
			return cli.Usagef("-in %s is a complete model: drop -like", x.In)
		case !isBuiltin && x.Like == "" && strings.HasSuffix(x.Out, ensembleEnding):
			if info, err := os.Stat(x.In); err == nil && info.IsDir() { // of which model files are read
				return checkOutputs("out", []string{x.Out})
			}
		case !strings.HasSuffix(x.Out, ".safetensors"):
			return cli.Usagef("-out %q: want a name that ends in .safetensors", x.Out)
		}
		return checkOutputs("out", []string{x.Out}, x.In, x.Like)
	})
	return x.run
}

// ensembleEnding ends the name of an ensemble file.
const ensembleEnding = ".zip"

func (x *conversion) run(ctx context.Context, stdout, _ io.Writer) error {
	if strings.HasSuffix(x.Out, ensembleEnding) {
		return x.pack(stdout)
	}
	if info, err := os.Stat(x.In); err == nil && info.IsDir() {
		return cli.Usagef("-in %s: this is a directory; want a file of weights, or -out NAME.zip for an ensemble "+
			"of its models", x.In)
	}
	if encoder, ok, err := builtinEncoder(x.In); ok {
		if err != nil {
			return cli.Usagef("-in %s: %w", x.In, err)
		}
		err := files.Write(x.Out, func(w io.Writer) error {
			_, err := w.Write(encoder.File)
			return err
		})
		if err == nil {
			_, err = fmt.Fprintf(stdout, "%s: the built-in encoder %s for molecules\n"+
				"next: specmatch inspect -model %[1]s\n", x.Out, encoder.Name)
		}
		return err
	}
	be, err := x.engine.Open()
	if err != nil {
		return err
	}
	defer be.Close()
	m, err := x.open(be)
	if err != nil {
		return err
	}
	sum, err := dataset.SumFile(ctx, x.In)
	if err != nil {
		return err
	}
	m.Card.Provenance = model.Provenance{Method: "converted", Options: map[string]string{"weights": sum}}
	if err := m.Save(x.Out); err != nil {
		return err
	}
	encoder := m.Card.Encoder
	_, err = fmt.Fprintf(stdout, "%s: %s, %d layers of width %d\nnext: specmatch inspect -model %[1]s\n",
		x.Out, encoder.Kind, encoder.Layers, encoder.Hidden)
	return err
}

// pack writes the models of a directory as one file.
func (x *conversion) pack(stdout io.Writer) error {
	info, err := os.Stat(x.In)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return cli.Usagef("-out %s is for an ensemble of the models in a directory, and -in %s is a file; want a "+
			"name that ends in .safetensors", x.Out, x.In)
	}
	paths, err := modelFiles(x.In)
	if err != nil {
		return err
	}
	var members []model.Member
	var first model.Card
	for i, path := range paths {
		m, err := openModel(path, cli.Engine{Backend: "cpu"})
		if err != nil {
			return err
		}
		card := m.Card
		m.Close()
		if card.Head == nil {
			return fmt.Errorf("%s: an encoder without a head cannot predict, as the models of an ensemble do", path)
		}
		if i == 0 {
			first = card
		}
		if !apply.Alike(first, card) {
			return fmt.Errorf("%s and %s predict different things, or from different features", paths[0], path)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		members = append(members, model.Member{
			Name: filepath.Base(path),
			File: text,
		})
	}
	err = files.Write(x.Out, func(w io.Writer) error {
		return model.WriteEnsemble(w, members...)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %d models of %s\n%s",
		x.Out, len(members), strings.Join(first.Head.Columns(), ", "), nextPredict(x.Out))
	return err
}

// open returns the model with the weights of -in, and the architecture of -like or of Hu et al.
func (x *conversion) open(be backend.Backend) (*model.Trained, error) {
	if x.Like == "" {
		m, err := model.OpenHu(x.In, be)
		if errors.Is(err, model.ErrNotHu) {
			err = fmt.Errorf("%w; give a model of the same architecture with -like", err)
		}
		return m, err
	}
	m, err := model.Open(x.Like, be)
	if err == nil {
		err = m.LoadWeights(x.In)
	}
	return m, err
}
