package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/parquet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/setting"
)

const formatParquet = "parquet"

// input is what to read: -in, -format, -smiles-column, -id, -attributes, -ignore, -largest-fragment
// and -neutralise.
type input struct {
	In, Format, SMILES, ID string
	Attributes, Ignore     []string
	Standard               feature.Standardisation // of molecules

	reading records.Reading

	stdin io.Reader
}

func (in *input) Register(f *cli.FlagSet) {
	cli.Var(f, &in.In, "in", setting.Text,
		"`file` to read: .csv, .tsv, .smi, .sdf, .jsonl, .graphml, each packed by gzip or zstd or not, "+
			".parquet, or TUDataset's .zip or\n"+
			"folder; - is standard input")
	cli.Var(f, &in.Format, "format", setting.OneOf(append(records.Formats, formatParquet)...),
		"`format` of the file, where its name does not tell: "+strings.Join(records.Formats, ", ")+", "+
			formatParquet)
	cli.Var(f, &in.SMILES, "smiles-column", setting.Text,
		"`column` of SMILES in a table of molecules; none is smiles, in upper or lower case,\n"+
			"or else the only column whose name contains that")
	cli.Var(f, &in.ID, "id", setting.Text,
		"`column`, key or property that names the records (of an SD file, _Name is the title); none "+
			"numbers them from 1")
	cli.Var(f, &in.Attributes, "attributes", setting.List(setting.Text),
		"`columns` A,B of a table of edges, or keys of GraphML, that are attributes of nodes; none are "+
			"those that the model names, or\n"+
			"else those whose name begins with attribute")
	cli.Var(f, &in.Ignore, "ignore", setting.List(setting.Text),
		"`columns` or keys A,B to leave out though their names sound like a part of a graph, such as weight")
	f.BoolVar(&in.Standard.LargestFragment, "largest-fragment", false,
		"keep only the largest fragment of a molecule, organic ones first, which removes the counter-ions of salts")
	f.BoolVar(&in.Standard.Neutralise, "neutralise", false,
		"take charges off a molecule that hydrogens can take off, as of acids and amines")
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

func (in *input) parquet() bool {
	return in.Format == formatParquet ||
		in.Format == "" && strings.HasSuffix(strings.ToLower(in.In), ".parquet")
}

// options returns how the file is read, with what serves one reading.
func (in *input) options() (records.Options, error) {
	o := records.Options{
		Format:     in.Format,
		SMILES:     in.SMILES,
		ID:         in.ID,
		Attributes: in.Attributes,
		Ignore:     in.Ignore,
		Standard:   in.Standard,
		Reading:    &in.reading,
	}
	switch {
	case in.parquet():
		text, err := parquet.Open(in.In)
		if err != nil {
			return o, err
		}
		o.Format = records.CSV
		o.Input = text
	case in.In == "-":
		o.Input = cmp.Or[io.Reader](in.stdin, os.Stdin)
	}
	return o, nil
}

// sum returns the SHA-256 sum of the file, for the record of the run; "" if it is none.
func (in *input) sum(ctx context.Context, flags *cli.FlagSet) (string, error) {
	if info, err := os.Stat(in.In); err != nil || !info.Mode().IsRegular() {
		return "", nil
	}
	sum, err := dataset.SumFile(ctx, in.In)
	if err == nil && flags != nil {
		flags.Input("in", sum)
	}
	return sum, err
}

// note says what of the file is used and what is left out, and gives the set of the others its sum.
func (in *input) note(t *records.Table, sum string, stderr io.Writer) {
	fmt.Fprintf(stderr, "%s: %v\n", in.In, t.Reading)
	if n := len(t.Rejected); n > 0 {
		fmt.Fprintf(stderr, "%s: %d of %d records cannot be used, such as %v\n",
			in.In, n, n+len(t.Records), t.Rejected[0])
	}
	t.Set.Reads = t.Reading.Features()
	if sum != "" {
		t.Set.Sums = map[string]string{filepath.Base(in.In): sum}
	}
}

// compare says what of the file has been used, and what the model was trained on if that is
// called otherwise.
func (in *input) compare(trained string, stderr io.Writer) {
	fmt.Fprintf(stderr, "%s: %v\n", in.In, in.reading)
	if features := in.reading.Features(); trained != "" && features != "" && features != trained {
		fmt.Fprintf(stderr, "%s: the model was trained on other columns or keys: %s\n", in.In, trained)
	}
}

// molecules reports whether the file is of molecules, as far as can be seen before it
// is read.
func (in *input) molecules() bool {
	if in.In == "" || in.In == "-" {
		return in.Format == "" || in.Format == records.CSV || in.Format == records.SMI ||
			in.Format == records.SDF
	}
	seen := errors.New("seen")
	o, err := in.options()
	if t, ok := o.Input.(io.Closer); ok {
		defer t.Close()
	}
	o.ID = ""
	o.Reading = nil
	o.Want = records.Molecules
	return err == nil &&
		errors.Is(records.Read(context.Background(), in.In, o, func(*records.Record) error { return seen }), seen)
}
