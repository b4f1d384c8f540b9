package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/tensor/files"
)

func setupConvert(f *cli.FlagSet) cli.Action {
	var in, out, like string
	var engine cli.Engine
	cli.Var(f, &in, "in", setting.Text,
		"`file` with a state_dict of PyTorch: .pth, as torch.save writes it, or .safetensors; pretrained\n"+
			"is the encoder of molecules that is part of this program, as it is")
	cli.Var(f, &like, "like", setting.Text,
		"model `file` that the weights are for, such as one that train has left and PyTorch has trained "+
			"on;\n"+
			"without it, they are of a GNN of Hu et al. or GraphCL, for molecules or proteins")
	cli.Var(f, &out, "out", setting.Text, "model `file` to write: .safetensors")
	f.Add(&engine)
	f.Check(func() error {
		switch {
		case in == "":
			return cli.Usagef("-in is needed: a .pth or .safetensors file that PyTorch has written")
		case !strings.HasSuffix(out, ".safetensors"):
			return cli.Usagef("-out %q: want a name that ends in .safetensors", out)
		}
		return apart([]string{out}, in, like)
	})
	return func(ctx context.Context, stdout, _ io.Writer) error {
		if in == builtin {
			if like != "" {
				return cli.Usagef("-in %s is a model: leave -like out", builtin)
			}
			return files.Write(out, func(w io.Writer) error {
				_, err := w.Write(pretrained.Model)
				return err
			})
		}
		be, err := engine.Open()
		if err != nil {
			return err
		}
		defer be.Close()
		var m *model.Trained
		if like == "" {
			m, err = model.OpenHu(in, be)
			if errors.Is(err, model.ErrNotHu) {
				err = fmt.Errorf("%w; -like names a model of another kind", err)
			}
		} else if m, err = model.Open(like, be); err == nil {
			err = m.LoadWeights(in)
		}
		if err != nil {
			return err
		}
		sum, err := dataset.SumFile(ctx, in)
		if err != nil {
			return err
		}
		m.Card.Provenance = model.Provenance{Method: "converted", Options: map[string]string{"weights": sum}}
		if err := m.Save(out); err != nil {
			return err
		}
		a := m.Card.Encoder
		_, err = fmt.Fprintf(stdout, "%s: %s, %d layers of width %d\n", out, a.Kind, a.Layers, a.Hidden)
		return err
	}
}
