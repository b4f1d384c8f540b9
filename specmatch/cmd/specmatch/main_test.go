package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	parquetgo "github.com/parquet-go/parquet-go"

	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/parquet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/specmatch/run"
	"github.com/specmatch/specmatch/tensor/files"
)

// invoke runs a command line and returns what it prints.
func invoke(ctx context.Context, line string) (stdout, stderr string, err error) {
	var o, e bytes.Buffer
	err = execute(ctx, strings.Fields(line), &o, &e)
	return o.String(), e.String(), err
}

// must is invoke of what works.
func must(t *testing.T, line string) string {
	t.Helper()
	stdout, stderr, err := invoke(t.Context(), line)
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", line, err, stdout, stderr)
	}
	return stdout
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// moleculeTable is a table of n made-up molecules: a chain with some oxygens, its length, what
// share of it is oxygen, whether that is much, and which it has more of.
func moleculeTable(n int) string {
	rng := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	b.WriteString("name,smiles,length,share,much,known,most,part\n")
	for i := range n {
		length, oxygens := 4+rng.IntN(12), 0
		p := rng.Float64()
		s := ""
		for range length {
			if len(s) > 0 && s[len(s)-1] == 'C' && rng.Float64() < p {
				s += "O"
				oxygens++
			} else {
				s += "C"
			}
		}
		share := float64(oxygens) / float64(length)
		much, most := 0, "carbon"
		if share > 0.25 {
			much, most = 1, "oxygen, too"
		}
		known := fmt.Sprint(1 - much)
		if i%4 == 0 {
			known = ""
		}
		fmt.Fprintf(&b, "m%d,%s,%d,%.3f,%d,%s,%q,%s\n", i, s, length, share, much, known, most, []string{"train", "train", "valid", "test"}[i%4])
	}
	return b.String()
}

// readCSV returns the lines of a table.
func readCSV(t *testing.T, path string) [][]string {
	t.Helper()
	rows, err := csv.NewReader(strings.NewReader(read(t, path))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// csvLine is a line of a table without its end.
func csvLine(fields []string) string {
	var b strings.Builder
	w := csv.NewWriter(&b)
	w.Write(fields)
	w.Flush()
	return strings.TrimSuffix(b.String(), "\n")
}

// batchRecords is after how many records there is something on the disk.
const batchRecords = 1024

const tiny = " -hidden 8 -layers 2 "

// few are few features beside the encoder's vector, where which they are does not matter: a linear model of
// the thousands that are the default takes longer than a tiny network.
const few = " -features descriptors "

// encoderFor trains an encoder on a file for no time.
func encoderFor(t *testing.T, in string) string {
	t.Helper()
	out := in + "-encoder"
	must(t, "train -in "+in+" -epochs 0 -out "+out+tiny)
	return filepath.Join(out, modelFile)
}

// TestEmbed: rows have the ids of their records, the same values in every form, and do
// not depend on other records; those that cannot be read are listed.
func TestEmbed(t *testing.T) {
	t.Chdir(t.TempDir())
	text := moleculeTable(40)
	write(t, "m.csv", text)
	model := encoderFor(t, "m.csv")
	const width = 2 * 3 * 8
	if out := must(t, "embed -in m.csv -id name -out v.csv -model "+model); !strings.HasPrefix(out, fmt.Sprintf("v.csv: 40 rows of %d columns\n", width)) {
		t.Error(out)
	}
	whole := strings.Split(read(t, "v.csv"), "\n")
	if !strings.HasPrefix(whole[0], "id,l1_sum_0,l1_sum_1,") || !strings.HasSuffix(whole[0], ",l2_max_7") || len(whole) != 42 || !strings.HasPrefix(whole[7], "m6,") {
		t.Errorf("%q", whole[:8])
	}
	bad := strings.Split(text, "\n")
	bad[3] = "odd,C(,1,1,1,1,x,train"
	bad[5] = "short,CC"
	write(t, "bad.csv", strings.Join(bad, "\n"))
	must(t, "embed -in bad.csv -id name -out b.npy -model "+model)
	want := "line,id,value,reason\n4,odd,C(,character 3 of the SMILES: the string ends where an atom is expected\n6,5,,wrong number of fields: 2 where the header has 8\n"
	if got := read(t, "b.npy.rejected.csv"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	npy := []byte(read(t, "b.npy"))
	if head := fmt.Sprintf("\x93NUMPY\x01\x00v\x00{'descr': '<f4', 'fortran_order': False, 'shape': (38, %d), }", width); !bytes.HasPrefix(npy, []byte(head)) || npy[127] != '\n' || len(npy) != 128+4*width*38 {
		t.Errorf("%d bytes, %q", len(npy), npy[:128])
	}
	ids := strings.Split(read(t, "b.npy.ids.csv"), "\n")
	var lines []string
	for i := range 38 {
		line := ids[i+1]
		for k := range width {
			v := math.Float32frombits(binary.LittleEndian.Uint32(npy[128+4*(width*i+k):]))
			line += fmt.Sprintf(",%v", v)
		}
		lines = append(lines, line)
	}
	kept := slices.Concat(whole[1:3], whole[4:5], whole[6:41])
	if number := regexp.MustCompile(`e([+-])0?(\d)`); number.ReplaceAllString(strings.Join(lines, "\n"), "e$1$2") != number.ReplaceAllString(strings.Join(kept, "\n"), "e$1$2") {
		t.Errorf("the matrix has\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(kept, "\n"))
	}
	// What was rejected by an earlier job is not left there.
	must(t, "embed -in m.csv -id name -out b.npy -model "+model)
	if _, err := os.Stat("b.npy.rejected.csv"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a list of rejected records of an earlier job: %v", err)
	}
	if all, err := filepath.Glob("*.partial"); err != nil || all != nil {
		t.Errorf("%v, %v", all, err)
	}
	if _, _, err := invoke(t.Context(), "embed -strict -in bad.csv -out s.csv -model "+model); err == nil || !strings.Contains(err.Error(), `bad.csv:4: "C(": character 3 of the SMILES`) {
		t.Errorf("strict: %v", err)
	}
	// Standard input and output.
	var out bytes.Buffer
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	var err error
	if os.Stdin, err = os.Open("m.csv"); err != nil {
		t.Fatal(err)
	}
	if err := execute(t.Context(), strings.Fields("embed -in - -id name -out - -model "+model), &out, io.Discard); err != nil || out.String() != strings.Join(whole, "\n") {
		t.Errorf("piped: %v\n%s", err, &out)
	}
	// A program that reads a matrix for each batch gets a row of NaN for what cannot be read.
	rows := make([]string, 0, 40)
	piped := []byte(must(t, "embed -in bad.csv -id name -out - -out-format npy -model "+model))
	if head := fmt.Sprintf("'shape': (40, %d)", width); !bytes.Contains(piped[:128], []byte(head)) || len(piped) != 128+4*width*40 {
		t.Fatalf("%d bytes, %q", len(piped), piped[:128])
	}
	for row := range slices.Chunk(piped[128:], 4*width) {
		if math.IsNaN(float64(math.Float32frombits(binary.LittleEndian.Uint32(row)))) {
			rows = append(rows, "")
		} else {
			rows = append(rows, string(row))
		}
	}
	if rows[2]+rows[4] != "" || strings.Join(rows, "") != string(npy[128:]) {
		t.Error("the piped matrix is not that of the file with rows of NaN between")
	}
}

// TestPretrained: the encoder that is part of the program embeds and is described
// without any other file, and fine-tuning starts from it.
func TestPretrained(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(40))
	lines := strings.Split(strings.TrimSpace(must(t, "embed -in m.csv -id name -out -")), "\n")
	if columns := strings.Split(lines[40], ","); len(lines) != 41 || len(columns) != 1+5*3*128 || columns[0] != "m39" {
		t.Errorf("%d lines, the last %v", len(lines), lines[len(lines)-1])
	}
	for _, encoder := range pretrained.Encoders {
		must(t, "convert -in pretrained:"+encoder.Name+" -out copy.safetensors")
		if read(t, "copy.safetensors") != string(encoder.File) {
			t.Errorf("convert has changed the encoder %s, which is part of the program", encoder.Name)
		}
	}
	const embed = "embed -in m.csv -id name -out -"
	if must(t, embed+" -model pretrained:minimol") != must(t, embed) {
		t.Error("minimol is not the built-in encoder")
	}
	fromFile := must(t, embed+" -model copy.safetensors -readout all:sum,mean,max") // the last encoder's
	if zinc := must(t, embed+" -model pretrained:zinc"); zinc != fromFile || zinc == must(t, embed) {
		t.Error("zinc has not the vectors of its file")
	}
	about := must(t, "inspect")
	for _, want := range []string{"chemgin, 5 layers of width 128", "reads       molecules", "by          assays", fmt.Sprintf("%x", sha256.Sum256(pretrained.Builtin().File))} {
		if !strings.Contains(about, want) {
			t.Errorf("no %q in\n%s", want, about)
		}
	}
	must(t, "finetune -in m.csv -target length -model pretrained -seeds 1 -epochs 1 -lr 1e-12 -out tuned")
	weights := func(path string) []float64 {
		m, err := openModel(path, cli.Engine{Backend: "cpu"})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if c := m.Encoder.(*gnn.ChemGIN).Config; c.Sum != (path != builtin) || (c.Readout == gnn.ReadoutAll) != (path == builtin) {
			t.Errorf("%s: the readout is %+v", path, c)
		}
		w := m.Encoder.Parameters()[0].Value
		v := make([]float64, w.Len())
		m.be.Download(v, w)
		return v
	}
	if !slices.Equal(weights(builtin), weights(filepath.Join("tuned", division{}.modelFile()))) {
		t.Error("fine-tuning has started from other weights")
	}
}

// TestReadouts: vectors are read out as asked, by columns that say how, by the model's own
// way, and as a model was trained; a head is fitted to the readout, which its file keeps.
func TestReadouts(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(40))
	write(t, "g.csv", "graph,source,target\na,1,2\na,2,3\nb,1,2\nc,1,2\n")
	chem, gin := encoderFor(t, "m.csv"), encoderFor(t, "g.csv")
	must(t, "train -in m.csv -epochs 0 -readout last:max -out as-trained"+tiny)
	for _, c := range []struct{ in, model, readout, first, last string }{
		{"m.csv", chem, "auto", "l1_sum_0", "l2_max_7"},
		{"m.csv", chem, "own", "h0", "h7"},
		{"m.csv", chem, "2:max,sum", "l2_max_0", "l2_sum_7"},
		{"m.csv", "as-trained/" + modelFile, "auto", "l2_max_0", "l2_max_7"},
		{"g.csv", gin, "auto", "h0", "h15"},
		{"g.csv", gin, "last:mean", "l2_mean_0", "l2_mean_7"},
	} {
		must(t, fmt.Sprintf("embed -in %s -model %s -readout %s -out v.csv", c.in, c.model, c.readout))
		if header := readCSV(t, "v.csv")[0]; header[1] != c.first || header[len(header)-1] != c.last {
			t.Errorf("%s, %s: %v", c.model, c.readout, header)
		}
	}
	must(t, "embed -in m.csv -model "+chem+" -features bits:1:4,encoder,descriptors -readout own -out v.csv")
	if header := readCSV(t, "v.csv")[0]; len(header) != 1+4+8+52 || header[4] != "bits_3" || header[5] != "h0" || header[13] != "MolWt" {
		t.Error(header)
	}
	must(t, "finetune -in m.csv -target length -readout all:mean,max -epochs 1 -seeds 1 -out tuned"+tiny)
	if about := must(t, "inspect -model tuned/"+division{}.modelFile()); !strings.Contains(about, "read out as all:mean,max") || !strings.Contains(about, "vectors of width 32") {
		t.Error(about)
	}
	must(t, "predict -in m.csv -model tuned/"+division{}.modelFile()+" -out p.csv")
	for args, want := range map[string]string{
		"embed -in m.csv -out v.csv -readout 6:sum":                      `readout "6:sum": want layers (all, last, or ascending numbers from 1 to 5)`,
		"embed -in m.csv -out v.csv -readout sum":                        `readout "sum": want layers`,
		"embed -in m.csv -out v.csv -features morgan:2:0":                `size "0": want 1 to 8192`,
		"embed -in g.csv -out v.csv -features descriptors -model " + gin: "are of molecules, and the model reads graphs",
		"train -in m.csv -readout 3:sum -out x" + tiny:                   "from 1 to 2",
		"finetune -in m.csv -target length -readout 9:sum":               "from 1 to 4",
	} {
		var usage *cli.UsageError
		if _, _, err := invoke(t.Context(), args); !errors.As(err, &usage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestStandard: a salt is the acid's vector by the flags, and by a model that was trained with
// them, which says so.
func TestStandard(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "acid.smi", "CCCC(=O)O\n")
	write(t, "salt.smi", "[Na+].CCCC(=O)[O-]\n")
	write(t, "m.csv", moleculeTable(40))
	write(t, "g.csv", "graph,source,target\na,1,2\nb,1,2\nc,1,2\n")
	const both = " -largest-fragment -neutralise"
	must(t, "train -in m.csv -epochs 0 -out encoder"+both+tiny)
	must(t, "finetune -in m.csv -target length -epochs 1 -seeds 1 -out tuned -model encoder/"+modelFile)
	vector := func(args string) string {
		_, row, _ := strings.Cut(must(t, "embed -out - "+args), "\n")
		return row
	}
	acid := vector("-in acid.smi")
	for args, want := range map[string]bool{"": false, " -largest-fragment": false, both: true} { // the built-in encoder sees charges
		if got := vector("-in salt.smi"+args) == acid; got != want {
			t.Errorf("%q: the salt is the acid: %v", args, got)
		}
	}
	for _, model := range []string{"encoder/" + modelFile, "tuned/" + division{}.modelFile()} {
		if vector("-in salt.smi -model "+model) != vector("-in acid.smi -model "+model) {
			t.Errorf("%s: the salt is another", model)
		}
		if about := must(t, "inspect -model "+model); !strings.Contains(about, "of the largest fragment") || !strings.Contains(about, "of a neutral form") {
			t.Error(about)
		}
	}
	if _, _, err := invoke(t.Context(), "train -in g.csv -neutralise -out x"); err == nil || !strings.Contains(err.Error(), "has graphs, and so no fragments or charges") {
		t.Error(err)
	}
}

// TestRich: with rich categories an encoder tells an ion from its acid, after training and
// after fine-tuning, and its file says what it sees.
func TestRich(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(40))
	write(t, "two.smi", "CC(=O)O\nCC(=O)[O-]\n")
	must(t, "train -in m.csv -atoms rich -epochs 1 -out rich"+tiny)
	must(t, "train -in m.csv -epochs 0 -out hu"+tiny)
	must(t, "finetune -in m.csv -target length -atoms rich -epochs 1 -seeds 1 -out tuned"+tiny)
	must(t, "finetune -in m.csv -target length -epochs 1 -seeds 1 -out again -model rich/"+modelFile)
	for model, want := range map[string]bool{"rich/" + modelFile: true, "hu/" + modelFile: false, "tuned/" + division{}.modelFile(): true, "again/" + division{}.modelFile(): true} {
		_, text, _ := strings.Cut(must(t, "embed -in two.smi -out - -model "+model), "\n")
		lines := strings.Split(text, "\n")
		if differ := strings.TrimPrefix(lines[0], "1,") != strings.TrimPrefix(lines[1], "2,"); differ != want {
			t.Errorf("%s: an acid and its ion differ: %v", model, differ)
		}
		if about := must(t, "inspect -model "+model); strings.Contains(about, "atoms       rich") != want {
			t.Error(about)
		}
	}
	for args, want := range map[string]string{
		"train -in m.csv -atoms poor -out x": "poor", "train -in m.csv -method graphcl -policy maskN -out x" + tiny: "needs numeric node features",
	} {
		if _, _, err := invoke(t.Context(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// TestAssays: an encoder learns labels of tables in both forms, by SMILES or by ids, and an interrupted or repeated
// command gives the same model.
func TestAssays(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(40))
	wide := "SMILES,a,b\n"
	long := "name\ttask\tvalue\n"
	for i, line := range strings.Split(strings.TrimSpace(moleculeTable(40)), "\n")[1:] {
		fields := strings.Split(line, ",")
		wide += fmt.Sprintf("%s,%d,\n", fields[1], i%2)
		long += fmt.Sprintf("%s\tb\t%d\n%[1]s\ta\t%[3]d.5\n", fields[0], i%2, i)
	}
	write(t, "wide.csv", wide+"[Au],,3\n")
	write(t, "long.tsv", long)
	const train = "train -in m.csv -method assays -epochs 1" + tiny
	must(t, train+"-targets wide.csv -atoms rich -morgan 8 -out wide")
	must(t, train+"-targets wide.csv -atoms rich -morgan 8 -out again")
	if read(t, "wide/"+modelFile) != read(t, "again/"+modelFile) {
		t.Error("the same command gives another model")
	}
	must(t, train+"-targets long.tsv -tasks a -id name -descriptors-weight 0 -out long")
	about := must(t, "inspect -model wide/"+modelFile)
	for _, want := range []string{"by          assays", "task-power 0.5", "read out as all:sum,mean,max"} {
		if !strings.Contains(about, want) {
			t.Errorf("no %q:\n%s", want, about)
		}
	}
	write(t, "bad.csv", strings.Replace(wide, ",1,", ",yes,", 1))
	write(t, "foreign.csv", "smiles,a\n[Au],1\n")
	for args, want := range map[string]string{
		"-targets bad.csv":                                  `bad.csv:3: "yes": column a: want a finite number`,
		"-targets foreign.csv":                              `no row has the key of a record, such as "[Au]"`,
		"-targets wide.csv -tasks c":                        `no column "c"`,
		"-targets long.tsv":                                 `no column "smiles" that says which records`,
		"-targets wide.csv,long.tsv -tasks a":               "-tasks names tasks of one table",
		"-targets wide.csv -task-minimum 41":                "none of 2 tasks has 41 labels that differ",
		"-targets wide.csv -descriptors-weight 0 -morgan 8": "-morgan has no effect on assays",
		"":                                      "-method assays needs -targets",
		"-targets wide.csv -method descriptors": "-targets has no effect on descriptors",
	} {
		out := " -out " + t.TempDir()
		if _, _, err := invoke(t.Context(), train+args+out); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestDescriptors: an encoder that has learned descriptors has the readout that it learned them
// from, or the one that was asked for.
func TestDescriptors(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(40))
	write(t, "g.csv", "graph,source,target\na,1,2\nb,1,2\nc,1,2\n")
	const train = "train -in m.csv -method descriptors -epochs 1" + tiny
	must(t, train+"-atoms rich -out taught")
	must(t, train+"-morgan 32 -neutralise -readout last:mean -out mean")
	for dir, want := range map[string][]string{
		"taught": {"read out as all:sum,mean,max", "atoms       rich", "by          descriptors", "morgan 0"},
		"mean":   {"read out as last:mean", "atoms       hu", "morgan 32", "of a neutral form"},
	} {
		about := must(t, "inspect -model "+dir+"/"+modelFile)
		for _, w := range want {
			if !strings.Contains(about, w) {
				t.Errorf("%s has no %q:\n%s", dir, w, about)
			}
		}
	}
	must(t, "finetune -in m.csv -target length -epochs 1 -seeds 1 -out tuned -model taught/"+modelFile)
	for args, want := range map[string]string{
		"train -in g.csv -method descriptors -out x":            "-method descriptors is not for graphs",
		"train -in m.csv -method graphcl -morgan 8 -out x":      "-morgan has no effect on graphcl",
		"train -in m.csv -method descriptors -tau 0.3 -out x":   "-tau has no effect on descriptors",
		"train -in m.csv -method descriptors -morgan -1 -out x": "-morgan",
	} {
		if _, _, err := invoke(t.Context(), args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}

// TestParquet: a table in a Parquet file is read as the same in CSV is, and what is
// written has the values of the CSV.
func TestParquet(t *testing.T) {
	t.Chdir(t.TempDir())
	type row struct {
		Name   string   `parquet:"name"`
		Skip   []int64  `parquet:"skip,list"`
		SMILES string   `parquet:"smiles"`
		Length int32    `parquet:"length"`
		Share  *float64 `parquet:"share,optional"`
		Known  bool     `parquet:"known"`
	}
	half := 0.5
	var rows []row
	text := "name,smiles,length,share,known\n"
	for i := range 600 {
		r := row{fmt.Sprintf("m, %d", i), []int64{1, 2}, strings.Repeat("C", 1+i%9) + "O", int32(2 + i%9), &half, i%2 == 1}
		if i%7 == 0 {
			r.SMILES, r.Share = "C(", nil
		}
		share := "0.5"
		if r.Share == nil {
			share = ""
		}
		rows = append(rows, r)
		text += fmt.Sprintf("\"%s\",%s,%d,%s,%d\n", r.Name, r.SMILES, r.Length, share, i%2)
	}
	var b bytes.Buffer
	if err := parquetgo.Write(&b, rows, parquetgo.Compression(&parquetgo.Snappy)); err != nil {
		t.Fatal(err)
	}
	write(t, "m.parquet", b.String())
	write(t, "m.csv", text)
	lines := "embed -id name -in m."
	must(t, lines+"csv -out a.csv")
	must(t, lines+"parquet -out b.csv")
	must(t, lines+"csv -out c.parquet")
	if read(t, "a.csv") != read(t, "b.csv") || read(t, "a.csv.rejected.csv") != read(t, "b.csv.rejected.csv") {
		t.Error("of a Parquet file comes something else")
	}
	left, err := filepath.Glob("c.parquet*")
	if err != nil || strings.Join(left, " ") != "c.parquet c.parquet.rejected.csv" {
		t.Errorf("left %v, %v", left, err)
	}
	x, err := parquet.Open("c.parquet")
	if err != nil {
		t.Fatal(err)
	}
	back, err := io.ReadAll(x)
	if err != nil {
		t.Fatal(err)
	}
	if string(back) != read(t, "a.csv") {
		t.Errorf("the Parquet file has\n%.300s\nwant\n%.300s", back, read(t, "a.csv"))
	}
	for _, in := range []string{"csv", "parquet"} {
		must(t, "finetune -in m."+in+" -id name -target length,share -seeds 1 -epochs 1 -out tuned-"+in+few+tiny)
	}
	if a, b := read(t, "tuned-csv/test-0.csv"), read(t, "tuned-parquet/test-0.csv"); a != b {
		t.Errorf("fine-tuned on a Parquet file:\n%s\non the table:\n%s", b, a)
	}
}

// TestGoesOn: a job that was interrupted, or killed while it wrote, ends with the files
// that it would have had, and computes nothing twice; another job begins anew.
func TestGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	text := strings.Split(strings.TrimSuffix(moleculeTable(3*batchRecords+100), "\n"), "\n")
	text[7], text[batchRecords+9], text[3*batchRecords+9] = "a,C(,,,,,,", "b,C(,,,,,,", "c,C(,,,,,,"
	write(t, "m.csv", strings.Join(text, "\n"))
	graphs := 0
	work := func(out, key string, batches int) (stderr string, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var e bytes.Buffer
		o := &output{Out: out, input: &input{In: "m.csv"}}
		m := apply.Model{Columns: []string{"nodes", "edges"}, Key: key, Reads: apply.Input{Content: records.Molecules}}
		before := graphs
		m.Rows = func(ctx context.Context, all []*graph.Graph) (y []float64, err error) {
			if graphs-before >= batches*(batchRecords-1) { // each but the last two has one that cannot be read
				cancel()
				return nil, ctx.Err()
			}
			for _, g := range all {
				y = append(y, float64(g.Nodes()), float64(g.Entries()))
			}
			graphs += len(all)
			return y, nil
		}
		err = o.write(ctx, "count", []apply.Model{m}, io.Discard, &e)
		return e.String(), err
	}
	for _, ending := range []string{".npy", ".csv", ".parquet"} {
		out, whole := "v"+ending, "whole"+ending
		if _, err := work(whole, "k", 9); err != nil {
			t.Fatal(err)
		}
		graphs = 0
		done := 0
		for _, batches := range []int{1, 0, 2} {
			done += batches
			stderr, err := work(out, "k", batches)
			if !errors.Is(err, context.Canceled) || !strings.Contains(stderr, fmt.Sprintf("%d records are done", done*batchRecords)) {
				t.Fatalf("after %d batches: %v, %s", done, err, stderr)
			}
			if _, err := os.Stat(out); err == nil {
				t.Error("an output before its end")
			}
			f, err := os.OpenFile(out+".partial", os.O_WRONLY|os.O_APPEND, 0) // half a batch, of a process that was killed
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.WriteString("half"); err != nil {
				t.Fatal(err)
			}
			f.Close()
		}
		if _, err := work(out, "k", 9); err != nil || graphs != 3*batchRecords+97 {
			t.Errorf("%d graphs went through the model, %v", graphs, err)
		}
		left, err := filepath.Glob(out + "*")
		if err != nil || slices.ContainsFunc(left, func(name string) bool {
			return read(t, name) != read(t, strings.Replace(name, "v", "whole", 1))
		}) || len(left) < 2 {
			t.Errorf("left %v, %v, or not what a job without interruption leaves", left, err)
		}
		for _, key := range []string{"k", "another"} {
			graphs = 0
			work(out, key, 2)
		}
		if graphs != 2*batchRecords-2 {
			t.Errorf("with another model %d graphs went through it", graphs)
		}
	}
}

// TestFinetune: every kind of target gives models whose predictions on the test records
// are those that finetune wrote, but for ties that rounding had broken, and that learn what there is to learn.
func TestFinetune(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(240))
	model, records := encoderFor(t, "m.csv"), readCSV(t, "m.csv")
	for name, c := range map[string]struct{ flags, header, metric string }{
		"numbers":             {"-target length,share", "id,length,share", "R²"},
		"tasks with gaps":     {"-target much,known" + few, "id,much,known", "ROC-AUC"},
		"classes":             {"-target most" + few, "id,class_carbon,\"class_oxygen, too\"", "accuracy"},
		"0 and 1 as classes":  {"-target much -kind classes" + few, "id,class_0,class_1", "accuracy"},
		"from an encoder":     {"-target share" + few + " -model " + model, "id,share", "RMSE"},
		"a column's division": {"-target length -split part" + few, "id,length", "MAE"},
		"one set of classes":  {"-target most -split part" + few, "id,class_carbon,\"class_oxygen, too\"", "accuracy"},
	} {
		t.Run(name, func(t *testing.T) {
			out := t.TempDir()
			stdout := must(t, "finetune -in m.csv -id name -seeds 2 -epochs 5 -batch 16 -lr 0.02 -out "+out+" "+c.flags+tiny)
			if !strings.Contains(stdout, c.metric) || !strings.Contains(read(t, filepath.Join(out, "results.md")), c.metric) {
				t.Errorf("no %s: %s", c.metric, stdout)
			}
			if together := strings.Contains(stdout, "\n"+ensembled); together != strings.Contains(c.flags, "part") {
				t.Errorf("a row of the mean of the predictions: %v", together)
			}
			if _, matrix, ok := strings.Cut(stdout, "mean prediction"); name == "one set of classes" {
				counts := regexp.MustCompile(`(\d+) +(\d+)\n`).FindAllStringSubmatch(matrix, 2)
				records := 0
				for _, row := range counts {
					var a, b int
					fmt.Sscan(row[1], &a)
					fmt.Sscan(row[2], &b)
					records += a + b
				}
				if want := len(readCSV(t, filepath.Join(out, "test-0.csv"))) - 1; !ok || records != want {
					t.Errorf("the confusion matrix has %d records, want %d:\n%s", records, want, stdout)
				}
			}
			for seed := range 2 {
				p := filepath.Join(out, "p.csv")
				must(t, fmt.Sprintf("predict -in m.csv -id name -out %s -model %s", p, filepath.Join(out, division{seed: seed}.modelFile())))
				all, test := readCSV(t, p), readCSV(t, filepath.Join(out, division{seed: seed}.testFile()))
				if header := csvLine(all[0]); header != c.header || len(all) != 241 || len(test) < 25 {
					t.Errorf("columns %s, want %s; %d and %d lines", header, c.header, len(all), len(test))
				}
				// A line is predict's, and then the targets as they are in the table.
				targets := strings.Split(strings.Fields(c.flags)[1], ",")
				for i, row := range test {
					row = row[:len(row)-1] // without the distance
					predicted, observed := row[:len(row)-len(targets)], row[len(row)-len(targets):]
					same := slices.IndexFunc(all, func(r []string) bool { return r[0] == row[0] })
					for k, v := range predicted {
						var a, b float64
						fmt.Sscan(v, &a)
						if fmt.Sscan(all[same][k], &b); v != all[same][k] && math.Abs(a-b) > 2e-5*math.Abs(b) {
							t.Errorf("seed %d: %q, predict has %q", seed, row, all[same])
						}
					}
					for k, target := range targets {
						want := target + "_observed"
						if i > 0 {
							want = records[slices.IndexFunc(records, func(r []string) bool { return r[0] == row[0] })][slices.Index(records[0], target)]
						}
						if observed[k] != want {
							t.Errorf("seed %d, %s: %s is %q, want %q", seed, row[0], target, observed[k], want)
						}
					}
				}
			}
			// Finished, it says the same again without work.
			if again := must(t, "finetune -out "+out); again != stdout {
				t.Errorf("again:\n%swant\n%s", again, stdout)
			}
		})
	}
	// The share of oxygens is easily seen: ten seeds have 0.922 ± 0.016, and which of such
	// draws one gets hangs on rounding.
	stdout := must(t, "finetune -in m.csv -target share -seeds 1 -epochs 60 -lr 0.02 -out easy"+few+tiny)
	var r2 float64
	for line := range strings.Lines(stdout) {
		if f := strings.Fields(line); len(f) == 7 && f[0] == "0" {
			fmt.Sscan(f[5], &r2)
		}
	}
	if !(r2 > 0.8) {
		t.Errorf("R² of the share is %v:\n%s", r2, stdout)
	}
}

// TestScore: predict compares with the targets that the file has, and passes on columns that are to be
// kept; the metrics are those of what it writes.
func TestScore(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(90))
	must(t, "finetune -in m.csv -target length,share -seeds 2 -epochs 2 -out numbers"+few+tiny)
	must(t, "finetune -in m.csv -target most -seeds 1 -epochs 2 -out classes"+few+tiny)
	number := filepath.Join("numbers", division{}.modelFile())
	out := must(t, "predict -in m.csv -id name -keep smiles,length -out p.csv -model "+number+","+filepath.Join("numbers", division{seed: 1}.modelFile()))
	rows, given := readCSV(t, "p.csv"), readCSV(t, "m.csv")
	if got := csvLine(rows[0]); got != "id,smiles,length,length_2,share,length_std,share_std" || len(rows) != len(given) {
		t.Fatalf("%s, %d rows", got, len(rows))
	}
	squares := 0.0
	for i, row := range rows[1:] {
		var y, p float64
		fmt.Sscan(row[2], &y)
		fmt.Sscan(row[3], &p)
		squares += (p - y) * (p - y)
		if row[1] != given[i+1][slices.Index(given[0], "smiles")] || row[2] != given[i+1][slices.Index(given[0], "length")] {
			t.Errorf("kept %q of %q", row, given[i+1])
		}
	}
	if want := fmt.Sprintf("length: 90 records with a target: RMSE %.4g, MAE ", math.Sqrt(squares/90)); !strings.Contains(out, want) || !strings.Contains(out, "\nshare: 90 records") {
		t.Errorf("no %s in\n%s", want, out)
	}
	classes := filepath.Join("classes", division{}.modelFile())
	if out := must(t, "predict -in m.csv -target most -out c.parquet -model "+classes); !strings.Contains(out, "most: 90 records with a target: accuracy ") {
		t.Error(out)
	}
	write(t, "few.csv", "smiles,length,share,most\nC,>3,,none of them\nCC,2,0.5,\n")
	if out := must(t, "predict -in few.csv -target length,share -out f.csv -model "+number); !strings.Contains(out, "length: 1 records") {
		t.Error(out)
	}
	for line, want := range map[string]string{
		"-in few.csv -target most -out g.csv -model " + classes: `few.csv:2: column most: "none of them" is not a target of the model`,
		"-in few.csv -target most -out h.csv -model " + number:  "-target names 1 columns, but the model predicts 2",
		"-in few.csv -keep smiles -out h.npy -model " + number:  "-keep: -out h.npy: want a name that ends in .csv",
		"-in few.csv -keep none -out h.csv -model " + number:    `no column "none"`,
	} {
		if _, _, err := invoke(t.Context(), "predict "+line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}
	write(t, "late.csv", "smiles,length,share\nC(,1,\nC,,\nCC,2,\n")
	if out := must(t, "predict -in late.csv -out l.csv -explain l.HTML -model "+number); !strings.Contains(out, "length: 1 records") {
		t.Error(out)
	}
	if page := read(t, "l.HTML"); !strings.HasPrefix(strings.TrimSpace(page), "<!doctype html>") {
		t.Errorf("%.100s", page)
	}
	// What is written next to predictions is written in spite of an observed value that is none.
	bad := "predict -in few.csv -target most -domain d.csv -explain e.jsonl -out g.csv -model " + classes
	if _, _, err := invoke(t.Context(), bad); err == nil || !strings.Contains(err.Error(), "is not a target") {
		t.Errorf("%s: %v", bad, err)
	}
	domain := readCSV(t, "d.csv")
	explained := read(t, "e.jsonl")
	if len(domain) != 3 || strings.Count(explained, "\n") != 2 {
		t.Errorf("%s: -domain wrote %q and -explain\n%s", bad, domain, explained)
	}
	write(t, "bare.smi", "C a\n")
	if out := must(t, "predict -in bare.smi -out b.csv -model "+number); strings.Contains(out, "known") {
		t.Errorf("without targets: %s", out)
	}
}

// TestFewPositives: 3 % of positives are in every part of every seed; a target in other
// units is learned as well, and has its own row.
func TestFewPositives(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "smiles,y,nM,logS\nC1CC,0,0,0\n"
	for i := range 300 {
		x := i * 7 % 31
		text += fmt.Sprintf("%s%s,%d,%d,%v\n", strings.Repeat("C", 1+x), strings.Repeat("O", i/31), i%100/97, 1000*x+200*(i*i%97), float64(x)/10+float64(i*i%97)/50)
	}
	write(t, "m.csv", text)
	out := must(t, "finetune -in m.csv -target y -seeds 5 -epochs 1 -out few"+few+tiny)
	if strings.Contains(out, "n/a") || strings.Count(out, "\n") < 9 {
		t.Error(out)
	}
	rows, err := results("few")
	if err != nil || len(rows) != 15 || rows[1].Method != baseline || rows[2].Method != forested || rows[0].Metric != "roc_auc" || len(rows[0].PerSeed) != 5 || rows[0].Protocol != "stratified" {
		t.Errorf("%+v, %v", rows, err)
	}
	if epochs := readCSV(t, "few/metrics.csv"); len(epochs) != 6 {
		t.Errorf("metrics.csv: %q", epochs)
	}
	if r := readCSV(t, "few/rejected.csv"); len(r) != 2 || r[1][0] != "2" || r[1][1] != "C1CC" || r[1][2] == "" {
		t.Errorf("rejected.csv: %q", r)
	}
	rmse := map[string]float64{}
	for _, targets := range []string{"nM", "logS", "nM,logS"} {
		must(t, "finetune -in m.csv -target "+targets+" -seeds 3 -epochs 40 -batch 16 -lr 0.01 -out "+targets+few+" -hidden 16 -layers 2")
		rows, err := results(targets)
		if err != nil || len(rows) != 11*len(strings.Split(targets, ",")) { // the baseline has no ranks

			t.Fatalf("%+v, %v", rows, err)
		}
		for _, r := range rows {
			if strings.HasPrefix(r.Metric, "rmse") && r.Method != baseline {
				rmse[targets+r.Metric] = r.Mean
			}
		}
	}
	for _, target := range []string{"nM", "logS"} {
		if alone, together := rmse[target+"rmse"], rmse["nM,logSrmse "+target]; !(together < 1.05*alone) {
			t.Errorf("%s: RMSE %v together, %v alone", target, together, alone)
		}
	}
}

// TestFolds: every record is tested once over the folds, an interrupted run ends with the same
// files, and what is written reproduces what is reported.
func TestFolds(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(90))
	line := "finetune -in m.csv -id name -target most -split stratified -folds 3 -balanced -epochs 3 -out "
	stdout := must(t, line+"run"+few+tiny)
	for _, want := range []string{"0, 3 ", "mean ", "baseline ", "oxygen, too predicted", "(-folds 3 -split stratified)", "class frequencies of the training set"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	rows, err := results("run")
	if err != nil || len(rows[0].PerSeed) != 3 {
		t.Fatalf("%+v, %v", rows, err)
	}
	tested := map[string]bool{}
	for f := range 3 {
		test, right := readCSV(t, filepath.Join("run", division{0, f + 1}.testFile())), 0.0
		for _, r := range test[1:] {
			tested[r[0]] = true
			var carbon float64
			fmt.Sscan(r[1], &carbon)
			if (carbon >= 0.5) == (r[3] == "carbon") {
				right += 100 / float64(len(test)-1)
			}
		}
		if rows[0].Metric != "accuracy" || math.Abs(rows[0].PerSeed[f]-right) > 1e-9 {
			t.Errorf("fold %d: accuracy %v by the table, %v", f+1, right, rows[0])
		}
	}
	if len(tested) != 90 {
		t.Errorf("%d of 90 records are tested", len(tested))
	}
	// Folds are compared with those of another run that have the same records, and no others.
	for flags, want := range map[string]int{
		"-folds 3 -seeds 2":      3,
		"-folds 3 -first-seed 1": 0,
		"-folds 2":               0,
		"-seeds 2":               0,
	} {
		out := strings.ReplaceAll(flags, " ", "")
		must(t, "finetune -in m.csv -target most -split stratified -epochs 1 -out "+out+" "+flags+few+tiny)
		others, err := results(out)
		if err != nil {
			t.Fatal(err)
		}
		if pairs, _ := run.Paired(rows[0], others[0]); len(pairs) != want {
			t.Errorf("%d pairs of -folds 3 and %s, want %d", len(pairs), flags, want)
		}
	}
	// A part that is another file has all of its records; a bound is learned from.
	text := moleculeTable(90)
	write(t, "test.csv", strings.Join(append(strings.SplitN(text, "\n", 2)[:1], strings.Split(text, "\n")[80:]...), "\n"))
	write(t, "train.csv", strings.Replace(strings.Join(strings.Split(text, "\n")[:80], "\n"), ",0.", ",>0.", 1))
	if _, _, err := invoke(t.Context(), "finetune -in train.csv -target share -test test.csv -epochs 1 -out refused"+tiny); err == nil || !strings.Contains(err.Error(), "ask for bounds") {
		t.Error(err)
	}
	stdout = must(t, "finetune -in train.csv -id name -target share -test test.csv -seeds 1 -epochs 1 -bounds -out parts"+tiny)
	if test := readCSV(t, "parts/test-0.csv"); len(test) != 12 || test[1][0] != "m79" || !strings.Contains(stdout, "(-test test.csv)") {
		t.Errorf("%q, %s", test, stdout)
	}
}

// TestSure: intervals, sets and distances stand beside the predictions, where enough records
// validate for the level.
func TestSure(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(300))
	table := readCSV(t, "m.csv")
	for target, header := range map[string]string{
		"length,share": "id,length,share,length_low,length_high,share_low,share_high,distance",
		"much":         "id,much,much_no_in,much_yes_in,distance",
		"most":         `id,class_carbon,"class_oxygen, too",class_carbon_in,"class_oxygen, too_in",distance`,
	} {
		stdout := must(t, "finetune -in m.csv -id name -target "+target+" -seeds 1 -epochs 20 -lr 0.02 -out run-"+strings.ReplaceAll(target, ",", "-")+few+tiny)
		if !strings.Contains(stdout, "coverage") {
			t.Error(stdout)
		}
		model := filepath.Join("run-"+strings.ReplaceAll(target, ",", "-"), division{}.modelFile())
		must(t, "predict -in m.csv -id name -level 0.8 -distance -explain why.jsonl -out sure.csv -model "+model)
		if why := read(t, "why.jsonl"); strings.Count(why, "\n") != 300 || !strings.HasPrefix(why, `{"id":"m0","smiles":"C`) {
			t.Errorf("%.300s", why)
		}
		write(t, "few.csv", moleculeTable(3))
		must(t, "predict -in few.csv -id name -level 0.8 -explain why.html -out few.npy -model "+model)
		why := read(t, "why.html")
		if n := strings.Count(why, `<svg xmlns="http://www.w3.org/2000/svg" class="molecule"`); n != map[string]int{"length,share": 6, "much": 3, "most": 6}[target] ||
			!strings.Contains(why, "<b>m2</b> "+strings.Split(header, ",")[1]) || !strings.HasSuffix(why, "</html>\n") {
			t.Errorf("%s: %d drawings in %.3000s", target, n, why)
		}
		if n := strings.Count(why, ", 80 %: "); n != map[string]int{"length,share": 6}[target] {
			t.Errorf("%s: %d intervals in %.3000s", target, n, why)
		}
		must(t, "predict -in m.csv -id name -out plain.csv -model "+model)
		sure, plain := readCSV(t, "sure.csv"), readCSV(t, "plain.csv")
		if csvLine(sure[0]) != header {
			t.Errorf("%s: columns %q", target, sure[0])
		}
		covered := 0.0
		for i, row := range sure[1:] {
			var v []float64
			for _, text := range row[1:] {
				x, err := strconv.ParseFloat(text, 64)
				if err != nil {
					t.Fatal(err)
				}
				v = append(v, x)
			}
			if n := len(plain[0]); !slices.Equal(row[:n], plain[i+1]) || v[len(v)-1] < 0 {
				t.Fatalf("%q, without intervals %q", row, plain[i+1])
			}
			switch record := readRow(table, row[0]); target {
			case "length,share":
				if !(v[2] < v[0] && v[0] < v[3]) {
					t.Fatalf("%q", row)
				}
				if y, _ := strconv.ParseFloat(record[2], 64); v[2] <= y && y <= v[3] {
					covered++
				}
			case "much":
				covered += v[1+len(record[4])-1+int(record[4][0]-'0')]
			default:
				covered += v[2+map[string]int{"carbon": 0, "oxygen, too": 1}[record[6]]]
			}
		}
		if covered < 180 { // most of them are trained on
			t.Errorf("%s: %g of 300 are covered", target, covered)
		}
		if _, _, err := invoke(t.Context(), "predict -in m.csv -level 0.99 -out x.csv -model "+model); err == nil || !strings.Contains(err.Error(), "needs 99 validation records, and there are") {
			t.Error(err)
		}
	}
}

// TestCheck: the command lists what is odd and writes a table that finetune reads.
func TestCheck(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", "name,smiles,y\na,OCC,1\nb,CCO,3\nc,CC(=O)[O-].[Na+],2\n")
	stdout := must(t, "check -in m.csv -id name -target y -merge mean -largest-fragment -neutralise -out clean.csv")
	for _, want := range []string{"duplicates ", "replicates ", "clean.csv: 2 of 3 molecules"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%s lacks %q", stdout, want)
		}
	}
	if got := read(t, "clean.csv"); got != "id,smiles,y\na,CCO,2\nc,CC(=O)O,2\n" && got != "id,smiles,y\na,CCO,2\nc,CC(O)=O,2\n" {
		t.Error(got)
	}
	if _, _, err := invoke(t.Context(), "check -in m.csv -merge mean"); err == nil {
		t.Error("-merge without -out")
	}
}

// TestDomain: salts, metals and polymers are outside of the domain of a model of organic molecules, and each
// molecule has its nearest training molecules, unless the file is anonymous.
func TestDomain(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(60))
	write(t, "alien.csv", "id,smiles\nsalt,[Na+].[Cl-]\nferrocene,[Fe+2].[cH-]1cccc1.[cH-]1cccc1\n"+
		"polymer,*CC*\nuranium,F[U](F)(F)(F)(F)F\n")
	must(t, "finetune -in m.csv -id name -target length,share -seeds 2 -epochs 1 -out run"+few+tiny)
	must(t, "predict -in alien.csv -id id -model run -domain domain.csv -out p.csv")
	rows := readCSV(t, "domain.csv")
	if len(rows) != 5 || len(rows[0]) != 6+3*4 || rows[0][9] != "nearest_1_share" {
		t.Fatalf("%q", rows)
	}
	for _, row := range rows[1:] {
		if row[2] != "1" || !strings.Contains(row[3], "no training molecule has") {
			t.Errorf("%q is not outside", row)
		}
	}
	must(t, "predict -in m.csv -id name -model run -domain domain.csv -out p.csv")
	trained := 0
	for _, row := range readCSV(t, "domain.csv")[1:] {
		if row[6] == "1.000" && row[2] == "0" {
			trained++
		}
	}
	if trained < 40 {
		t.Errorf("%d of 60 molecules are as similar as training molecules are", trained)
	}
	must(t, "finetune -in m.csv -id name -target length -seeds 1 -epochs 1 -anonymous -out secret"+few+tiny)
	_, _, err := invoke(t.Context(), "predict -in m.csv -model secret -domain domain2.csv -out q.csv")
	if err == nil || !strings.Contains(err.Error(), "holds no training molecules") {
		t.Error(err)
	}
}

// TestSureOfSeveral: an ensemble has one interval, distance and explanation, which belong to its mean.
func TestSureOfSeveral(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(60))
	must(t, "finetune -in m.csv -id name -target length -seeds 2 -epochs 2 -out run"+few+tiny)
	must(t, "predict -in m.csv -id name -model run -level 0.5 -distance -explain why.jsonl -out sure.csv")
	table := readCSV(t, "sure.csv")
	if got := csvLine(table[0]); got != "id,length,length_std,length_low,length_high,distance" {
		t.Fatal(got)
	}
	var singles [2][][]string
	for seed := range singles {
		path := fmt.Sprintf("one-%d.csv", seed)
		must(t, fmt.Sprintf("predict -in m.csv -id name -model run/model-%d.safetensors -level 0.5 -distance -out %s", seed, path))
		singles[seed] = readCSV(t, path)
	}
	number := func(text string) float64 {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	lines := strings.Split(read(t, "why.jsonl"), "\n")
	for i, row := range table[1:] {
		// Columns of an ensemble, and of one model: the value and the distance are means, and intervals are at
		// most as wide as in the mean.
		mean := func(single int) float64 {
			return (number(singles[0][i+1][single]) + number(singles[1][i+1][single])) / 2
		}
		narrower := (number(row[4]) - number(row[3])) / (mean(3) - mean(2))
		middle := (number(row[4]) + number(row[3])) / 2
		if narrower < 0.7 || narrower > 1.0001 || math.Abs(middle-number(row[1])) > 1e-4*(1+math.Abs(middle)) {
			t.Errorf("%q: an interval of %.3f times the mean width", row, narrower)
		}
		for column, single := range map[int]int{1: 1, 5: 4} {
			mean := (number(singles[0][i+1][single]) + number(singles[1][i+1][single])) / 2
			if math.Abs(number(row[column])-mean) > 1e-4*(1+math.Abs(mean)) {
				t.Errorf("%q: column %d is not the mean %g", row, column, mean)
			}
		}
		var why apply.Explanation
		if err := json.Unmarshal([]byte(lines[i]), &why); err != nil {
			t.Fatal(err)
		}
		sum := why.Mean["length"]
		for _, v := range why.Nodes["length"] {
			sum += v
		}
		if p := why.Prediction["length"]; math.Abs(p-number(row[1])) > 1e-4 || math.Abs(sum-p) > 1e-4 {
			t.Errorf("%q: the explanation adds up to %g, and is of %g", row, sum, p)
		}
	}
}

// readRow is the row of an id.
func readRow(rows [][]string, id string) []string {
	return rows[slices.IndexFunc(rows, func(r []string) bool { return r[0] == id })]
}

// results are the rows of a run.
func results(dir string) ([]run.Row, error) {
	r, err := run.Read(dir)
	if err != nil {
		return nil, err
	}
	return r.Rows, nil
}

// TestEnsemble: several models give the mean of their predictions, and its spread.
func TestEnsemble(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(60))
	must(t, "finetune -in m.csv -target length,share -seeds 3 -epochs 2 -out run"+few+tiny)
	rows := func(models ...int) [][]string {
		var paths []string
		for _, m := range models {
			paths = append(paths, filepath.Join("run", division{seed: m}.modelFile()))
		}
		r, err := csv.NewReader(strings.NewReader(must(t, "predict -in m.csv -out - -model "+strings.Join(paths, ",")))).ReadAll()
		if err != nil || len(r) != 61 {
			t.Fatalf("%d rows, %v", len(r), err)
		}
		return r
	}
	together := rows(0, 1, 2)
	if h := strings.Join(together[0], ","); h != "id,length,share,length_std,share_std" {
		t.Error(h)
	}
	each := [][][]string{rows(0), rows(1), rows(2)}
	for i := 1; i < 61; i++ {
		for k := 1; k <= 2; k++ {
			var x [3]float64
			var mean, std float64
			for m := range each {
				fmt.Sscan(each[m][i][k], &x[m])
			}
			fmt.Sscan(together[i][k], &mean)
			fmt.Sscan(together[i][k+2], &std)
			want := (x[0] + x[1] + x[2]) / 3
			spread := math.Sqrt((math.Pow(x[0]-want, 2) + math.Pow(x[1]-want, 2) + math.Pow(x[2]-want, 2)) / 2)
			if math.Abs(mean-want) > 1e-5 || math.Abs(std-spread) > 1e-5 {
				t.Fatalf("record %d: %v ± %v, want %v ± %v", i, mean, std, want, spread)
			}
		}
	}
	checkEnsembleFile(t)
}

// checkEnsembleFile: an ensemble in one file does what the run directory does, byte for byte, and one of its models is
// named as in a directory.
func checkEnsembleFile(t *testing.T) {
	t.Helper()
	for _, name := range []string{"all.zip", "run/all.zip", "run/all.zip"} {
		want := name + ": 3 models of length, share\nnext: specmatch predict -in FILE -model " + name
		if out := must(t, "convert run "+name); !strings.HasPrefix(out, want) {
			t.Errorf("convert prints %q", out)
		}
	}
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if read("all.zip") != read("run/all.zip") {
		t.Error("the same models have other bytes")
	}
	write(t, "some.csv", moleculeTable(9))
	const flags = " -level 0.5 -distance -explain why.jsonl -domain domain.csv"
	outputs := func(model string) string {
		must(t, "predict some.csv p.csv -model "+model+flags)
		return read("p.csv") + read("why.jsonl") + read("domain.csv")
	}
	if outputs("run") != outputs("all.zip") {
		t.Error("the ensemble predicts other things than the run directory")
	}
	const one = "/model-1.safetensors"
	if must(t, "predict some.csv - -model run"+one) != must(t, "predict some.csv - -model all.zip"+one) {
		t.Error("a model of the ensemble is not that of the directory")
	}
	if out := must(t, "inspect all.zip"+one); strings.TrimPrefix(out, "file        all.zip") !=
		strings.TrimPrefix(must(t, "inspect run"+one), "file        run") {
		t.Errorf("inspect prints %s", out)
	}
	if text := must(t, "embed m.csv - -model all.zip"+one); strings.Count(text, "\n") != 61 {
		t.Error(text)
	}
	write(t, "torch.zip", "PK\x03\x04 and so on")
	write(t, "half.zip", read("all.zip")[:5000])
	for line, want := range map[string]string{
		"embed m.csv v.npy -model all.zip":          "this ensemble has 3 models; name one, such as all.zip/model-0.safetensors",
		"inspect all.zip":                           "this ensemble has 3 models; name one",
		"finetune m.csv r -target y -model all.zip": "this ensemble has 3 models; name one",
		"predict m.csv p.csv -model all.zip/no":     `all.zip has no model "no"`,
		"predict m.csv p.csv -model half.zip":       "half.zip: the ensemble is damaged or truncated",
		"predict m.csv p.csv -model torch.zip":      "torch.zip: is a zip archive, such as torch.save writes",
		"predict m.csv p.csv -model m.csv/x":        "open m.csv/x: ",
		"predict m.csv all.zip -model all.zip":      "want a name that ends in .npy, .csv or .parquet",
		"convert run run.safetensors":               "this is a directory; want a file of weights, or -out NAME.zip",
		"convert m.csv m.zip":                       "-in m.csv is a file; want a name that ends in .safetensors",
		"convert pretrained m.zip":                  `-out "m.zip": want a name that ends in .safetensors`,
	} {
		if _, _, err := invoke(t.Context(), line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; want %q", line, err, want)
		}
	}
}

// TestGraphs: the whole on graphs, of every format.
func TestGraphs(t *testing.T) {
	t.Chdir(t.TempDir())
	var lines, edges strings.Builder
	edges.WriteString("graph,source,target,label,y\n")
	for i := range 60 {
		n := 4 + i%5
		var pairs []string
		for a := range n - 1 {
			pairs = append(pairs, fmt.Sprintf("[%d,%d]", a, a+1))
		}
		if i%2 == 1 {
			pairs = append(pairs, fmt.Sprintf("[%d,0]", n-1))
		}
		var labels []string
		for a := range n {
			labels = append(labels, fmt.Sprint(1+a%2))
			fmt.Fprintf(&edges, "g%d,%d,,%d,%d\n", i, a, 1+a%2, i%2)
		}
		for _, p := range pairs {
			a, b, _ := strings.Cut(strings.Trim(p, "[]"), ",")
			fmt.Fprintf(&edges, "g%d,%s,%s,,%d\n", i, a, b, i%2)
		}
		fmt.Fprintf(&lines, `{"id":"g%d","edges":[%s],"labels":[%s],"y":%d}`+"\n", i, strings.Join(pairs, ","), strings.Join(labels, ","), i%2)
	}
	write(t, "g.jsonl", lines.String())
	write(t, "e.csv", edges.String())
	must(t, "train -in g.jsonl -epochs 1 -method graphcl -batch 16 -out enc"+tiny)
	model := filepath.Join("enc", modelFile)
	ofLines := must(t, "embed -in g.jsonl -id id -out - -model "+model)
	tuned := must(t, "finetune -in g.jsonl -id id -target y -seeds 1 -epochs 20 -batch 8 -lr 0.01 -out tuned -model "+model)
	must(t, "finetune -in e.csv -id graph -target y -seeds 1 -epochs 20 -batch 8 -lr 0.01 -out tuned2 -model "+model)
	if a, b := read(t, filepath.Join("tuned", division{}.testFile())), read(t, filepath.Join("tuned2", division{}.testFile())); a != b || !strings.HasPrefix(a, "id,y,y_observed,distance\ng") {
		t.Errorf("of lines\n%s\nof edges\n%s", a, b)
	}
	if len(strings.Split(ofLines, "\n")) != 62 || !strings.Contains(tuned, "ROC-AUC") {
		t.Errorf("%s%s", ofLines, tuned)
	}
	about := must(t, "inspect -model "+filepath.Join("tuned", division{}.modelFile()))
	for _, want := range []string{"gin, 2 layers of width 8", "labels 1 to 2", "predicts    binary: y", "trained on  g.jsonl "} {
		if !strings.Contains(about, want) {
			t.Errorf("no %q in\n%s", want, about)
		}
	}
	if about := must(t, "inspect -model "+model); strings.Contains(about, "with self-loops") || !strings.Contains(about, "graphcl, seed 0, 1 epochs") {
		t.Error(about)
	}
}

// TestGraphCLCode: the self-loops of GraphCL's code depend on the numbers of nodes, so encoders have them on request
// alone, and are then not fine-tuned as if they had none. A run keeps its choice when it is resumed.
func TestGraphCLCode(t *testing.T) {
	t.Chdir(t.TempDir())
	lines := func(edges string) string {
		return strings.Repeat(`{"nodes":4,"edges":`+edges+`,"labels":[1,1,1,1],"y":0.5}`+"\n", 30)
	}
	write(t, "a.jsonl", lines("[[0,1],[1,2]]"))
	write(t, "b.jsonl", lines("[[1,2],[2,3]]"))  // the node without an edge comes first
	distance := func(dir string) (sum float64) { // of how far the vectors of the two files are from each other
		must(t, "embed -in a.jsonl -out a.csv -model "+filepath.Join(dir, modelFile))
		must(t, "embed -in b.jsonl -out b.csv -model "+filepath.Join(dir, modelFile))
		for column := 1; column <= 16; column++ {
			sum += math.Abs(numbers(t, "a.csv", column)[0][0] - numbers(t, "b.csv", column)[0][0])
		}
		return sum
	}
	must(t, "train -in a.jsonl -method graphcl -epochs 1 -out intended"+tiny)
	if d := distance("intended"); d > 1e-4 {
		t.Errorf("vectors depend on the numbers of nodes: %v", d)
	}
	must(t, "finetune -in a.jsonl -target y -seeds 1 -epochs 1 -out tuned -model "+filepath.Join("intended", modelFile))
	_, _, err := invoke(t.Context(), "predict -in a.jsonl -model tuned -explain e.jsonl -explain-by fragments -out p.csv")
	if err == nil || !strings.Contains(err.Error(), "-explain-by fragments is for molecules, and tuned") {
		t.Errorf("fragments of graphs: %v", err)
	}
	must(t, "train -in a.jsonl -method graphcl -graphcl-code -epochs 1 -out code"+tiny)
	must(t, "train -out code") // and not "cannot be resumed"
	model := filepath.Join("code", modelFile)
	if d := distance("code"); d < 1e-2 {
		t.Errorf("GraphCL's self-loops change nothing: %v", d)
	}
	if about := must(t, "inspect -model "+model); !strings.Contains(about, "with self-loops") {
		t.Error(about)
	}
	_, _, err = invoke(t.Context(), "finetune -in a.jsonl -target y -out refused -seeds 1 -model "+model)
	if err == nil || !strings.Contains(err.Error(), "self-loops of GraphCL's code") || !strings.Contains(err.Error(), "-graphcl-code=false") {
		t.Errorf("finetune of an encoder with self-loops: %v", err)
	}
	// Earlier versions dropped the loops; their runs are printed and resumed.
	intended := filepath.Join("intended", modelFile)
	must(t, "finetune -in a.jsonl -target y -seeds 1 -epochs 1 -out earlier -model "+intended)
	sum := func(path string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(read(t, path)))) }
	edit(t, filepath.Join("earlier", "config.json"), sum(intended), sum(model))
	edit(t, filepath.Join("earlier", "config.json"), intended, model)
	must(t, "finetune -out earlier")
	must(t, "finetune -out earlier -seeds 2")
}

// edit replaces a text in a file.
func edit(t *testing.T, path, text, replacement string) {
	t.Helper()
	content := read(t, path)
	if !strings.Contains(content, text) {
		t.Fatalf("%s has no %s", path, text)
	}
	write(t, path, strings.ReplaceAll(content, text, replacement))
}

// TestEarlierKinds: earlier versions took the targets of TUDataset's format for classes, whatever their values. Their
// runs go on with the kind that they learned, even if today's would be another one.
func TestEarlierKinds(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.Mkdir("S", 0o755); err != nil {
		t.Fatal(err)
	}
	var indicator strings.Builder
	for i := range 80 {
		fmt.Fprintln(&indicator, i/2+1)
	}
	write(t, filepath.Join("S", "S_A.txt"), "1, 2\n2, 1\n3, 4\n4, 3\n")
	write(t, filepath.Join("S", "S_graph_indicator.txt"), indicator.String())
	write(t, filepath.Join("S", "S_graph_labels.txt"), strings.Repeat("0,1\n1,2\n1,1\n0,2\n", 10))
	write(t, filepath.Join("S", "S_graph_attributes.txt"), strings.Repeat("1\n2.5\n7\n2.5\n", 10))
	for target, kind := range map[string]string{"attribute": "regression", "class1": "binary"} {
		const classes = `"kind": "classes"`
		config := filepath.Join(target, "config.json")
		start := "finetune -in S -seeds 1 -epochs 1" + tiny + "-target " + target
		must(t, start+" -kind classes -out "+target)
		edit(t, config, classes, `"kind": "auto"`)
		must(t, "finetune -out "+target)
		must(t, "finetune -out "+target+" -seeds 2")
		rows, err := results(target)
		if err != nil {
			t.Fatal(err)
		}
		if rows[0].Method != "classes" || len(rows[0].PerSeed) != 2 {
			t.Errorf("%s: the first row is %+v, want classes of two seeds", target, rows[0])
		}
		// Fits of two kinds are not mixed.
		must(t, start+" -kind "+kind+" -out new-"+target)
		edit(t, filepath.Join("new-"+target, "config.json"), `"kind": "`+kind+`"`, `"kind": "auto"`)
		_, _, err = invoke(t.Context(), "finetune -out "+target+" -collect new-"+target)
		want := "learned classes and " + kind
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: a mixture: %v; want %s", target, err, want)
		}
	}
}

// TestEveryMethod: whatever is registered trains, on what it is for.
func TestEveryMethod(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(40))
	var lines strings.Builder
	for i := range 40 {
		fmt.Fprintf(&lines, `{"edges":[[0,1],[1,2],[2,3],[3,%d]],"labels":[1,2,1,%d]}`+"\n", i%2, 1+i%2)
	}
	write(t, "g.jsonl", lines.String())
	for in, regime := range map[string]method.Regime{"m.csv": method.Transfer, "g.jsonl": method.Unsupervised} {
		for _, m := range method.Names(regime) {
			out := filepath.Join("run", in, m)
			labels := ""
			if known, err := method.Get(m); err == nil && known.Labels {
				labels = " -targets m.csv -tasks length -id name"
			}
			must(t, "train -in "+in+" -method "+m+" -epochs 1 -batch 16 -out "+out+labels+tiny)
			must(t, "embed -in "+in+" -out - -model "+filepath.Join(out, modelFile))
		}
	}
}

// TestTrainGoesOn: -out alone takes a finished run up, and the same flags give the same
// file.
func TestTrainGoesOn(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(40))
	for _, m := range []string{"specmatch", "attrmasking"} {
		line := "train -in m.csv -epochs 2 -batch 16 -method " + m + tiny
		must(t, line+"-out a-"+m)
		must(t, line+"-out b-"+m)
		if read(t, filepath.Join("a-"+m, modelFile)) != read(t, filepath.Join("b-"+m, modelFile)) {
			t.Errorf("%s: two runs, two files", m)
		}
		if again := must(t, "train -out a-"+m); !strings.Contains(again, "trained on 40 molecules by "+m) {
			t.Error(again)
		}
	}
}

// TestDefaultMemory: a small container, or a machine that does not say what it has, gets a cache that fits.
func TestDefaultMemory(t *testing.T) {
	for available, want := range map[float64]int{250e6: 59, 64 << 30: 320, 1280 << 20: 320, math.Inf(1): 320, 0: 0} {
		if got := defaultMemory(available); got != want {
			t.Errorf("%g bytes: %d MB, want %d", available, got, want)
		}
	}
}

// TestMistakes: one line each, that says what is wrong and what would be right.
func TestMistakes(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(40))
	write(t, "g.jsonl", strings.Repeat(`{"id":"a","edges":[[0,1]],"labels":[1,2],"y":1}`+"\n"+`{"id":"b","edges":[[0,1]],"labels":[2,2],"y":0}`+"\n", 10))
	write(t, "empty.csv", "")
	write(t, "header.csv", "name,smiles\n")
	write(t, "mark.csv", "\uFEFFsmiles\nC\n")
	write(t, "mixed.csv", "smiles\r\nC\nCC\r\n")
	write(t, "atoms.csv", "smiles\nQq\nQx\n")
	write(t, "labels.jsonl", `{"edges":[],"labels":[7]}`+"\n")
	write(t, "plain.jsonl", `{"edges":[],"nodes":2}`+"\n")
	write(t, "words.csv", "smiles,y,z,part\n"+strings.Repeat("C,1,a,train\nCC,x,b,train\nCCC,2,c,valid\n", 1)+"CCCC,,d,tset\n")
	write(t, "one.smi", "C\n")
	write(t, "not.safetensors", "nonsense")
	write(t, "not.parquet", "PAR1 or what looks so PAR1")
	write(t, "packed.csv.gz", "smiles\nCCCCCCCCCCCCCC\n")
	for _, name := range []string{"y.csv.rejected.csv", "y.npy.ids.csv", "y.csv.partial", "y.csv.journal", "y.parquet.rejected.csv.partial", "model.csv", "y.safetensors"} {
		write(t, name, "smiles\nC\n")
	}
	if err := os.Symlink("y.safetensors", "link.safetensors"); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir("plain", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere.csv", "link.csv"); err != nil {
		t.Fatal(err)
	}
	write(t, "plain/test-1.csv", "smiles,y\nC,1\n")
	write(t, "plain/rejected.csv", "smiles,y\nC,1\n")
	write(t, "plain/log.jsonl", "{}\n")
	write(t, "report.html", "unsupervised -seeds 1\n")
	write(t, "costs.jsonl", "unsupervised -seeds 1\n")
	write(t, "plain/model-0.safetensors", "")
	for _, name := range []string{"readonly", "folder.csv", "folder.safetensors", "folder.html"} {
		if err := os.Mkdir(name, 0o555); err != nil {
			t.Fatal(err)
		}
	}
	chem, gin := encoderFor(t, "m.csv"), encoderFor(t, "g.jsonl")
	must(t, "finetune -in m.csv -target length -seeds 1 -epochs 1 -out tuned"+tiny)
	must(t, "finetune -in m.csv -target share -seeds 1 -epochs 1 -out other"+tiny)
	tuned, other := filepath.Join("tuned", division{}.modelFile()), filepath.Join("other", division{}.modelFile())
	release, err := files.LockFile("locked.npy")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	for _, c := range []struct {
		line, want string
		usage      bool
	}{
		{"embd", `unknown command "embd"; did you mean "embed"?`, true},
		{"embed -in g.jsonl -out v.npy", "g.jsonl: has graphs, want molecules", false},
		{"predict -in m.csv -out p.csv", "-model is needed", true},
		{"sweep -in folder.html/../report.html -out .", "cannot write report.html: it is the input", true},
		{"sweep -in costs.jsonl -out .", "cannot write costs.jsonl: it is the input", true},
		{"embed -in m.csv -out ./m.csv", "it is the input m.csv", true},
		{"embed -in y.csv.rejected.csv -out y.csv", "cannot write y.csv.rejected.csv", true},
		{"embed -in y.npy.ids.csv -out y.npy", "cannot write y.npy.ids.csv", true},
		{"embed -in y.csv.partial -format csv -out y.csv", "cannot write y.csv.partial", true},
		{"embed -in y.csv.journal -format csv -out y.csv", "cannot write y.csv.journal", true},
		{"embed -in y.parquet.rejected.csv.partial -format csv -out y.parquet", "cannot write y.parquet.rejected.csv.partial", true},
		{"embed -in m.csv -model model.csv -out model.csv", "it is the input model.csv", true},
		{"predict -in m.csv -model x,model.csv -out model.csv", "it is the input model.csv", true},
		{"embed -in m.csv -out folder.csv", "cannot write folder.csv: it is a folder", true},
		{"finetune -in plain/test-1.csv -target y -seeds 2 -out plain", "cannot write plain/test-1.csv", true},
		{"finetune -in m.csv -target length -model plain/model-0.safetensors -out plain", "cannot write plain/model-0.safetensors", true},
		{"convert -in readonly -out folder.safetensors", "is a folder", true},
		{"convert -in link.safetensors -out y.safetensors", "it is the input ", true},
		{"report -in readonly -out folder.html", "is a folder", true},
		{"report -in tuned -out tuned/report.html", "-out: tuned/report.html is inside the run directory", true},
		{"compare -in tuned,other -out other/new.md", "is inside the run directory", true},
		{"report -in model.csv -out model.csv", "cannot write model.csv: it is the input model.csv", true},
		{"embed -in m.csv -out link.csv", "link.csv: it is a link", true},
		{"predict -in m.csv -explain /dev/null -out p.csv -model x", "/dev/null: it is a device", true},
		{"predict -in m.csv -explain p.csv -out ./p.csv -model x", "another output has that name", true},
		{"predict -in m.csv -explain p.npy.ids.csv -out p.npy -model x", "another output has that name", true},
		{"predict -in m.csv -explain p.csv.lock -out p.csv -model x", "another output has that name", true},
		{"predict -in m.csv -explain p.csv.partial -out p.csv -model x", "another output has that name", true},
		{"finetune -in plain/rejected.csv -target y -out plain", "cannot write plain/rejected.csv: it is the input", true},
		{"train -in plain/log.jsonl -out plain", "cannot write plain/log.jsonl: it is the input", true},
		{"predict -in m.csv -out p.csv -model pretrained", "pretrained: an encoder without a head cannot predict", false},
		{"embed -in m.csv -out locked.npy", "locked.npy: another process is writing it", false},
		{"embed -out v.npy -model " + chem, "-in is needed", true},
		{"embed -in m.csv -model " + chem, "-out is needed", true},
		{"embed -in m.csv -out v.txt -model " + chem, "ends in .npy, .csv or .parquet", true},
		{"embed -in m.csv -out m.csv -model " + chem, "it is the input m.csv", true},
		{"embed -in none.csv -out v.npy -model " + chem, "none.csv: there is no such file", false},
		{"embed -in m.csv -out v.npy -model none", "none: no such file", false},
		{"embed -in m.csv -out v.npy -model not.safetensors", "not.safetensors", false},
		{"embed -in m.csv -out none/v.npy -model " + chem, "there is no folder none", false},
		{"embed -in m.csv -id nam -out v.npy -model " + chem, `no column "nam"`, false},
		{"embed -in m.csv -smiles-column SMI -out v.npy -model " + chem, `no column "SMI"`, false},
		{"embed -in empty.csv -out v.npy -model " + chem, "empty.csv:1: want a header", false},
		{"embed -in header.csv -out v.npy -model " + chem, "there are no records in it", false},
		{"embed -in atoms.csv -out v.npy -model " + chem, `none of its 2 records can be used, such as dataset: atoms.csv:2: "Qq"`, false},
		{"embed -in packed.csv.gz -out v.npy -model " + chem, "packed.csv.gz: is no gzip file (gzip: invalid header)", false},
		{"embed -in m.csv -out v.npy -model " + gin, "m.csv: has molecules, want graphs", false},
		{"embed -in g.jsonl -out v.npy -model " + chem, "g.jsonl: has graphs, want molecules", false},
		{"embed -in labels.jsonl -out v.npy -model " + gin, "has the label 7, which the model has not seen; it has seen 1 to 2", false},
		{"embed -in plain.jsonl -out v.npy -model " + gin, "0 columns of labels, the model wants 1", false},
		{"embed -in not.safetensors -out v.npy -model " + chem, "want .csv, .smi, .sdf, .jsonl", false},
		{"embed -in not.parquet -out v.npy", "not.parquet: ", false},
		{"embed -in - -format parquet -out v.npy", "give its name", true},
		{"embed -in m.csv -out v.npy -precision float16 -model " + chem, "float32 or float64", true},
		{"predict -in m.csv -out p.csv -model " + chem, "an encoder without a head", false},
		{"predict -in m.csv -out p.csv -model " + tuned + "," + other, "predict different things", true},
		{"predict -in m.csv -out p.csv -model " + tuned + "," + tuned, "listed twice", true},
		{"finetune -in m.csv", "-target is needed", true},
		{"finetune -in m.csv -target length -folds 1", "-folds 1: want at least 2", true},
		{"finetune -in g.jsonl -id id -target y -features morgan", "-features are of molecules, and g.jsonl has graphs", true},
		{"finetune -in m.csv -target length -features morgan,morgan:2:2048", "is listed twice", true},
		{"finetune -in m.csv -target length -folds 3 -test m.csv", "-folds divides -in alone", true},
		{"finetune -in m.csv -target length -folds 3 -split part", "folds need one file", false},
		{"finetune -in m.csv -target length -test none.csv", "none.csv", false},
		{"finetune -in m.csv -target length -test one.smi", "has no columns", false},
		{"finetune -in m.csv -target length -epochs 0 -out run", "-epochs 0: want at least 1", true},
		{"finetune -in m.csv -target lenght", `no column "lenght"`, false},
		{"finetune -in m.csv -target length -model " + gin, "has molecules, want graphs", false},
		{"finetune -in m.csv -target most,name", "only one target can have classes", true},
		{"finetune -in m.csv -target name", "has 40 different values in 40 records", false},
		{"finetune -in m.csv -target length -kind binary", `want 0, 1 or nothing`, false},
		{"finetune -in words.csv -target y -kind regression", `words.csv:3: column y: "x" is not a number`, false},
		{"finetune -in words.csv -target y -kind regression -split part", `is not a number`, false},
		{"finetune -in words.csv -target y", `words.csv:3: column y: "x" is not a number; leave a missing target empty`, false},
		{"finetune -in m.csv -target length -split most", `m.csv:2: column most: `, false},
		{"finetune -in one.smi -target y", `has no columns, such as "y"; want a .csv`, false},
		{"finetune -in g.jsonl -target y -split scaffold", "-split scaffold is for molecules", true},
		{"finetune -in m.csv -target length -split scaffold", "into 0 to train on, 0 to validate and 40 to test", false},
		{"finetune -in g.jsonl -target z", "no record has a value of z", false},
		{"finetune -in m.csv -target share -out tuned", "cannot be resumed: -target was length, now it is share", true},
		{"train -in one.smi", "training needs at least 2", true},
		{"train -in m.csv -method attrmasking -self-loops", "-self-loops is for graphs", true},
		{"train -in g.jsonl -method attrmasking", "is not for graphs", true},
		{"train -in m.csv -method untrained", "is not for molecules", true},
		{"train -in m.csv -method magic", "want untrained, untrained-torch, infograph", true},
		{"train -in m.csv -hidden 100000000", "-hidden 100000000", true},
		{"finetune -in g.jsonl -target y -model pretrained", "has graphs, want molecules", false},
		{"inspect -model m.csv", "m.csv", false},
	} {
		if strings.HasPrefix(c.line, "finetune") && !strings.Contains(c.line, "-out") {
			c.line += " -out run -epochs 1 -seeds 1" + tiny
		}
		if strings.HasPrefix(c.line, "train") && !strings.Contains(c.line, "-out") {
			c.line += " -out run -epochs 1"
		}
		_, _, err := invoke(t.Context(), c.line)
		var usage *cli.UsageError
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || errors.As(err, &usage) != c.usage {
			t.Errorf("%s:\n  %v (usage: %v)\n  want %s", c.line, err, errors.As(err, &usage), c.want)
		}
	}
	for _, in := range []string{"mark.csv", "mixed.csv"} { // which are no mistakes
		must(t, "embed -in "+in+" -out v.npy -model "+chem)
	}
	if os.Geteuid() != 0 {
		if _, _, err := invoke(t.Context(), "embed -in m.csv -out readonly/v.npy -model "+chem); err == nil || !strings.Contains(err.Error(), "permission denied") {
			t.Errorf("a folder that cannot be written: %v", err)
		}
	}
}

// TestConvert: weights of PyTorch become a model, whatever the form of their file,
// that embeds as PyTorch does; what does not fit is named.
func TestConvert(t *testing.T) {
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for kind, text := range map[string]string{"chem": "chemgin", "bio": "biogin"} {
		var want []string
		for _, file := range []string{kind + ".safetensors", kind + ".pth", kind + "-legacy.pth"} {
			in := filepath.Join(testdata, file)
			if out := must(t, "convert -in "+in+" -out m.safetensors"); !strings.HasPrefix(out, "m.safetensors: "+text+", 2 layers of width 3\n") {
				t.Error(out)
			}
			m, err := openModel("m.safetensors", cli.Engine{Backend: "cpu"})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, p := range m.Encoder.Parameters() {
				v := make([]float64, p.Value.Len())
				m.be.Download(v, p.Value)
				got = append(got, fmt.Sprint(p.Name, v))
			}
			for _, b := range m.Encoder.Buffers() {
				v := make([]float64, b.Value.Len())
				m.be.Download(v, b.Value)
				got = append(got, fmt.Sprint(b.Name, v))
			}
			m.Close()
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: other weights", file)
			}
		}
	}
	must(t, "convert -in "+filepath.Join(testdata, "chem.pth")+" -out chem.safetensors")
	var embeddings map[string][]float64
	if err := json.Unmarshal([]byte(read(t, filepath.Join(testdata, "chem.json"))), &embeddings); err != nil {
		t.Fatal(err)
	}
	for smiles, want := range embeddings {
		write(t, "one.smi", smiles+"\n")
		_, row, _ := strings.Cut(must(t, "embed -in one.smi -out - -readout own -model chem.safetensors"), "\n")
		for k, text := range strings.Split(strings.TrimSpace(row), ",")[1:] {
			if got, err := strconv.ParseFloat(text, 64); err != nil || math.Abs(got-want[k]) > 1e-5 {
				t.Errorf("%s: %s, PyTorch has %v", smiles, row, want)
			}
		}
	}
	// Another encoder, by way of a model that is like it.
	write(t, "g.jsonl", strings.Repeat(`{"edges":[[0,1]],"labels":[1,2]}`+"\n", 4))
	gin := encoderFor(t, "g.jsonl")
	m, err := openModel(gin, cli.Engine{Backend: "cpu"})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	bare := nn.Rename(m.Encoder, func(name string) string { return strings.TrimPrefix(name, "encoder.") })
	if err := nn.SaveFile("bare.safetensors", bare, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := invoke(t.Context(), "embed -in g.jsonl -out - -model bare.safetensors"); err == nil || !strings.Contains(err.Error(), "nothing says of what model") {
		t.Errorf("bare weights: %v", err)
	}
	if _, _, err := invoke(t.Context(), "convert -in bare.safetensors -like "+gin+" -out c.safetensors"); err == nil || !strings.Contains(err.Error(), "missing: convs.0.eps, convs.1.eps") {
		t.Errorf("without PyTorch Geometric's eps: %v", err)
	}
	must(t, "convert -in "+gin+" -like "+gin+" -out c.safetensors")
	if must(t, "embed -in g.jsonl -out - -model c.safetensors") != must(t, "embed -in g.jsonl -out - -model "+gin) {
		t.Error("other embeddings")
	}
	write(t, "evil.pth", "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03.\x80\x02cposix\nsystem\nX\x04\x00\x00\x00echo\x85R.")
	for line, want := range map[string]string{
		"-in evil.pth -out d.safetensors":                                                     `evil.pth: not a state_dict of PyTorch: it wants "posix.system", which no state_dict needs`,
		"-in bare.safetensors -out d.safetensors":                                             "has bns.0.bias, but no table x_embedding1.weight",
		"-in " + filepath.Join(testdata, "bio.pth") + " -like " + gin + " -out d.safetensors": "missing: bns.0.bias",
		"-in " + gin + " -out " + gin:                                                         "it is the input ",
		"-in none.pth -out d.safetensors":                                                     "none.pth: no such file",
		"-in w.pth":                                                                           "ends in .safetensors",
		"-out d.safetensors":                                                                  "-in is needed",
	} {
		if _, _, err := invoke(t.Context(), "convert "+line); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("convert %s: %v, want %s", line, err, want)
		}
	}
}

// TestHelp: every command explains itself, and completion knows every flag.
func TestHelp(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		script := must(t, "completion "+shell)
		if _, err := exec.LookPath(shell); err != nil {
			t.Logf("its script for %s is not read: %v", shell, err)
			continue
		}
		c := exec.Command(shell, "-n")
		c.Stdin = strings.NewReader(script)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
	script := must(t, "completion")
	overview := must(t, "-h")
	for _, c := range commands {
		stdout, _, err := invoke(t.Context(), c.Name+" -h")
		if !errors.Is(err, flag.ErrHelp) || !strings.Contains(stdout, "  specmatch "+c.Name+" ") {
			t.Errorf("%s -h: %v\n%s", c.Name, err, stdout)
		}
		for _, m := range regexp.MustCompile(`(?m)^  (-[a-z0-9-]+)`).FindAllStringSubmatch(stdout, -1) {
			if !strings.Contains(script, m[1]) {
				t.Errorf("completion has no %s of %s", m[1], c.Name)
			}
		}
		all, _, err := invoke(t.Context(), c.Name+" -h all")
		if !errors.Is(err, flag.ErrHelp) || strings.Count(stdout, "\n  -") > 15 || strings.Count(stdout, "\n") > 60 {
			t.Errorf("%s -h has more than 15 flags or 60 lines, or %v:\n%s", c.Name, err, stdout)
		}
		flags := cli.NewFlagSet(c.Name, c.Synopsis, c.Examples...)
		c.Setup(flags)
		flags.VisitAll(func(fl *flag.Flag) {
			if n := len(regexp.MustCompile(`(?m)^  -`+fl.Name+`( |$)`).FindAllString(all, -1)); n != 1 {
				t.Errorf("%s -h all has -%s %d times", c.Name, fl.Name, n)
			}
		})
		if !strings.Contains(overview, "\n  "+c.Name+"\n") {
			t.Errorf("the overview has no %s", c.Name)
		}
	}
	if v := must(t, "version"); !strings.HasPrefix(v, "specmatch ") {
		t.Error(v)
	}
	if bash, err := exec.LookPath("bash"); err == nil {
		out, err := exec.Command(bash, "-c", script+`COMP_WORDS=(specmatch embed -mo); COMP_CWORD=2; _specmatch; echo ${COMPREPLY[@]}`).CombinedOutput()
		if string(out) != "-model\n" || err != nil {
			t.Errorf("completion: %s, %v", out, err)
		}
	}
}

// TestReadme runs the page: its files, its commands in order, and its Python.
func TestReadme(t *testing.T) {
	page := read(t, "README.md") + read(t, "guide.md")
	t.Chdir(t.TempDir())
	files := regexp.MustCompile("(?s)`([a-z]+\\.(?:csv|jsonl))`:\n\n```[a-z]+\n(.*?)```").FindAllStringSubmatch(page, -1)
	for _, f := range files {
		write(t, f[1], f[2])
	}
	write(t, "volumes.csv", scaleTable())
	ran := 0
	for _, m := range regexp.MustCompile(`(?m)^\$ specmatch (.*)$((?:\n[^$`+"`"+`\n].*)*)`).FindAllStringSubmatch(page, -1) {
		stdout := must(t, m[1])
		if printed := strings.TrimSpace(m[2]); printed != "" && strings.TrimSpace(stdout[:strings.Index(stdout+"\nlogS", "\nlogS")]) != printed {
			t.Errorf("%s prints\n%sand the page says\n%s", m[1], stdout, printed)
		}
		ran++
	}
	if len(files) != 3 || ran < 20 {
		t.Errorf("%d files and %d commands", len(files), ran)
	}
	if got := read(t, "predictions.csv.rejected.csv"); !strings.Contains(got, "26,wrong,C1CC") {
		t.Error(got)
	}
	python := cmp.Or(os.Getenv("PYTHON"), "python3")
	t.Run("from Python", func(t *testing.T) {
		_, scripts, _ := strings.Cut(page, "From NetworkX or PyTorch Geometric:\n")
		scripts, _, _ = strings.Cut(scripts, "### Graphs as a table")
		const before = `
import types, networkx, torch
graphs = [networkx.cycle_graph(5)]
data = [types.SimpleNamespace(num_nodes=2, edge_index=torch.tensor([[0, 1], [1, 0]]), x=torch.tensor([[1.0, 0.5], [2.0, 0.5]]), y=torch.tensor([1]))]
`
		if err := exec.Command(python, "-c", before).Run(); err != nil {
			t.Skipf("the page's Python is not run: %s has no networkx or torch; the variable PYTHON may name one that has", python)
		}
		var got []string
		for _, m := range regexp.MustCompile("(?s)```python\n(.*?)```").FindAllStringSubmatch(scripts, -1) {
			if out, err := exec.Command(python, "-c", before+m[1]).CombinedOutput(); err != nil {
				t.Fatalf("%s, %v", out, err)
			}
			o := records.Options{ID: "id"}
			if strings.Contains(m[1], `"y"`) {
				o.Fields = []string{"y"}
			}
			err := records.Read(t.Context(), "graphs.jsonl", o, func(r *records.Record) error {
				got = append(got, fmt.Sprint(r.ID, r.Err, r.Graph.Nodes(), r.Graph.Entries(), r.Graph.X.Width, r.Fields))
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		}
		if want := []string{"0<nil> 5 10 1 []", "0<nil> 2 2 2 [1]"}; !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
	t.Run("Python", func(t *testing.T) {
		_, script, _ := strings.Cut(page, "names and shapes:\n\n```python\n")
		script, _, _ = strings.Cut(script, "```")
		if err := exec.Command(python, "-c", "import numpy, pandas, safetensors.torch").Run(); err != nil {
			t.Skipf("the page's Python is not run: %s has no numpy, pandas, safetensors or torch; the variable PYTHON may name one that has", python)
		}
		out, err := exec.Command(python, "-c", script+"\nprint(vectors.shape, vectors.dtype, ids[2], len(weights))").CombinedOutput()
		if err != nil || !strings.HasPrefix(string(out), "(24, 32) float32 propane") {
			t.Errorf("%s, %v", out, err)
		}
	})
}

// TestNodeFeatures: a model of degrees says so, and reads them from other graphs, with degrees beyond those that
// it has seen; the flag is for graphs, and a new encoder.
func TestNodeFeatures(t *testing.T) {
	t.Chdir(t.TempDir())
	star := func(n int) string {
		var edges []string
		for i := 1; i <= n; i++ {
			edges = append(edges, fmt.Sprintf("[0,%d]", i))
		}
		return fmt.Sprintf(`{"nodes":%d,"edges":[%s],"y":%d}`+"\n", n+1, strings.Join(edges, ","), n%2)
	}
	var text strings.Builder
	for i := range 40 {
		text.WriteString(star(1 + i%5))
	}
	write(t, "g.jsonl", text.String())
	write(t, "larger.jsonl", star(5)+star(9))
	write(t, "m.csv", moleculeTable(20))
	must(t, "finetune -in g.jsonl -target y -node-features degrees -seeds 1 -epochs 2 -hidden 4 -layers 1 -out tuned")
	must(t, "train -in g.jsonl -node-features degrees -epochs 1 -hidden 4 -layers 1 -out trained")
	for _, m := range []string{filepath.Join("tuned", division{}.modelFile()), "trained/model.safetensors"} {
		if got := must(t, "inspect -model "+m); !strings.Contains(got, "degrees up to 5\n") {
			t.Error(got)
		}
		if got := must(t, "embed -in larger.jsonl -out - -model "+m); strings.Count(got, "\n") != 3 {
			t.Error(got)
		}
	}
	rows := strings.Split(must(t, "predict -in larger.jsonl -out - -model tuned/"+division{}.modelFile()), "\n")
	if len(rows) != 4 {
		t.Error(rows)
	}
	// A run of a version without the flag goes on without degrees.
	must(t, "finetune -in g.jsonl -target y -node-features auto -seeds 1 -epochs 1 -hidden 4 -layers 1 -out was")
	config := read(t, "was/config.json")
	write(t, "was/config.json", regexp.MustCompile(`\s*"node-features": "auto",`).ReplaceAllString(config, ""))
	if read(t, "was/config.json") == config {
		t.Fatal(config)
	}
	must(t, "finetune -in g.jsonl -seeds 2 -out was")
	if got := must(t, "inspect -model was/model-1.safetensors"); strings.Contains(got, "degrees") {
		t.Error(got)
	}
	for line, want := range map[string]string{
		"finetune -in m.csv -target length -node-features degrees -out no":                               "is for graphs",
		"train -in m.csv -node-features degrees -out no":                                                 "is for graphs",
		"finetune -in g.jsonl -target y -node-features degrees -model trained/model.safetensors -out no": "has features of its own",
		"train -in g.jsonl -node-features labels -out no":                                                "want auto or degrees",
	} {
		if _, _, err := invoke(t.Context(), line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", line, err)
		}
	}
}
