package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/specmatch/specmatch/experiments/internal/paper"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
	"github.com/specmatch/specmatch/gnn/dataset/network"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/random"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/train"
)

// domain is the graphs: molecules or proteins in their network.
type domain struct {
	corpus []*graph.Graph
	smiles []string // of the corpus, if it is of molecules
	sets   []*taskSet
}

// taskSet is a set of graphs to fine-tune on, with yes-or-no labels for tasks.
type taskSet struct {
	name   string
	graphs []*graph.Graph
	tasks  int
	labels []int8 // [graphs×tasks]: 1, -1, or 0 for missing
	split  dataset.Split
}

// check is the division's.
func (s *taskSet) check() error {
	labelled := func(i int) bool {
		return slices.ContainsFunc(s.labels[i*s.tasks:(i+1)*s.tasks], func(l int8) bool {
			return l != 0
		})
	}
	if err := s.split.Check(len(s.graphs), labelled); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	return nil
}

// The purposes of random streams, besides those of package method.
const (
	purposeCorpus random.Purpose = 1<<32 + 1
	purposeHead   random.Purpose = 1<<32 + 3
)

// splitSeed is the seed of the division of proteins, as of Hu et al.'s.
const splitSeed = 42

// noteInputs notes the sums of the files that [experiment.openDomain] reads, and in
// corpusSums those of the graphs to pre-train on.
func (x *experiment) noteInputs(ctx context.Context, flags *cli.FlagSet) error {
	x.corpusSums = map[string]string{}
	note := func(name, path string, corpus bool) error {
		sum, err := dataset.SumFile(ctx, path)
		switch {
		case errors.Is(err, fs.ErrNotExist): // openDomain says so, in its order
			return nil
		case err != nil:
			return err
		}
		flags.Input(name, sum)
		if corpus {
			x.corpusSums[name] = sum
		}
		return nil
	}
	names := x.Data.Datasets
	bio := x.source.Domain == domainBio
	if bio && x.source.Corpus != "" {
		names = append([]string{x.source.Corpus}, names...)
	} else if x.source.Corpus != "" {
		if err := note("corpus", x.source.Corpus, true); err != nil {
			return err
		}
	}
	if x.Data.Dir == "" {
		return nil // which openDomain refuses
	}
	for _, name := range names {
		path, err := moleculenet.Find(x.Data.Dir, name)
		paths := []string{path}
		if bio {
			paths, err = network.Files(x.Data.Dir, name)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			return err
		}
		for _, path := range paths {
			if err := note(filepath.Base(path), path, name == x.source.Corpus); err != nil {
				return err
			}
		}
	}
	return nil
}

// fits returns a usage error unless the machine has the memory to pre-train on the
// corpus and to fine-tune on the sets.
func (x *experiment) fits(sizes string) error {
	if slices.ContainsFunc(x.Methods.Names, x.fine.PretrainsHere) {
		flags := fmt.Sprintf("%s -batch %d", sizes, x.Recipe.Batch)
		if err := train.Fits(
			x.Engine.Backend, x.Engine.Precision, x.encoder(), x.domain.corpus, x.Recipe.Batch,
		); err != nil {
			return cli.Usagef("%s: %w", flags, err)
		}
	}
	for _, s := range x.domain.sets {
		flags := fmt.Sprintf("-dataset %s %s -finetune-batch %d", s.name, sizes, x.fine.Batch)
		if err := train.Fits(
			x.Engine.Backend, x.Engine.Precision, x.encoder(), s.graphs, x.fine.Batch,
		); err != nil {
			return cli.Usagef("%s: %w", flags, err)
		}
	}
	return nil
}

func (x *experiment) openDomain(ctx context.Context, stderr io.Writer) (domain, error) {
	switch bio := x.source.Domain == domainBio; {
	case x.Data.Dir != "":
	case bio:
		return domain{}, cli.Usagef("-domain bio needs -data: the folder with NAME_edges.csv and " +
			"NAME_labels.csv, or the same with .gz")
	case len(x.Data.Datasets) > 0:
		return domain{}, cli.Usagef("-dataset needs -data: the folder with NAME.csv or NAME.csv.gz")
	}
	for _, name := range x.Methods.Names {
		if m, err := method.Get(name); err == nil && m.Molecules && x.source.Domain == domainBio {
			return domain{}, cli.Usagef("-method %s is for molecules, and so not for -domain bio", name)
		}
	}
	open := x.openMolecules
	if x.source.Domain == domainBio {
		open = x.openProteins
	}
	d, err := open(ctx, stderr)
	if err != nil {
		return d, err
	}
	if n := x.source.Size; n > 0 && n < len(d.corpus) {
		order := dataset.Permutation(nil, len(d.corpus), random.Stream(0, purposeCorpus, 0, 0))
		whole := d
		d.corpus = make([]*graph.Graph, n)
		d.smiles = nil
		for i, k := range order[:n] {
			d.corpus[i] = whole.corpus[k]
			if whole.smiles != nil {
				d.smiles = append(d.smiles, whole.smiles[k])
			}
		}
	}
	for _, s := range d.sets {
		if err := s.check(); err != nil {
			return d, err
		}
	}
	if len(d.corpus) < 2 {
		return d, cli.Usagef("-corpus: %d graphs; there is nothing to contrast", len(d.corpus))
	}
	return d, nil
}

func (x *experiment) openMolecules(ctx context.Context, stderr io.Writer) (d domain, err error) {
	switch {
	case x.source.Corpus != "":
		for _, name := range x.Data.Datasets { // before what takes minutes
			if _, err := moleculenet.Find(x.Data.Dir, name); err != nil {
				return d, err
			}
		}
		bar := progress.Start(stderr, progress.Options{Label: "corpus", Unit: "row"})
		corpus, err := moleculenet.Corpus(ctx, x.source.Corpus, func(rows int) {
			bar.Message("%d molecules read", rows)
		})
		bar.Stop()
		if err != nil {
			return d, err
		}
		if n := len(corpus.Dropped); n > 0 {
			fmt.Fprintf(stderr, "%s: %d of %d molecules cannot be used, such as %v\n",
				x.source.Corpus, n, n+len(corpus.Graphs), corpus.Dropped[0])
		}
		d.corpus = corpus.Graphs
		d.smiles = corpus.SMILES
	case len(x.Data.Datasets) > 0 && slices.ContainsFunc(x.Methods.Names, paper.Pretrains):
		return d, cli.Usagef("-corpus is needed: a file of SMILES to pre-train on, or -method none")
	default:
		toy, err := moleculenet.Toy(smallMolecules)
		if err != nil {
			return d, err
		}
		d.corpus = toy.Graphs
		d.smiles = toy.SMILES
		if len(x.Data.Datasets) == 0 {
			err = d.add("toy", toy)
		}
		if err != nil {
			return d, err
		}
	}
	for _, name := range x.Data.Datasets {
		m, err := moleculenet.Open(ctx, x.Data.Dir, name)
		if err != nil {
			return d, err
		}
		if len(m.Dropped) > 0 {
			fmt.Fprintf(stderr, "%s: %d molecules cannot be used, such as %v\n",
				name, len(m.Dropped), m.Dropped[0])
		}
		if err := d.add(name, m); err != nil {
			return d, err
		}
	}
	return d, nil
}

// add adds a set of molecules, divided by scaffold.
func (d *domain) add(name string, m *moleculenet.Data) error {
	split, err := dataset.ScaffoldSplit(m.Scaffolds, 0.8, 0.1)
	d.sets = append(d.sets, &taskSet{
		name:   name,
		graphs: m.Graphs,
		tasks:  len(m.Tasks),
		labels: m.Labels,
		split:  split,
	})
	return err
}

func (x *experiment) openProteins(ctx context.Context, _ io.Writer) (d domain, err error) {
	if x.source.Corpus == "" {
		return d, cli.Usagef("-domain bio needs -corpus: the name of a network in -data")
	}
	corpus, err := network.Open(ctx, x.Data.Dir, x.source.Corpus)
	if err != nil {
		return d, err
	}
	d.corpus = corpus.EgoNetworks(network.EgoConfig{}, splitSeed)
	for _, name := range x.Data.Datasets {
		n, err := network.Open(ctx, x.Data.Dir, name)
		if err != nil {
			return d, err
		}
		if len(n.Tasks) == 0 {
			return d, cli.Usagef("-dataset %s: the network has no labels (%s)",
				name, filepath.Join(x.Data.Dir, name+"_labels.csv"))
		}
		set := &taskSet{
			name:   name,
			graphs: n.EgoNetworks(network.EgoConfig{}, splitSeed),
			tasks:  len(n.Tasks),
			labels: n.Labels,
		}
		set.split = dataset.RandomSplit(len(set.graphs), random.Stream(splitSeed, purposeCorpus, 1, 0))
		d.sets = append(d.sets, set)
	}
	return d, nil
}
