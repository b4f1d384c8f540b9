// Command make fits the predictors of package admet anew, and packs them:
//
//	go build -o specmatch ./specmatch/cmd/specmatch
//	go run ./specmatch/pretrained/admet/make -specmatch ./specmatch -data DIR -work DIR
//
// The first folder has the sets, NAME.csv.gz with the columns smiles and y, and the second gets their runs: a
// cross-validation by scaffold, and a fit to all records. Finished runs are not repeated. It writes admet.zip,
// results.json and the table in README.md of the package. The fits take some 15 minutes of one core.
package main

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained/admet"
	"github.com/specmatch/specmatch/tensor"
	"github.com/specmatch/specmatch/tensor/files"
)

const (
	ccBy     = "CC BY 4.0"
	ccByNot  = "not specified; CC BY 4.0 by TDC"
	binary   = "probability" // the unit of binary endpoints
	fewTrees = 8             // for sets of thousands, whose trees are large
	trees    = 25            // for the others
	folds    = 5
	here     = "specmatch/pretrained/admet"
)

// recipe is an endpoint with what it is fitted by.
type recipe struct {
	admet.Endpoint
	trees int
}

// recipes lists the endpoints in the order of their columns.
var recipes = []recipe{
	{endpoint("caco2", "permeability of Caco-2 cells", "log10 cm/s", "caco2_wang", ccByNot), trees},
	{endpoint("hia", "absorption in the human intestine", binary, "hia_hou", ccByNot), trees},
	{endpoint("bioavailability", "oral bioavailability above 20 %", binary, "bioavailability_ma", ccByNot), trees},
	{endpoint("lipophilicity", "logD at pH 7.4", "log10", "lipophilicity_astrazeneca", ccByNot), fewTrees},
	{endpoint("solubility", "solubility in water", "log10 mol/L", "solubility_aqsoldb", ccBy), fewTrees},
	{endpoint("bbb", "passage of the blood-brain barrier", binary, "bbb_martins", ccByNot), trees},
	{endpoint("cyp2c9_inhibition", "inhibition of CYP2C9", binary, "cyp2c9_veith", ccBy), fewTrees},
	{endpoint("cyp2d6_inhibition", "inhibition of CYP2D6", binary, "cyp2d6_veith", ccBy), fewTrees},
	{endpoint("cyp2c9_substrate", "substrate of CYP2C9", binary, "cyp2c9_substrate_carbonmangels", ccBy), trees},
	{endpoint("cyp2d6_substrate", "substrate of CYP2D6", binary, "cyp2d6_substrate_carbonmangels", ccBy), trees},
	{endpoint("cyp3a4_substrate", "substrate of CYP3A4", binary, "cyp3a4_substrate_carbonmangels", ccBy), trees},
	{
		endpoint("clearance", "clearance by human liver microsomes", "mL/min/g", "clearance_microsome_az", ccByNot),
		trees,
	},
	{endpoint("herg", "block of the hERG channel", binary, "herg", ccByNot), trees},
	{endpoint("ames", "mutagenicity in the Ames test", binary, "ames", ccByNot), fewTrees},
}

func endpoint(name, title, unit, set, licence string) admet.Endpoint {
	return admet.Endpoint{
		Name:    name,
		Title:   title,
		Unit:    unit,
		Set:     set,
		Licence: licence,
	}
}

func main() {
	data := flag.String("data", "", "folder with the sets")
	work := flag.String("work", "", "folder for the runs")
	program := flag.String("specmatch", "specmatch", "the program that fits")
	only := flag.Bool("pack", false, "pack the endpoints whose runs are finished, without fitting")
	flag.Parse()
	if err := run(*data, *work, *program, *only); err != nil {
		fmt.Fprintln(os.Stderr, "make:", err)
		os.Exit(1)
	}
}

func run(data, work, program string, only bool) error {
	var done []admet.Endpoint
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(out, flate.BestCompression)
	})
	for _, r := range recipes {
		if !only {
			if err := r.fit(program, data, work); err != nil {
				return err
			}
		}
		text, err := r.collect(work)
		if only && errors.Is(err, os.ErrNotExist) {
			fmt.Println(r.Name, "is not finished")
			continue
		}
		if err == nil {
			err = add(w, r.Name+".safetensors", text)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
		done = append(done, r.Endpoint)
	}
	text, err := json.MarshalIndent(done, "", "  ")
	if err == nil {
		err = errors.Join(add(w, "endpoints.json", text), w.Close())
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(here, "admet.zip"), packed.Bytes(), 0o644)
	}
	if err == nil {
		err = files.WriteJSON(filepath.Join(here, "results.json"), done)
	}
	if err != nil {
		return err
	}
	fmt.Printf("%d endpoints, %d bytes\n", len(done), packed.Len())
	return writeTable(done)
}

// add adds a file to an archive.
func add(w *zip.Writer, name string, text []byte) error {
	file, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
	if err == nil {
		_, err = file.Write(text)
	}
	return err
}

// fit runs the cross-validation and the fit to all records.
func (r *recipe) fit(program, data, work string) error {
	flags := []string{
		"finetune",
		"-in", filepath.Join(data, r.Set+".csv.gz"),
		"-target", "y",
		"-network=false",
		"-forest", strconv.Itoa(r.trees),
	}
	for _, part := range [][]string{
		{"-split", "scaffold", "-folds", strconv.Itoa(folds), "-out", filepath.Join(work, r.Set, "cv")},
		{"-test", "none", "-seeds", "1", "-out", filepath.Join(work, r.Set, "all")},
	} {
		if _, err := os.Stat(filepath.Join(part[len(part)-1], "results.md")); err == nil {
			continue
		}
		command := exec.Command(program, append(flags, part...)...)
		command.Stdout = os.Stdout
		command.Stderr = os.Stderr
		if err := command.Run(); err != nil {
			return fmt.Errorf("%s: %w", r.Name, err)
		}
	}
	return nil
}

// collect reads the scores of the runs, and returns the model file, whose target has the name of the endpoint.
func (r *recipe) collect(work string) ([]byte, error) {
	if err := r.score(filepath.Join(work, r.Set, "cv")); err != nil {
		return nil, err
	}
	be := cpu.New(tensor.Float32)
	defer be.Close()
	m, err := model.Open(filepath.Join(work, r.Set, "all", "model-0.safetensors"), be)
	if err != nil {
		return nil, err
	}
	m.Card.Head.Tasks = []string{r.Name}
	m.Card.Domain.Table, err = rename(m.Card.Domain.Table, r.Name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(work, r.Set, "renamed.safetensors")
	if err := m.Save(path); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
}

// rename replaces the header of a packed table of training molecules.
func rename(table []byte, target string) ([]byte, error) {
	reader, err := gzip.NewReader(bytes.NewReader(table))
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	_, rows, _ := strings.Cut(string(text), "\n")
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = io.WriteString(w, "smiles,"+target+"\n"+rows)
		err = errors.Join(err, w.Close())
	}
	return packed.Bytes(), err
}

// coverageRow is the row of results.md with the coverage and the size of the intervals or sets.
var coverageRow = regexp.MustCompile(`\| y \| ([\d.]+)[^|]*\| ([\d.]+)`)

// score reads the scores of a cross-validation.
func (r *recipe) score(dir string) error {
	text, err := os.ReadFile(filepath.Join(dir, "results.json"))
	if err != nil {
		return err
	}
	var rows []struct {
		Method, Metric string
		Mean, Std      float64
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		return err
	}
	r.Metric = "ROC-AUC"
	metric := "roc_auc"
	if r.Unit != binary {
		r.Metric = "MAE"
		metric = "mae"
	}
	for _, row := range rows {
		switch {
		case row.Metric != metric:
		case row.Method == "baseline":
			r.Baseline = row.Mean
		case row.Method != "forest":
			r.Score = row.Mean
			r.Std = row.Std
		}
	}
	page, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil {
		return err
	}
	_, tail, _ := strings.Cut(string(page), "Coverage of the 90 %")
	found := coverageRow.FindStringSubmatch(tail)
	if found == nil {
		return fmt.Errorf("%s: no coverage", dir)
	}
	r.Coverage, _ = strconv.ParseFloat(found[1], 64) // digits and a point, by the pattern
	r.Width, _ = strconv.ParseFloat(found[2], 64)
	r.Records, err = countRecords(dir)
	return err
}

// countRecords returns the number of test records of all folds.
func countRecords(dir string) (count int, err error) {
	for fold := 1; fold <= folds; fold++ {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("test-0-%d.csv", fold)))
		if err != nil {
			return 0, err
		}
		count += strings.Count(string(text), "\n") - 1
	}
	return count, nil
}

// writeTable replaces the table of README.md.
func writeTable(endpoints []admet.Endpoint) error {
	const begin = "<!-- endpoints -->\n"
	const end = "<!-- end -->\n"
	path := filepath.Join(here, "README.md")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	head, rest, ok := strings.Cut(string(text), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s: no table between %q and %q", path, begin, end)
	}
	var table strings.Builder
	table.WriteString("\n| endpoint | what | unit | records | score | baseline | coverage of 90 %, size | licence |\n" +
		"| --- | --- | --- | ---: | ---: | ---: | ---: | --- |\n")
	for _, e := range endpoints {
		digits := 2
		if e.Metric != "MAE" {
			digits = 1
		}
		fmt.Fprintf(&table, "| `%s` | %s | %s | %d | %s %.*f ± %.*f | %.*f | %.1f, %.2f | %s |\n",
			e.Name, e.Title, e.Unit, e.Records, e.Metric,
			digits, e.Score, digits, e.Std, digits, e.Baseline, e.Coverage, e.Width, e.Licence)
	}
	table.WriteString("\n")
	return files.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, head+begin+table.String()+end+tail)
		return err
	})
}
