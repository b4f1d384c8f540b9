package gnn

import (
	"slices"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend"
)

// This file embeds the atoms of a [ChemGIN]: the row of a category of atoms is the sum of
// a row of each table, Σ_k E_k[category k]. It is a product of a sparse matrix, which has
// a one for each column of the category, with the tables under one another.

// maxTable is the number of categories up to which a ChemGIN keeps that matrix for all of
// them. With more categories, it is made for those that a batch has.
const maxTable = 1 << 12

// allAtoms returns the matrix for every category, nil if there are too many.
func (g *ChemGIN) allAtoms(be backend.Backend) *autodiff.Sparse {
	n := g.Columns.NodeWidth()
	if n > maxTable {
		return nil
	}
	every := make([]int32, n)
	for k := range every {
		every[k] = int32(k)
	}
	return g.atomRows(every, be.Indices)
}

// atomRows returns the matrix whose rows are the given categories.
func (g *ChemGIN) atomRows(categories []int32, indices func([]int32) *backend.Indices) *autodiff.Sparse {
	width := len(g.Columns.Atoms)
	rows := 0
	for _, a := range g.Columns.Atoms {
		rows += a.Size
	}
	ptr := []int32{0}
	col := make([]int32, width*len(categories))
	for i, category := range categories {
		end := rows
		for k := width - 1; k >= 0; k-- { // the last column is the lowest digit
			size := int32(g.Columns.Atoms[k].Size)
			end -= int(size)
			col[i*width+k] = int32(end) + category%size
			category /= size
		}
		ptr = append(ptr, int32((i+1)*width))
	}
	ptrT, colT := backend.Members(nil, nil, col, rows)
	for k := range colT { // from entries to rows
		colT[k] /= int32(width)
	}
	return &autodiff.Sparse{
		A: &backend.CSR{
			Rows: len(categories),
			Cols: rows,
			Ptr:  indices(ptr),
			Col:  indices(col),
		},
		T: &backend.CSR{
			Rows: rows,
			Cols: len(categories),
			Ptr:  indices(ptrT),
			Col:  indices(colT),
		},
	}
}

// sumTables returns the rows of the categories that a matrix of atomRows is for.
func (g *ChemGIN) sumTables(t *autodiff.Tape, categories *autodiff.Sparse) *autodiff.Var {
	var tables []*autodiff.Var
	for _, e := range g.Atoms {
		tables = append(tables, t.Param(e.Table))
	}
	return autodiff.ConcatRows(tables...).SpMM(categories, 0)
}

// batchAtoms returns the rows [N×Hidden] of the nodes of a batch before the first layer.
func (g *ChemGIN) batchAtoms(b *Batch) *autodiff.Var {
	if g.tables != nil {
		return b.choose(g.sumTables(b.tape, g.tables))
	}
	return g.atomsOf(b.tape, b.Host.X.Category[:b.Host.Nodes()])
}

// atomsOf returns the rows of nodes with the given categories.
func (g *ChemGIN) atomsOf(t *autodiff.Tape, categories []int32) *autodiff.Var {
	if g.tables != nil {
		return g.sumTables(t, g.tables).GatherRows(categories)
	}
	different := slices.Compact(slices.Sorted(slices.Values(categories)))
	positions := make([]int32, len(categories))
	for i, category := range categories {
		k, _ := slices.BinarySearch(different, category)
		positions[i] = int32(k)
	}
	return g.sumTables(t, g.atomRows(different, t.Indices)).GatherRows(positions)
}
