package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/tensor/files"
)

// scorer compares predictions with observed targets.
type scorer struct {
	file      string
	head      model.Head
	targets   []string
	predicted []float64 // [n×Outputs]
	observed  []float64 // [n×len(targets)]; NaN where a target is missing
	err       error     // for the first invalid target
}

// newScorer returns a scorer for the columns of -target, or for the model's own targets if the file has
// them, and connects it to the output. It returns nil if there are no targets.
func (x *prediction) newScorer(ctx context.Context, h model.Head) (*scorer, error) {
	targets := x.Targets
	if n := max(len(h.Tasks), 1); targets != nil && len(targets) != n {
		return nil, cli.Usagef("-target names %d columns, but the model predicts %d", len(targets), n)
	}
	if x.Shard.N > 0 || x.Join {
		return nil, nil
	}
	if targets == nil {
		if h.Kind == model.Classes || x.isStream() {
			return nil, nil
		}
		targets = h.Tasks
		if !x.input.hasFields(ctx, targets) {
			return nil, ctx.Err()
		}
	}
	s := &scorer{file: x.In, head: h, targets: targets}
	x.scored = targets
	x.named = x.Targets
	x.observe = s.add
	return s, nil
}

// hasFields reports whether one of the first records of the file has a value in one of the fields. It
// ignores errors of the file, which the next reader reports.
func (file *input) hasFields(ctx context.Context, fields []string) (found bool) {
	const limit = 1000
	count := 0
	file.peek(ctx, records.Options{Fields: fields}, func(r *records.Record) bool {
		count++
		found = r.Err == nil && slices.ContainsFunc(r.Fields, func(text string) bool {
			return strings.TrimSpace(text) != ""
		})
		return found || count == limit
	})
	return found
}

// add stores the predictions and targets of a batch.
func (s *scorer) add(b apply.Batch) {
	for r, row := range b.Rows() {
		s.predicted = append(s.predicted, row[:s.head.Outputs]...)
		first := len(r.Fields) - len(s.targets) // after the columns of -keep
		for k, text := range r.Fields[first:] {
			y, err := finetune.Target(s.head, text)
			if err != nil {
				y = math.NaN()
				if s.err == nil {
					s.err = fmt.Errorf("%s:%d: column %s: %w; the metrics skip it",
						s.file, r.Line, s.targets[k], err)
				}
			}
			s.observed = append(s.observed, y)
		}
	}
}

// write writes a line of metrics for each target. They do not cover records of an earlier start.
func (s *scorer) write(w io.Writer, resumed int) error {
	if resumed > 0 {
		fmt.Fprintf(w, "metrics skip the %d records of an earlier start\n", resumed)
	}
	finetune.Settle(s.head, s.predicted)
	for task, values := range finetune.Score(s.head, s.predicted, s.observed) {
		count := 0
		for i := task; i < len(s.observed); i += len(s.targets) {
			if !math.IsNaN(s.observed[i]) {
				count++
			}
		}
		var parts []string
		for _, metric := range finetune.Metrics(s.head) {
			text := "n/a"
			if v := values.Get(metric.Name); !math.IsNaN(v) && metric.Percent {
				text = fmt.Sprintf("%.2f %%", v)
			} else if !math.IsNaN(v) {
				text = fmt.Sprintf("%.4g", v)
			}
			parts = append(parts, metric.Title+" "+text)
		}
		fmt.Fprintf(w, "%s: %d records with a target: %s\n",
			files.Printable(s.targets[task]), count, strings.Join(parts, ", "))
	}
	return s.err
}
