package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/specmatch/specmatch/gnn/dataset/suggest"
	"github.com/specmatch/specmatch/gnn/molecule/library"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/run/progress"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// picking is the command pick.
type picking struct {
	collection
	Count int
	First []string
	Seed  int
}

func setupPick(f *cli.FlagSet) cli.Action {
	x := &picking{Count: 100}
	f.Common("in", "out", "count", "first", "seed", "by", "page", "keep", "id", "smiles-column")
	x.register(f, func() {
		cli.Var(f, &x.Count, "count", setting.Int(1), "`number` of molecules to pick, those of -first included")
		cli.Var(f, &x.First, "first", setting.List(setting.Text),
			"`ids A,B` of the molecules to begin with; by default a random one")
		cli.Var(f, &x.Seed, "seed", setting.IntIn(0, math.MaxInt32), "random `seed` of the first pick")
	})
	f.Check(func() error {
		switch {
		case x.First != nil && f.Given("seed"):
			return cli.Usagef("-seed chooses the first pick, which -first names: leave one of them out")
		case len(x.First) > x.Count:
			return cli.Usagef("-count %d: -first names %d molecules", x.Count, len(x.First))
		}
		return nil
	})
	return x.run
}

func (x *picking) run(ctx context.Context, stdout, stderr io.Writer) error {
	closeModel, err := x.open()
	if err != nil {
		return err
	}
	defer closeModel()
	items, set, err := x.readAll(ctx, "read", x.Keep, stderr, nil)
	if err != nil {
		return err
	}
	first, err := x.find(items)
	if err != nil {
		return err
	}
	bar := progress.Start(stderr, progress.Options{Label: "pick", Unit: "molecule", Total: min(x.Count, len(items))})
	defer bar.Stop()
	bar.Add(max(1, len(first)))
	picks, err := library.MaxMin(ctx, set, x.Count, first, uint32(x.Seed), bar.Add)
	bar.Stop()
	if err != nil {
		return err
	}
	r := &result{
		columns: x.header([]string{"pick"}, "distance"),
		smiles:  2,
		title:   "Picks from " + x.In,
		colour:  "distance",
	}
	for k, pick := range picks {
		molecule := items[pick.Index]
		row := append([]string{strconv.Itoa(k + 1), molecule.id, molecule.smiles}, molecule.fields...)
		r.rows = append(r.rows, append(row, number(pick.Distance)))
	}
	if err := x.write(ctx, r, stdout, stderr); err != nil || x.Out == stdio {
		return err
	}
	_, err = fmt.Fprintf(stdout, "%s: %d of %d molecules, the last at a distance of %.3g to those before it\n",
		x.Out, len(picks), len(items), picks[len(picks)-1].Distance)
	return err
}

// find returns the places of the molecules with the ids of -first.
func (x *picking) find(items []item) (first []int, err error) {
	places := map[string]int{}
	var ids []string
	for i, molecule := range items {
		if _, ok := places[molecule.id]; !ok {
			places[molecule.id] = i
			ids = append(ids, molecule.id)
		}
	}
	for _, id := range x.First {
		i, ok := places[id]
		if !ok {
			return nil, fmt.Errorf("-first %s: no molecule of %s has this id%s", id, x.In, suggest.DidYouMean(id, ids))
		}
		first = append(first, i)
	}
	return first, nil
}
