package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/parquet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/dataset/suggest"
	"github.com/specmatch/specmatch/gnn/molecule/feature"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/tensor/files"
)

const formatParquet = "parquet"

// zippedTable matches the names of tables and the like in a .zip.
var zippedTable = regexp.MustCompile(`(?i)\.(csv|tsv|txt|smi|sdf|jsonl|graphml|parquet)\.zip$`)

// input holds the input file and the flags that say how to read it.
type input struct {
	In, Format, SMILES, ID string
	Attributes, Ignore     []string
	Standard               feature.Standardisation // of molecules

	flag    string          // its name, of flags
	flags   *cli.FlagSet    // of the command; a flag that is not given there is of the run that it resumes
	reading records.Reading // the columns or keys that were used
	stdin   io.Reader       // os.Stdin if nil

	stream hash.Hash // of what is read from a stream, if hashStream was called
	pipe   *os.File  // which hashStream opened; nil for none

	looked       string // the file that molecules has looked into
	hasMolecules bool
}

func (file *input) Register(f *cli.FlagSet) {
	file.flag = "in"
	file.flags = f
	cli.Var(f, &file.In, "in", setting.Text,
		"input `file`: .csv, .tsv, .smi, .sdf, .jsonl or .graphml, also compressed by gzip or zstd; .parquet;\n"+
			"or a .zip or folder of TUDataset; - is standard input")
	formats := append(records.Formats, formatParquet)
	cli.Var(f, &file.Format, "format", setting.OneOf(formats...),
		"file `format`, if the file name does not show it: "+strings.Join(formats, ", "))
	cli.Var(f, &file.SMILES, "smiles-column", setting.Text,
		"`column` with SMILES in a table of molecules; by default smiles, in upper or lower case,\n"+
			"or else the only column whose name contains smiles")
	cli.Var(f, &file.ID, "id", setting.Text,
		"`column`, key or property with the record ids (_Name is the title in an SD file);\n"+
			"by default records are numbered from 1")
	cli.Var(f, &file.Attributes, "attributes", setting.List(setting.Text),
		"`columns` A,B of a table of edges, or GraphML keys, with node attributes; by default those in\n"+
			"the model, or else those whose names begin with attribute")
	cli.Var(f, &file.Ignore, "ignore", setting.List(setting.Text),
		"`columns` or keys A,B to skip although their names look like part of a graph, such as weight")
	f.BoolVar(&file.Standard.LargestFragment, "largest-fragment", false,
		"keep only the largest fragment of a molecule, preferring organic ones; this removes counter-ions")
	f.BoolVar(&file.Standard.Neutralise, "neutralise", false,
		"neutralise charges that hydrogens can balance, such as those of acids and amines")
	f.Check(func() error {
		switch {
		case file.In == "":
			return cli.Usagef("-in is needed: a file of molecules or graphs")
		case zippedTable.MatchString(file.In):
			return cli.Usagef("-in %s: a .zip is read as TUDataset's; unpack it (unzip %[1]s), "+
				"or compress the table with gzip", file.In)
		case file.In != stdio:
			return nil
		case file.Format == "":
			file.Format = records.CSV
		case file.Format == formatParquet:
			return cli.Usagef("-in - -format parquet: Parquet cannot be read from standard input; give its name")
		}
		return nil
	})
}

// other returns the input of another file, of another flag, that is read in the same way, with nothing of what was
// read from this one.
func (file *input) other(flag, path string) *input {
	return &input{
		flag:       flag,
		flags:      file.flags,
		In:         path,
		Format:     file.Format,
		SMILES:     file.SMILES,
		ID:         file.ID,
		Attributes: file.Attributes,
		Ignore:     file.Ignore,
		Standard:   file.Standard,
	}
}

// checkFile returns an error if there is no input file.
func (file *input) checkFile() error {
	isOfRun := file.flags != nil && !file.flags.Given(file.flag)
	if file.In == stdio {
		info, err := os.Stdin.Stat()
		if isOfRun && err == nil && info.Mode()&fs.ModeCharDevice != 0 { // a terminal, or /dev/null
			return cli.Usagef("the run was started with data from standard input (-%s -): pipe the same data "+
				"into the command, or give -%[1]s with a file of them", file.flag)
		}
		return nil
	}
	folder, name := filepath.Split(file.In)
	info, err := os.Stat(file.In)
	if err == nil && info.IsDir() {
		return file.checkTables()
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil // other errors are those of opening it
	}
	if isOfRun {
		return cli.Usagef("-%s %s: there is no such file here; the run was started with this path, perhaps in another "+
			"folder: give -%[1]s with the path from here", file.flag, file.In)
	}
	var names []string
	entries, _ := os.ReadDir(cmp.Or(folder, ".")) // without a folder, nothing is near
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if nearest, ok := suggest.Nearest(name, names); ok {
		return fmt.Errorf("-%s %s: there is no such file; did you mean %s?",
			file.flag, file.In, filepath.Join(folder, nearest))
	}
	return fmt.Errorf("-%s %s: there is no such file", file.flag, file.In)
}

// checkTables returns an error if the input, a folder, has no tables.
func (file *input) checkTables() error {
	patterns, err := tables(file.In)
	if err != nil {
		return err
	}
	patterns = append(patterns, "*_A.txt") // of a folder that was renamed: the reader of the set says so
	for _, pattern := range patterns {
		// the pattern is well formed
		paths, _ := filepath.Glob(filepath.Join(files.Pattern(file.In), filepath.FromSlash(pattern)))
		if len(paths) > 0 {
			return nil
		}
	}
	return cli.Usagef("-%s %s: the folder has no tables of TUDataset (NAME_A.txt, with its name) or of the Open Graph "+
		"Benchmark (raw/*.csv.gz); name a file of molecules or graphs", file.flag, file.In)
}

// isParquet reports whether -format or the file name says Parquet.
func (file *input) isParquet() bool {
	return file.Format == formatParquet || file.Format == "" && formatByName(file.In) == formatParquet
}

// formatByName returns the format that a file's name shows, or "".
func formatByName(path string) string {
	if strings.HasSuffix(strings.ToLower(path), ".parquet") {
		return formatParquet
	}
	format, _ := records.FormatOf(path) // another name has none
	return format
}

// options returns the options to read the file once.
func (file *input) options() (records.Options, error) {
	o := records.Options{
		Format:     file.Format,
		SMILES:     file.SMILES,
		ID:         file.ID,
		Attributes: file.Attributes,
		Ignore:     file.Ignore,
		Standard:   file.Standard,
		Reading:    &file.reading,
	}
	switch {
	case file.isParquet():
		text, err := parquet.Open(file.In)
		if err != nil {
			return o, err
		}
		o.Format = records.CSV
		o.Input = text
	case file.In == stdio:
		o.Input = cmp.Or[io.Reader](file.stdin, os.Stdin)
	}
	return o, nil
}

// isStream reports whether the input can be read only once: standard input, or a pipe such as <(zcat FILE) in bash.
func (file *input) isStream() bool {
	if file.In == stdio {
		return true
	}
	info, err := os.Stat(file.In)
	return err == nil && !info.Mode().IsRegular() && !info.IsDir()
}

// hashStream lets sum know what is read with the options, if the input is a stream: a run that is resumed would
// otherwise not notice other data.
func (file *input) hashStream(o *records.Options) error {
	if !file.isStream() {
		return nil
	}
	if o.Input == nil {
		pipe, err := os.Open(file.In)
		if err != nil {
			return err
		}
		file.pipe = pipe
		o.Input = pipe
	}
	file.stream = sha256.New()
	o.Input = io.TeeReader(o.Input, file.stream)
	return nil
}

// sum returns the SHA-256 of the file, or of the stream that was read to its end, or of the tables of a folder; "" if
// there is none. It records the sum in flags by the name of the flag of the file.
func (file *input) sum(ctx context.Context, flags *cli.FlagSet, flag string) (sum string, err error) {
	if file.pipe != nil {
		file.pipe.Close()
	}
	switch info, missing := os.Stat(file.In); {
	case file.stream != nil:
		sum = fmt.Sprintf("%x", file.stream.Sum(nil))
	case missing != nil:
		return "", nil
	case info.IsDir():
		sum, err = sumFolder(ctx, file.In)
	default:
		sum, err = dataset.SumFile(ctx, file.In)
	}
	if err != nil {
		return "", err
	}
	flags.Input(flag, sum)
	return sum, nil
}

// tables matches the files of a set in TUDataset's format, whose names begin with that of its folder, and those of
// one of the Open Graph Benchmark. Others in their folders, such as what a program keeps there, are not read.
func tables(folder string) ([]string, error) {
	folder, err := filepath.Abs(folder)
	return []string{files.Pattern(filepath.Base(folder)) + "_*.txt", "raw/*.csv*", "split/*/*.csv*"}, err
}

// sumFolder returns the SHA-256 of a list of the tables in a folder with their sums, as sha256sum prints it.
func sumFolder(ctx context.Context, folder string) (string, error) {
	patterns, err := tables(folder)
	if err != nil {
		return "", err
	}
	list := sha256.New()
	for _, pattern := range patterns {
		// the pattern is well formed
		paths, _ := filepath.Glob(filepath.Join(files.Pattern(folder), filepath.FromSlash(pattern)))
		for _, path := range paths {
			sum, err := dataset.SumFile(ctx, path)
			if err != nil {
				return "", err
			}
			fmt.Fprintf(list, "%s  %s\n", sum, filepath.Base(path))
		}
	}
	return fmt.Sprintf("%x", list.Sum(nil)), nil
}

// describeTable prints which columns were used and how many records were rejected. It records the sum in the data
// set, unless it is that of a folder, which is no file's.
func (file *input) describeTable(t *records.Table, sum string, stderr io.Writer) {
	fmt.Fprintf(stderr, "%s: %v\n", file.In, t.Reading)
	if n := len(t.Rejected); n > 0 {
		fmt.Fprintf(stderr, "%s: %d of %d records cannot be used, such as %v\n",
			file.In, n, n+len(t.Records), t.Rejected[0])
	}
	t.Set.Reads = t.Reading.Features()
	if info, err := os.Stat(file.In); sum != "" && (err != nil || !info.IsDir()) {
		t.Set.Sums = map[string]string{filepath.Base(file.In): sum}
	}
}

// describe prints which columns were used, and those that the model was trained on if they differ.
func (file *input) describe(trained string, stderr io.Writer) {
	if file.reading.Content == "" {
		return // the file was not read, as an error says
	}
	fmt.Fprintf(stderr, "%s: %v\n", file.In, file.reading)
	if features := file.reading.Features(); trained != "" && features != "" && features != trained {
		fmt.Fprintf(stderr, "%s: the model was trained on other columns or keys: %s\n",
			file.In, files.Printable(trained))
	}
}

// warnAbsent prints which of the fields that the user named no record of an SD file has.
func (file *input) warnAbsent(named []string, stderr io.Writer) {
	for _, field := range file.reading.Absent {
		if slices.Contains(named, field) {
			fmt.Fprintf(stderr, "%s: %s\n", file.In, file.reading.NoValue(field))
		}
	}
}

// molecules reports whether the first record of the file is a molecule. It looks once into a file.
func (file *input) molecules() bool {
	if file.In == "" || file.isStream() {
		return slices.Contains([]string{"", records.CSV, records.SMI, records.SDF}, file.Format)
	}
	if file.looked != file.In {
		file.looked = file.In
		file.hasMolecules = false
		file.peek(context.Background(), records.Options{Want: records.Molecules}, func(*records.Record) bool {
			file.hasMolecules = true
			return true
		})
	}
	return file.hasMolecules
}

// peek calls look for the first records of the file until it returns true; see [records.Peek]. It reads what
// wanted has.
func (file *input) peek(
	ctx context.Context, wanted records.Options, look func(*records.Record) bool,
) (columns records.Reading) {
	options, err := file.options()
	if err != nil {
		return columns
	}
	if text, ok := options.Input.(io.Closer); ok {
		defer text.Close()
	}
	options.ID = ""
	options.Fields = wanted.Fields
	options.Want = wanted.Want
	return records.Peek(ctx, file.In, options, look)
}
