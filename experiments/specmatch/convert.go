package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch"
)

func setupConvert(f *cli.FlagSet) action {
	var in, out string
	var engine cli.Engine
	size := encoder{Hidden: 300, Layers: 5}
	cli.Var(f, &in, "in", cli.Text, "safetensors `file` with the state_dict of a GNN of Hu et al.")
	cli.Var(f, &out, "out", cli.Text, "model `file` to write: .safetensors")
	f.Add(&size, &engine)
	f.Check(func() error {
		switch {
		case in == "":
			return cli.Usagef("-in is needed: a safetensors file that PyTorch has written")
		case !strings.HasSuffix(in, ".safetensors"):
			return cli.Usagef("-in %s: want a .safetensors file; in Python, safetensors.torch.save_file(torch.load(%q), \"weights.safetensors\")", in, in)
		case !strings.HasSuffix(out, ".safetensors"):
			return cli.Usagef("-out %q: want a name that ends in .safetensors", out)
		case out == in:
			return cli.Usagef("-out %s is the file that -in reads", out)
		}
		return nil
	})
	return func(ctx context.Context, stdout, _ io.Writer) error {
		be, err := engine.Open()
		if err != nil {
			return err
		}
		defer be.Close()
		a := gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: size.Hidden, Layers: size.Layers}
		e, err := a.New(be, rand.New(rand.NewPCG(0, 0))) // whose weights are replaced
		if err != nil {
			return err
		}
		if err := specmatch.LoadEncoder(in, e); err != nil {
			return fmt.Errorf("%w (an encoder of -layers %d -hidden %d)", err, size.Layers, size.Hidden)
		}
		sum, err := dataset.SumFile(ctx, in)
		if err != nil {
			return err
		}
		m := &specmatch.Trained{Encoder: e, Card: specmatch.Card{Provenance: specmatch.Provenance{
			Method: "converted", Options: map[string]string{"weights": sum},
		}}}
		if err := m.Save(out); err != nil {
			return err
		}
		_, err = fmt.Fprintf(stdout, "%s: %s, %d layers of width %d\n", out, a.Kind, a.Layers, a.Hidden)
		return err
	}
}
