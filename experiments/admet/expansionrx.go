package main

import (
	"context"
	"crypto/sha256"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/tensor/files"
)

const (
	// expansionrx is the set of the blind challenge of OpenADMET and ExpansionRx (2025): nine endpoints of
	// 5,326 molecules, in the order in which they were made. The values of its test set were not published.
	expansionrx = "expansionrx"

	// relativeError is the metric of the challenge: the mean over the endpoints of the sum of absolute errors,
	// divided by the sum of absolute differences of the observed values from their mean.
	relativeError = "rae"
)

// trained is the share of the molecules that are not tested on.
const trained = 0.8

// endpoints returns the names of the endpoints of a joined set, nil for other sets. A file NAME_ENDPOINT.csv
// has the molecules of each, in the order of time.
func (s set) endpoints() []string {
	if s.name != expansionrx {
		return nil
	}
	return []string{
		"logd", "ksol", "hlm_clint", "mlm_clint", "caco2_papp", "caco2_efflux", "mppb", "mbpb", "mgmb",
	}
}

// measured are the values of an endpoint in the order of time.
type measured struct {
	smiles   []string
	value    map[string]float64 // by the SMILES
	position map[string]int
	next     int // position of the first molecule that is not placed
}

// loadJoined reads the files of the endpoints. The latest fifth of the molecules is the test part.
func (s set) loadJoined(ctx context.Context, dir string) (*loadedSet, error) {
	l := &loadedSet{set: s, tasks: len(s.endpoints())}
	var columns []*measured
	var sums []string
	for _, endpoint := range s.endpoints() {
		path, sum, err := locate(ctx, dir, s.name+"_"+endpoint)
		if err != nil {
			return nil, err
		}
		sums = append(sums, sum)
		c, err := l.readEndpoint(ctx, path, endpoint)
		if err != nil {
			return nil, err
		}
		columns = append(columns, c)
	}
	l.sum = fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(sums, "\n"))))
	l.smiles = inTime(columns)
	for _, smiles := range l.smiles {
		m, err := new(molecule.Parser).Parse(smiles)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.name, err)
		}
		l.molecules = append(l.molecules, m)
		l.scaffold = append(l.scaffold, "")
		for _, c := range columns {
			y, ok := c.value[smiles]
			if !ok {
				y = math.NaN()
			}
			l.y = append(l.y, y)
		}
	}
	first := int(trained * float64(len(l.molecules))) // of the test part
	for i := range l.molecules {
		if i < first {
			l.train = append(l.train, i)
		} else {
			l.test = append(l.test, i)
		}
	}
	return l, nil
}

// writeTable writes the joined set for specmatch finetune: the molecules, their part and the endpoints.
func (l *loadedSet) writeTable(path string) error {
	return files.Write(path, func(file io.Writer) error {
		w := csv.NewWriter(file)
		w.Write(append([]string{"smiles", "part"}, l.endpoints()...)) // w.Error returns the first error
		for i, smiles := range l.smiles {
			row := []string{smiles, "train"}
			if i >= len(l.train) {
				row[1] = "test"
			}
			for _, y := range l.y[i*l.tasks : (i+1)*l.tasks] {
				text := ""
				if !math.IsNaN(y) {
					text = strconv.FormatFloat(y, 'g', 6, 64)
				}
				row = append(row, text)
			}
			w.Write(row)
		}
		w.Flush()
		return w.Error()
	})
}

// readEndpoint reads the values of an endpoint: logD as it is, and of others log10(1+y), as the challenge scores
// them.
func (l *loadedSet) readEndpoint(ctx context.Context, path, endpoint string) (*measured, error) {
	c := &measured{value: map[string]float64{}, position: map[string]int{}}
	o := records.Options{
		Want:   records.Molecules,
		SMILES: "smiles",
		Atoms:  "rich",
		Fields: []string{"y"},
	}
	err := records.Read(ctx, path, o, func(r *records.Record) error {
		if r.Err != nil {
			l.dropped++
			return nil
		}
		y, err := strconv.ParseFloat(r.Fields[0], 64)
		if err != nil {
			return fmt.Errorf("%s:%d: y %q: %w", path, r.Line, r.Fields[0], err)
		}
		if endpoint != "logd" {
			y = math.Log10(1 + y)
		}
		if _, ok := c.value[r.SMILES]; ok {
			return fmt.Errorf("%s:%d: %s occurs twice", path, r.Line, r.SMILES)
		}
		c.position[r.SMILES] = len(c.smiles)
		c.smiles = append(c.smiles, r.SMILES)
		c.value[r.SMILES] = y
		return nil
	})
	return c, err
}

// inTime merges the orders of the columns. Of molecules whose order no column tells, that of the smaller share of
// its column comes first.
func inTime(columns []*measured) (order []string) {
	placed := map[string]bool{}
	for {
		first := ""
		least := math.Inf(1)
		for _, c := range columns {
			for c.next < len(c.smiles) && placed[c.smiles[c.next]] {
				c.next++
			}
		}
		for _, c := range columns {
			if c.next == len(c.smiles) {
				continue
			}
			share := float64(c.next) / float64(len(c.smiles))
			if !isNext(columns, c.smiles[c.next]) {
				share++ // only where columns contradict each other
			}
			if share < least {
				first = c.smiles[c.next]
				least = share
			}
		}
		if first == "" {
			return order
		}
		placed[first] = true
		order = append(order, first)
	}
}

// isNext reports whether a molecule is the next one of every column that has it.
func isNext(columns []*measured, smiles string) bool {
	for _, c := range columns {
		if position, ok := c.position[smiles]; ok && position > c.next {
			return false
		}
	}
	return true
}

// relativeErrors returns the relative absolute error of each task.
func relativeErrors(predicted, y []float64, tasks int) []float64 {
	errors := make([]float64, tasks)
	for task := range errors {
		var observed []float64
		sum := 0.0
		for i := task; i < len(y); i += tasks {
			if !math.IsNaN(y[i]) {
				observed = append(observed, y[i])
				sum += math.Abs(predicted[i] - y[i])
			}
		}
		mean := stat.Mean(observed, nil)
		deviations := 0.0
		for _, v := range observed {
			deviations += math.Abs(v - mean)
		}
		errors[task] = sum / deviations
	}
	return errors
}

// judge sets the metric of predictions of the test part, if there are any.
func (o *outcome) judge(l *loadedSet, predicted, y []float64) {
	if predicted == nil {
		return
	}
	o.Value = l.score(predicted, y)
	if l.endpoints() != nil {
		o.Endpoints = relativeErrors(predicted, y, l.tasks)
	}
}
