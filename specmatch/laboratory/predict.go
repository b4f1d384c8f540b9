package laboratory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/gnn"
	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/gnn/molecule"
	"github.com/specmatch/specmatch/gnn/molecule/depict"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/domain"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/specmatch/pretrained/admet"
	"github.com/specmatch/specmatch/tensor"
)

// The models that are part of the program.
const (
	shipped = "admet"   // the predictors
	vectors = "vectors" // the encoder
)

// Level is the probability of the intervals and sets on the page.
const Level = 0.9

// cache is how many bytes the cache of a model's atom environments has.
const cache = 1 << 18

// predictor is a set of models whose columns stand next to each other.
type predictor struct {
	rows    apply.Model
	columns []column
	width   int                         // of rows
	trained map[string][]*model.Trained // those of an ensemble, by the name of the column
	indices map[string]*domain.Index    // of the training molecules that have been looked at
	shared  *model.Shared               // by the models; nil for one
	kept    keeper
}

// column describes a predicted property to the page.
type column struct {
	Name   string `json:"name"`
	Title  string `json:"title"`
	Unit   string `json:"unit"`
	Kind   string `json:"kind"`   // model.Kind
	Score  string `json:"score"`  // how good it is
	First  int    `json:"first"`  // its place in Row.Values
	Domain bool   `json:"domain"` // whether training molecules can be shown
	// Sure and Distance are the places of the interval or set and of the distance; 0 without them.
	Sure     int `json:"sure"`
	Distance int `json:"distance"`
}

// keeper keeps what computes vectors, with its caches, from part to part of a file.
type keeper struct {
	vectors []records.Vectors // one for each goroutine that reads
}

// keep returns a function like open that first gives away what is there already.
func (k *keeper) keep(open func() records.Vectors) func() records.Vectors {
	if open == nil {
		return nil
	}
	taken := 0
	var turn sync.Mutex
	return func() records.Vectors {
		turn.Lock()
		defer turn.Unlock()
		if taken == len(k.vectors) {
			k.vectors = append(k.vectors, open())
		}
		taken++
		return k.vectors[taken-1]
	}
}

// question names a model.
type question struct {
	Model string `json:"model"`
}

// load opens a model: one of the program, or one from a file, which gets the name in the question.
func (s *Session) load(q question, data []byte) (any, error) {
	p, err := s.predictor(q.Model, data)
	if err != nil {
		return nil, err
	}
	answer := struct {
		Columns []column `json:"columns"`
		Names   []string `json:"names"` // of the values
	}{p.columns, p.rows.Columns}
	return answer, nil
}

// predictor returns a model that has been loaded, or loads it.
func (s *Session) predictor(name string, data []byte) (*predictor, error) {
	if p := s.models[name]; p != nil && data == nil {
		return p, nil
	}
	var p *predictor
	var err error
	switch {
	case data != nil:
		p, err = openFile(data)
	case name == shipped:
		p, err = s.openShipped()
	case name == vectors:
		p, err = openVectors()
	default:
		err = fmt.Errorf("there is no model %q here: drop its file again", name)
	}
	if err != nil {
		return nil, err
	}
	if s.models == nil {
		s.models = map[string]*predictor{}
	}
	s.models[name] = p
	return p, nil
}

// openVectors opens the encoder, as specmatch embed has it.
func openVectors() (*predictor, error) {
	m, err := pretrained.Open(newEngine())
	if err == nil {
		m, err = m.WithReadout(gnn.ReadoutAll)
	}
	if err != nil {
		return nil, err
	}
	rows, err := apply.Embedder(m.Remembering(8 * cache))
	return &predictor{rows: rows}, err
}

func newEngine() backend.Backend { return cpu.New(tensor.Float32) }

// openShipped opens the predictors of the program.
func (s *Session) openShipped() (*predictor, error) {
	p := &predictor{shared: new(model.Shared)}
	be := newEngine()
	var parts []apply.Model
	var cards []model.Card
	endpoints := admet.Endpoints()
	for k, e := range endpoints {
		text, err := admet.Model(e.Name)
		if err != nil {
			return nil, err
		}
		m, err := model.Read(bytes.NewReader(text), be)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", e.Name, err)
		}
		rows, err := p.add(m)
		if err != nil {
			return nil, err
		}
		m.Trim()
		c := &p.columns[len(p.columns)-1]
		c.Title, c.Unit = e.Title, e.Unit
		c.Score = fmt.Sprintf("%s %.3g ± %.2g by scaffold", e.Metric, e.Score, e.Std)
		parts = append(parts, rows)
		cards = append(cards, m.Card)
		s.report(k+1, len(endpoints))
	}
	var err error
	p.rows, err = apply.Joined(parts, cards)
	return p, err
}

// openFile opens a model file, or an ensemble of specmatch convert.
func openFile(data []byte) (*predictor, error) {
	members, err := model.UnpackEnsemble(data)
	switch {
	case errors.Is(err, model.ErrNoEnsemble) && bytes.HasPrefix(data, []byte("PK\x03\x04")):
		return nil, errors.New("is a zip archive that specmatch convert -in RUN -out NAME.zip has not made: " +
			"unpack it, and drop one of its models, such as model.safetensors")
	case errors.Is(err, model.ErrNoEnsemble):
		members = []model.Member{{File: data}}
	case err != nil:
		return nil, err
	}
	be := newEngine()
	var models []*model.Trained
	for _, member := range members {
		m, err := model.Read(bytes.NewReader(member.File), be)
		if err != nil {
			return nil, err
		}
		if m.Card.Head == nil {
			return nil, errors.New("is an encoder without a head and cannot predict: want a file of specmatch finetune")
		}
		models = append(models, m)
	}
	p := new(predictor)
	p.rows, err = p.add(models...)
	if err == nil && p.rows.Reads.Content != records.Molecules {
		err = errors.New("predicts for graphs; the laboratory has molecules")
	}
	return p, err
}

// add adds the columns of a model, or of the mean of several that are alike, and returns its rows.
func (p *predictor) add(models ...*model.Trained) (apply.Model, error) {
	head := models[0].Card.Head
	var sharing []*model.Trained
	var calibrations []*model.Calibration
	hasDomain := true
	for i, m := range models {
		models[i] = m.Remembering(cache)
		sharing = append(sharing, models[i].Sharing(p.shared))
		hasDomain = hasDomain && m.Card.Domain != nil
		if m.Card.Calibration != nil {
			calibrations = append(calibrations, m.Card.Calibration)
		}
	}
	level := Level
	isSure := len(calibrations) == len(models)
	if isSure {
		_, _, err := head.Sets(level, nil, calibrations...)
		isSure = err == nil
	}
	if !isSure {
		level = 0
	}
	rows, err := apply.Sure(level, isSure, sharing...)
	if err != nil {
		return rows, err
	}
	if p.trained == nil {
		p.trained = map[string][]*model.Trained{}
		p.indices = map[string]*domain.Index{}
	}
	names := head.Columns()
	sure := len(names) // where intervals or sets begin: after the predictions and their standard deviations
	if len(models) > 1 {
		sure *= 2
	}
	for k, name := range names {
		c := column{
			Name:   name,
			Title:  name,
			Kind:   string(head.Kind),
			First:  p.width + k,
			Domain: hasDomain,
		}
		if isSure {
			c.Distance = p.width + len(rows.Columns) - 1
			c.Sure = p.width + sure + 2*k
			if head.Kind == model.Classes {
				c.Sure = p.width + sure + k
			}
		}
		p.columns = append(p.columns, c)
		p.trained[name] = models
	}
	for k, column := range rows.Columns {
		if column == "distance" {
			rows.Columns[k] = names[0] + "_distance"
		}
	}
	p.width += len(rows.Columns)
	return rows, nil
}

// task is a question for predictions for a part of a file.
type task struct {
	source
	part
	Model string `json:"model"`
	Draw  bool   `json:"draw"`
}

// Row is a record of a file with its predictions.
type Row struct {
	Number int        `json:"number"` // in the file, from 1
	Line   int        `json:"line"`   // in the file
	ID     string     `json:"id"`
	SMILES string     `json:"smiles"`
	Fields []string   `json:"fields,omitempty"`
	Values []*float32 `json:"values,omitempty"` // nil for one that is not finite
	SVG    string     `json:"svg,omitempty"`
	Error  string     `json:"error,omitempty"` // why it cannot be used
}

// The drawings of the table.
const (
	drawingWidth  = 200
	drawingHeight = 130
	largestDrawn  = 200 // atoms
)

// predict predicts for a part of a file.
func (s *Session) predict(q task, _ []byte) (any, error) {
	p, err := s.predictor(q.Model, nil)
	if err != nil {
		return nil, err
	}
	rows := []Row{}
	job := apply.Job{
		Path:    "part",
		Records: q.options(q.Text),
		Model:   p.rows,
	}
	job.Records.First = q.First
	job.Model.Reads.Vector = p.kept.keep(p.rows.Reads.Vector)
	width := len(p.rows.Columns)
	err = job.Stream(context.Background(), func(b apply.Batch) error {
		first := len(rows)
		for _, r := range b.Records {
			row := Row{
				Number: r.Number,
				Line:   q.Line + r.Line,
				ID:     r.ID,
				SMILES: r.SMILES,
				Fields: slices.Clone(r.Fields),
			}
			if r.Err != nil {
				row.Error = r.Err.Reason
				row.SMILES = cmp.Or(row.SMILES, r.Err.Value)
				row.Line = q.Line + max(r.Err.Line, r.Line)
			}
			if r.Molecule != nil {
				if row.SMILES == "" {
					row.SMILES = r.Molecule.SMILES()
				}
				if q.Draw {
					row.SVG = draw(r.Molecule, row.SMILES, nil)
				}
			}
			rows = append(rows, row)
		}
		usable := 0
		for i, r := range b.Records {
			if r.Err != nil {
				continue
			}
			rows[first+i].Values = finite(b.Values[usable*width : (usable+1)*width])
			usable++
		}
		return nil
	})
	return map[string]any{"rows": rows}, err
}

// finite returns values as a file has them.
func finite(values []float64) []*float32 {
	row := make([]*float32, len(values))
	for i, v := range values {
		if !math.IsNaN(v) && !math.IsInf(v, 0) {
			short := float32(v)
			row[i] = &short
		}
	}
	return row
}

// draw returns a drawing of a molecule, "" of a large one.
func draw(m *molecule.Molecule, title string, weights []float64) string {
	if len(m.Atoms) > largestDrawn {
		return ""
	}
	return depict.Layout(m).SVG(depict.Options{
		Title:   title,
		Width:   drawingWidth,
		Height:  drawingHeight,
		Weights: weights,
	})
}

// look is a question about a molecule and a predicted column; q.Column "" only draws.
type look struct {
	Model  string `json:"model"`
	Column string `json:"column"`
	SMILES string `json:"smiles"`
}

// explain returns a drawing of a molecule with what each atom contributes to a prediction.
func (s *Session) explain(q look, _ []byte) (any, error) {
	var answer struct {
		SVG        string    `json:"svg"`
		Prediction float64   `json:"prediction"`
		Mean       *float64  `json:"mean,omitempty"` // of the training set
		Atoms      []float64 `json:"atoms"`          // as [apply.Explanation] has them
	}
	if q.Column == "" {
		m, err := new(molecule.Parser).Parse(q.SMILES)
		if err == nil {
			answer.SVG = draw(m, q.SMILES, nil)
		}
		return answer, err
	}
	models, err := s.trained(q)
	if err != nil {
		return nil, err
	}
	explainer, err := apply.NewExplainer(models...)
	if err != nil {
		return nil, err
	}
	rows, err := apply.Predictor(models...)
	if err != nil {
		return nil, err
	}
	head := models[0].Card.Head
	output := slices.Index(head.Columns(), q.Column)
	single := source{Format: records.SMI}
	job := apply.Job{Path: "molecule", Records: single.options(q.SMILES), Model: rows}
	found := false
	err = job.EachExplanation(context.Background(), func(r *records.Record, x *apply.Explanation) error {
		found = true
		answer.Atoms = x.Nodes[q.Column]
		answer.Prediction = head.Predicted(output, x.Prediction[q.Column])
		if place, ok := x.Mean[q.Column]; ok {
			mean := head.Predicted(output, place)
			answer.Mean = &mean
		}
		answer.SVG = draw(r.Molecule, q.SMILES, x.Drawn(r, q.Column))
		return nil
	}, explainer)
	if err == nil && !found {
		err = errors.New("this molecule cannot be explained")
	}
	return answer, err
}

// trained returns the model of a column, or the models of an ensemble.
func (s *Session) trained(q look) ([]*model.Trained, error) {
	p, err := s.predictor(q.Model, nil)
	if err != nil {
		return nil, err
	}
	models := p.trained[q.Column]
	if models == nil {
		return nil, fmt.Errorf("there is no column %q", q.Column)
	}
	return models, nil
}

// nearest returns the training molecules that are nearest to a molecule, and whether it is outside of the domain.
func (s *Session) nearest(q look, _ []byte) (any, error) {
	models, err := s.trained(q)
	if err != nil {
		return nil, err
	}
	p := s.models[q.Model]
	index := p.indices[q.Column]
	if index == nil {
		index, err = apply.OpenDomain(models...)
		if err != nil {
			return nil, err
		}
		p.indices[q.Column] = index
	}
	parser := molecule.Parser{Standard: models[0].Card.Standard}
	mol, err := parser.Parse(q.SMILES)
	if err != nil {
		return nil, err
	}
	type neighbour struct {
		domain.Neighbour
		SVG string
	}
	finding := index.Look(mol, 3)
	answer := struct {
		Reasons []string
		Targets []string
		Nearest []neighbour
	}{Reasons: finding.Reasons, Targets: index.Targets}
	for _, n := range finding.Nearest {
		shown := neighbour{Neighbour: n}
		if mol, err := parser.Parse(n.SMILES); err == nil {
			shown.SVG = draw(mol, n.SMILES, nil)
		}
		answer.Nearest = append(answer.Nearest, shown)
	}
	return answer, nil
}
