package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch"
)

func setupConvert(f *cli.FlagSet) action {
	var in, out, like string
	var engine cli.Engine
	cli.Var(f, &in, "in", cli.Text, "`file` with a state_dict of PyTorch: .pth, as torch.save writes it, or .safetensors")
	cli.Var(f, &like, "like", cli.Text, "model `file` that the weights are for, such as one that train has left and PyTorch has trained on;\nwithout it, they are of a GNN of Hu et al. or GraphCL, for molecules or proteins")
	cli.Var(f, &out, "out", cli.Text, "model `file` to write: .safetensors")
	f.Add(&engine)
	f.Check(func() error {
		switch {
		case in == "":
			return cli.Usagef("-in is needed: a .pth or .safetensors file that PyTorch has written")
		case !strings.HasSuffix(out, ".safetensors"):
			return cli.Usagef("-out %q: want a name that ends in .safetensors", out)
		case out == in || out == like:
			return cli.Usagef("-out %s is a file that is read", out)
		}
		return nil
	})
	return func(ctx context.Context, stdout, _ io.Writer) error {
		be, err := engine.Open()
		if err != nil {
			return err
		}
		defer be.Close()
		m, err := empty(in, like, be)
		if err != nil {
			return err
		}
		if err := m.LoadWeights(in); err != nil {
			return err
		}
		sum, err := dataset.SumFile(ctx, in)
		if err != nil {
			return err
		}
		m.Card.Provenance = specmatch.Provenance{Method: "converted", Options: map[string]string{"weights": sum}}
		if err := m.Save(out); err != nil {
			return err
		}
		a := m.Card.Encoder
		_, err = fmt.Fprintf(stdout, "%s: %s, %d layers of width %d\n", out, a.Kind, a.Layers, a.Hidden)
		return err
	}
}

// empty returns the model that the weights of a file are for: that of another model
// file, or the encoder of Hu et al. that their names and shapes tell.
func empty(path, like string, be backend.Backend) (*specmatch.Trained, error) {
	if like != "" {
		return specmatch.Open(like, be)
	}
	f, err := nn.ReadFile(path)
	if err != nil {
		return nil, err
	}
	kind, table := gnn.KindChemGIN, "x_embedding1.weight"
	shape, ok := f.Shape(table)
	if !ok {
		kind, table = gnn.KindBioGIN, "gnns.0.input_node_embeddings.weight"
		shape, ok = f.Shape(table)
	}
	if !ok || len(shape) != 2 {
		first := cmp.Or(append(f.Names(), "no tensor")[0], `""`)
		return nil, fmt.Errorf("%s: has %s, but no table x_embedding1.weight or gnns.0.input_node_embeddings.weight of a GNN of Hu et al.; -like names a model of another kind", path, first)
	}
	a := gnn.Architecture{Kind: kind, Hidden: int(shape[1]), Center: kind == gnn.KindBioGIN}
	for ok {
		a.Layers++
		_, ok = f.Shape(fmt.Sprintf("gnns.%d.mlp.0.weight", a.Layers))
	}
	tensors, values := 0, 0
	if err := a.Check(); err == nil {
		tensors, values = a.Size()
	}
	if tensors == 0 || values/4 > f.Values()+1<<12 { // before memory is taken for it
		return nil, fmt.Errorf("%s: %s is %v, which the other tensors do not fit", path, table, shape)
	}
	e, err := a.New(be, rand.New(rand.NewPCG(0, 0))) // whose weights are replaced
	if err != nil {
		return nil, err
	}
	return &specmatch.Trained{Encoder: e, Card: specmatch.Card{Encoder: a}}, nil
}
