package apply

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/domain"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor/files"
)

// OpenDomain returns the index of the molecules that some models were trained on. It is an error if a model
// file does not hold them.
func OpenDomain(models ...*model.Trained) (*domain.Index, error) {
	var domains []*model.Domain
	for _, m := range models {
		if m.Card.Domain == nil {
			return nil, errors.New("apply: the model file holds no training molecules: it is of graphs, of an " +
				"earlier version, or was fitted with -anonymous")
		}
		domains = append(domains, m.Card.Domain)
	}
	return domain.Open(models[0].Card.Standard, domains...)
}

// nearestShown is how many training molecules a row of [Job.Domain] has.
const nearestShown = 3

// Domain writes a table with a row for each molecule that can be used: whether and why it is outside of the
// domain of the models, what of it no training molecule has, and the nearest training molecules with their
// similarities and targets. It does not compute the rows of j.Model.
func (j Job) Domain(ctx context.Context, w io.Writer, index *domain.Index) error {
	j.Model.Columns = nil
	j.Model.Rows = func(context.Context, []*graph.Graph) ([]float64, error) {
		return nil, nil
	}
	j.Records.Molecules = true
	table := csv.NewWriter(w)
	header := []string{"id", "smiles", "outside", "reason", "unseen_elements", "unseen_environments"}
	for n := range nearestShown {
		prefix := fmt.Sprintf("nearest_%d_", n+1)
		header = append(header, prefix+"similarity", prefix+"smiles")
		for _, target := range index.Targets {
			header = append(header, prefix+target)
		}
	}
	table.Write(files.Cells(nil, header)) // table.Error returns the first error
	err := j.Stream(ctx, func(b Batch) error {
		table.WriteAll(domainRows(b.Records, index, len(header)))
		return table.Error()
	})
	table.Flush()
	return errors.Join(err, table.Error())
}

// domainRows returns the rows of the molecules that can be used, computed on all cores.
func domainRows(batch []*records.Record, index *domain.Index, columns int) (rows [][]string) {
	found := make([][]string, len(batch))
	workers := runtime.GOMAXPROCS(0)
	var wg sync.WaitGroup
	for k := range workers {
		wg.Go(func() {
			fork := index.Fork()
			for i := k; i < len(batch); i += workers {
				if r := batch[i]; r.Err == nil {
					found[i] = domainRow(r, fork, columns)
				}
			}
		})
	}
	wg.Wait()
	for _, row := range found {
		if row != nil {
			rows = append(rows, row)
		}
	}
	return rows
}

// domainRow returns the row of a molecule.
func domainRow(r *records.Record, index *domain.Index, columns int) []string {
	f := index.Look(r.Molecule, nearestShown)
	outside := "0"
	if len(f.Reasons) > 0 {
		outside = "1"
	}
	row := []string{
		r.ID,
		r.SMILES,
		outside,
		strings.Join(f.Reasons, "; "),
		strings.Join(f.Elements, " "),
		strconv.Itoa(f.Environments),
	}
	for _, n := range f.Nearest {
		row = append(row, strconv.FormatFloat(n.Similarity, 'f', 3, 64), n.SMILES)
		row = append(row, n.Values...)
	}
	row = append(row, make([]string, columns-len(row))...)
	return files.Cells(nil, row)
}
