package main

import (
	"cmp"
	"io"
	"os"
	"strings"

	"github.com/specmatch/specmatch/experiments/internal/cli"
	"github.com/specmatch/specmatch/gnn/dataset/parquet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
)

const formatParquet = "parquet"

// input is what to read: -in, -format, -smiles-column and -id.
type input struct {
	In, Format, SMILES, ID string

	stdin io.Reader
}

// Register implements [cli.Group].
func (in *input) Register(f *cli.FlagSet) {
	cli.Var(f, &in.In, "in", cli.Text, "`file` to read: .csv, .smi, .jsonl, each with .gz or without, .parquet, or TUDataset's .zip or\nfolder; - is standard input")
	cli.Var(f, &in.Format, "format", cli.OneOf(append(records.Formats, formatParquet)...), "`format` of the file, where its name does not tell: "+strings.Join(records.Formats, ", ")+", "+formatParquet)
	cli.Var(f, &in.SMILES, "smiles-column", cli.Text, "`column` of SMILES in a table of molecules; none is smiles, in upper or lower case,\nor else the only column whose name contains that")
	cli.Var(f, &in.ID, "id", cli.Text, "`column` or key that names the records; none numbers them from 1")
	f.Check(func() error {
		if in.In == "" {
			return cli.Usagef("-in is needed: a file of molecules or graphs")
		}
		if in.In == "-" && in.Format == "" {
			in.Format = records.CSV
		}
		if in.In == "-" && in.Format == formatParquet {
			return cli.Usagef("-in - -format parquet: a Parquet file is read from its end; give its name")
		}
		return nil
	})
}

// parquet reports whether the file is one.
func (in *input) parquet() bool {
	return in.Format == formatParquet || in.Format == "" && strings.HasSuffix(strings.ToLower(in.In), ".parquet")
}

// options returns how the file is read, with what serves one reading.
func (in *input) options() (records.Options, error) {
	o := records.Options{Format: in.Format, SMILES: in.SMILES, ID: in.ID}
	switch {
	case in.parquet():
		text, err := parquet.Open(in.In)
		if err != nil {
			return o, err
		}
		o.Format, o.Input = records.CSV, text
	case in.In == "-":
		o.Input = cmp.Or[io.Reader](in.stdin, os.Stdin)
	}
	return o, nil
}
