package method

import (
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/train"
	"github.com/specmatch/specmatch/tensor"
)

// BenchmarkEpoch is an epoch of every method in every regime, with the regime's encoder,
// intended augmentations, and the batch and rate that a [Setup] has by default, on real
// sets that lie beside the project's root. It reports the time as a multiple of GraphCL's.
//
//	go test -run '^$' -bench Epoch -cpu 1 -benchtime 3x ./specmatch/method
func BenchmarkEpoch(b *testing.B) {
	skip := func(b *testing.B, err error) {
		if errors.Is(err, fs.ErrNotExist) {
			b.Skipf("no real data here: %v", err)
		} else if err != nil {
			b.Fatal(err)
		}
	}
	const shared = "../../../shared/data/"
	proteins := func(b *testing.B) ([]*graph.Graph, int) {
		ds, err := dataset.Open(b.Context(), filepath.FromSlash(shared+"tu"), "PROTEINS", dataset.Options{})
		skip(b, err)
		return ds.Graphs, ds.FeatureWidth
	}
	for _, c := range []struct {
		regime  Regime
		encoder gnn.Architecture
		graphs  func(b *testing.B) ([]*graph.Graph, int)
	}{
		{Unsupervised, gnn.Architecture{Kind: gnn.KindGIN, Hidden: 32, Layers: 3}, proteins},
		{SemiSupervised, gnn.Architecture{Kind: gnn.KindResGCN, Hidden: 128, Layers: 5, Residual: true}, proteins},
		{Transfer, gnn.Architecture{Kind: gnn.KindChemGIN, Hidden: 300, Layers: 5}, func(b *testing.B) ([]*graph.Graph, int) {
			t, err := records.ReadAll(b.Context(), filepath.FromSlash(shared+"moleculenet/bbbp.csv.gz"), records.Options{})
			skip(b, err)
			return t.Set.Graphs, 0
		}},
	} {
		b.Run(string(c.regime), func(b *testing.B) {
			graphs, width := c.graphs(b)
			c.encoder.In = width
			options := Options{"graphcl-code": false}
			var graphCLs float64 // seconds of an epoch
			for _, m := range append([]*Method{graphCL}, All(c.regime)...) {
				if m.OnRequest || m == untrained || m == graphCL && graphCLs > 0 {
					continue
				}
				b.Run(m.Name, func(b *testing.B) {
					be := cpu.New(tensor.Float32)
					defer be.Close()
					l, err := m.New(Setup{Backend: be, Regime: c.regime, Encoder: c.encoder, Graphs: graphs, Options: options})
					if err != nil {
						b.Fatal(err)
					}
					defer l.Close()
					b.ResetTimer()
					if _, err := train.Run(b.Context(), l, train.Options{Epochs: b.N}, func(train.Progress) error { return nil }); err != nil {
						b.Fatal(err)
					}
					epoch := b.Elapsed().Seconds() / float64(b.N)
					if m == graphCL {
						graphCLs = epoch
					}
					if graphCLs > 0 {
						b.ReportMetric(epoch/graphCLs, "×graphcl")
					}
				})
			}
		})
	}
}
