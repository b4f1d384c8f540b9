package main

import (
	"context"
	"errors"
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
)

type score struct {
	in        string
	head      model.Head
	targets   []string
	predicted []float64 // [n×Outputs]
	y         []float64 // [n×len(targets)]
	err       error     // the first target that is none
}

// score makes the output compare what it writes with targets: those that are named, or those that the
// model has learned if the file has them; nil if there are none.
func (o *output) score(ctx context.Context, h model.Head, targets []string) (*score, error) {
	if want := max(len(h.Tasks), 1); targets != nil && len(targets) != want {
		return nil, cli.Usagef("-target names %d columns, and the model predicts %d", len(targets), want)
	}
	if targets == nil && (h.Kind == model.Classes || o.in.In == "-") || o.Shard.N > 0 {
		return nil, nil
	}
	if targets == nil {
		targets = h.Tasks
		if !o.has(ctx, targets) {
			return nil, ctx.Err()
		}
	}
	s := &score{in: o.in.In, head: h, targets: targets}
	o.known = targets
	o.seen = s.add
	return s, nil
}

// has reports whether the first record of the file that can be used has one of the fields. What is wrong
// with the file is said by whoever reads it next.
func (o *output) has(ctx context.Context, fields []string) (found bool) {
	options, err := o.in.options()
	if err != nil {
		return false
	}
	if t, ok := options.Input.(io.Closer); ok {
		defer t.Close()
	}
	options.Fields = fields
	options.Reading = nil
	records.Read(ctx, o.in.In, options, func(r *records.Record) error {
		if r.Err != nil {
			return nil
		}
		found = slices.ContainsFunc(r.Fields, func(text string) bool {
			return strings.TrimSpace(text) != ""
		})
		return errors.New("seen")
	})
	return found
}

func (s *score) add(b apply.Batch) {
	for r, row := range b.Rows() {
		s.predicted = append(s.predicted, row[:s.head.Outputs]...)
		for k, text := range r.Fields[len(r.Fields)-len(s.targets):] {
			y, err := finetune.Target(s.head, text)
			if err != nil {
				y = math.NaN()
				if s.err == nil {
					s.err = fmt.Errorf("%s:%d: column %s: %w; metrics are without it",
						s.in, r.Line, s.targets[k], err)
				}
			}
			s.y = append(s.y, y)
		}
	}
}

// write writes a line for each target. The records of an earlier start are not among them.
func (s *score) write(w io.Writer, earlier int) error {
	if earlier > 0 {
		fmt.Fprintf(w, "metrics are without the %d records of an earlier start\n", earlier)
	}
	finetune.Settle(s.head, s.predicted)
	for t, m := range finetune.Score(s.head, s.predicted, s.y) {
		known := 0
		for i := t; i < len(s.y); i += len(s.targets) {
			if !math.IsNaN(s.y[i]) {
				known++
			}
		}
		var parts []string
		for _, metric := range finetune.Metrics(s.head.Kind) {
			text := "n/a"
			if v := m.Get(metric.Name); !math.IsNaN(v) && metric.Percent {
				text = fmt.Sprintf("%.2f %%", v)
			} else if !math.IsNaN(v) {
				text = fmt.Sprintf("%.4g", v)
			}
			parts = append(parts, metric.Title+" "+text)
		}
		fmt.Fprintf(w, "%s: %d records whose target is known: %s\n",
			s.targets[t], known, strings.Join(parts, ", "))
	}
	return s.err
}
