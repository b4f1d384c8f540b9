package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/specmatch/specmatch/gnn/classical"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/setting"
)

type settings struct {
	classical.Options
	ginEpochs int
}

func defaultSettings() settings { return settings{classical.Defaults(), 100} }

func (s *settings) Register(f *cli.FlagSet) {
	property := "s"
	cli.Var(f, &s.Rounds, "rounds", setting.Int(0),
		"largest number of WL rounds `h`; each fold selects the number up to h")
	cli.Var(f, &s.Dim, "dim", setting.Int(1),
		"dimension `D` of the vectors of node2vec, sub2vec and graph2vec")
	cli.Var(f, &s.Epochs, "epochs", setting.Int(1), "number of `epochs` of graph2vec")
	cli.Var(f, &s.Walks, "walks", setting.Int(1), "number of node2vec `walks` per node")
	cli.Var(f, &s.WalkLength, "walk-length", setting.Int(2), "number of `nodes` of a node2vec walk")
	cli.Var(f, &s.Steps, "steps", setting.Int(2), "number of `steps` of a graph's walk in sub2vec")
	cli.Var(f, &property, "property", setting.OneOf("n", "s"),
		"`property` that sub2vec preserves: n for neighbourhoods, s for structure (degree classes)")
	cli.Var(f, &s.ginEpochs, "gin-epochs", setting.Int(1),
		"largest number of `epochs` of the supervised GIN in a fold")
	cli.Var(f, &s.TokenLimit, "token-limit", setting.Int(0),
		"number of `words` of a document that sub2vec and graph2vec read, 0 for all; gensim reads 10000")
	f.Check(func() error {
		s.Structural = property == "s"
		switch {
		case s.Rounds > 10:
			return cli.Usagef("-rounds %d: want at most 10", s.Rounds)
		case s.Dim > 8192:
			return cli.Usagef("-dim %d: want at most 8192", s.Dim)
		}
		return nil
	})
}

// method is one row of the table: features of package classical, or a way to classify.
type method struct {
	*classical.Method
	// classify, of a method without features, returns the mean accuracy over the
	// outer folds, a fraction.
	classify func(
		ctx context.Context, s *settings, ds *dataset.Dataset, seed int, outer []dataset.Fold,
	) (float64, error)
}

var methods = func() (methods []*method) {
	for _, m := range classical.Methods() {
		methods = append(methods, &method{Method: m})
	}
	methods = slices.Insert(methods, 0, &method{
		&classical.Method{Name: "majority", Title: "majority class"},
		majority,
	})
	return append(methods, &method{
		&classical.Method{Name: "gin", Title: "GIN, supervised", Seeded: true},
		gin,
	})
}()

func methodNames() (names []string) {
	for _, m := range methods {
		names = append(names, m.Name)
	}
	return names
}

func methodOf(name string) *method {
	return methods[slices.IndexFunc(methods, func(m *method) bool {
		return m.Name == name
	})]
}

// refuse is the error about a method that would take too long for a seed: at ten to thirty
// million vectors a second, by the size of the vocabulary, seven to twenty minutes, or as
// many of the supervised GIN, at some hundred thousand nodes a second.
func (m *method) refuse(s *settings, ds *dataset.Dataset) error {
	const mostUpdates, mostPasses = 1.2e10, 2e8
	if m.Name == "gin" {
		if passes := 10 * float64(dataset.Stats(ds).Nodes) * float64(s.ginEpochs); passes > mostPasses {
			return cli.Usagef("%.1e nodes to train on a seed, at most %.1e are taken on: fewer epochs "+
				"make it smaller, as -gin-epochs %d",
				passes, mostPasses, max(1, int(mostPasses/passes*float64(s.ginEpochs))))
		}
		return nil
	}
	updates := m.Updates(ds.Graphs, s.Options)
	if updates <= mostUpdates {
		return nil
	}
	advice := map[string]string{
		"node2vec":  "fewer or shorter walks make it smaller, as -walks 1 -walk-length 20",
		"sub2vec":   "fewer -steps make it smaller, or a -token-limit",
		"graph2vec": fmt.Sprintf("fewer -epochs make it smaller, as -epochs %d", max(1, s.Epochs/10)),
	}
	return cli.Usagef("%.1e updates of vectors a seed, at most %.1e are taken on: %s",
		updates, mostUpdates, advice[m.Name])
}
