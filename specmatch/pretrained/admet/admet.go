// Package admet has predictors of properties that decide about a drug: how it is absorbed, where it goes, what breaks
// it down and whether it harms. The card beside it, README.md, says what they were fitted to and how good they are.
//
// Each endpoint is a model file of package model. All of them see the same features of a molecule, so that package
// apply computes these once for several endpoints.
package admet

import (
	"archive/zip"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/gnn/dataset/suggest"
)

// Endpoint describes a predictor.
type Endpoint struct {
	Name    string  // of the endpoint, and of the column of predictions
	Title   string  // what is predicted
	Unit    string  // of the prediction; "probability" for binary answers
	Set     string  // the data set
	Licence string  // of the set
	Records int     // in the set
	Metric  string  // of the score: ROC-AUC, in %, or MAE, in the unit
	Score   float64 // mean over the folds of a cross-validation by scaffold
	Std     float64 // standard deviation over the folds
	// Baseline is the score of the mean of the training records, or of the frequencies of the classes.
	Baseline float64
	Coverage float64 // of the intervals or sets of 90 %, in %, over the folds
	Width    float64 // of the intervals in the unit, or the mean number of answers in a set
}

//go:embed admet.zip
var archive []byte

// list is the name of the file with the endpoints in the archive.
const list = "endpoints.json"

// open returns the archive and its endpoints.
var open = sync.OnceValues(func() (*zip.Reader, []Endpoint) {
	var endpoints []Endpoint
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err == nil {
		var text []byte
		text, err = read(r, list)
		if err == nil {
			err = json.Unmarshal(text, &endpoints)
		}
	}
	if err != nil {
		panic(fmt.Sprintf("admet: %v", err)) // the archive is part of the program
	}
	return r, endpoints
})

// read returns a file of an archive.
func read(r *zip.Reader, name string) ([]byte, error) {
	file, err := r.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(file)
}

// Endpoints returns the predictors, in the order of their columns.
func Endpoints() []Endpoint {
	_, endpoints := open()
	return endpoints
}

// Names returns the names of the endpoints.
func Names() (names []string) {
	for _, e := range Endpoints() {
		names = append(names, e.Name)
	}
	return names
}

// Model returns the model file of an endpoint. The error for another name lists the endpoints.
func Model(name string) ([]byte, error) {
	archive, endpoints := open()
	for _, e := range endpoints {
		if e.Name == name {
			return read(archive, name+".safetensors")
		}
	}
	return nil, fmt.Errorf("there is no endpoint %q; the endpoints are %s%s",
		name, strings.Join(Names(), ", "), suggest.DidYouMean(name, Names()))
}
