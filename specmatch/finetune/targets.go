package finetune

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/records"
	"github.com/specmatch/specmatch/specmatch/check"
	"github.com/specmatch/specmatch/specmatch/model"
)

// maxTarget bounds targets, which models and files hold as float32.
const maxTarget = 1e37

// parseNumber reads a target that is a number; NaN is a missing one.
func parseNumber(text string) (y float64, ok bool) {
	if check.IsNumberGap(text) {
		return math.NaN(), true
	}
	y, err := strconv.ParseFloat(text, 64)
	return y, err == nil && !math.IsInf(y, 0)
}

// Target reads a target of a head from a text; it is NaN if it is missing or a bound.
func Target(h model.Head, text string) (float64, error) {
	text = strings.TrimSpace(text)
	y, ok := parseNumber(text)
	switch {
	case h.Kind != model.Regression && check.IsGap(text):
		return math.NaN(), nil
	case h.Kind == model.Classes || len(h.ClassValues) > 0:
		y = float64(slices.Index(h.ClassValues, text))
		ok = y >= 0
	case !ok && h.Kind == model.Regression && check.IsAlmostBound(text):
		return math.NaN(), nil
	case h.Kind == model.Binary:
		ok = ok && (y == 0 || y == 1 || math.IsNaN(y))
	}
	if !ok {
		return y, fmt.Errorf("%q is not a target of the model", text)
	}
	return y, nil
}

// guessKind returns the kind of some of the targets by their values. A text among numbers is a mistake,
// which readNumbers reports.
func (x *Examples) guessKind(targets []string) model.Kind {
	kind := model.Binary
	numbers := 0
	texts := 0
	gaps := 0
	x.eachTarget(func(_ *records.Record, target, text string) {
		y, ok := parseNumber(text)
		switch {
		case !slices.Contains(targets, target):
		case !ok && check.IsAlmostBound(text):
			numbers++
			kind = model.Regression
		case !ok && check.HasDecimalComma(text):
			numbers++
		case !ok:
			texts++
		case !math.IsNaN(y):
			numbers++
			if y != 0 && y != 1 {
				kind = model.Regression
			}
		case !check.IsGap(text):
			gaps++
		}
	})
	if texts > numbers || numbers == 0 && gaps > 0 { // "-" next to "+" is a class
		return model.Classes
	}
	return kind
}

// readNumbers fills Y with the targets of binary tasks or regression. The error names the first
// value that cannot be one, and counts the others.
func (x *Examples) readNumbers() error {
	x.Head = model.Head{Kind: x.Kind, Outputs: len(x.Targets), Tasks: x.Targets}
	if x.Task.Scale != (model.Scale{}) {
		if x.Kind != model.Regression {
			return ErrScale
		}
		x.Head.Scales = slices.Repeat([]model.Scale{x.Task.Scale}, len(x.Targets))
	}
	var first error
	invalid := 0
	x.eachTarget(func(r *records.Record, target, text string) {
		y, side, reason := x.number(text)
		if reason != "" {
			invalid++
			if first == nil {
				first = fmt.Errorf("%s:%d: column %s: %q %s",
					x.file(len(x.Y)/len(x.Targets)), r.Line, target, text, reason)
			}
		}
		x.Y = append(x.Y, y)
		x.Bounds = append(x.Bounds, side)
	})
	if !slices.ContainsFunc(x.Bounds, func(b int8) bool { return b != 0 }) {
		x.Bounds = nil
	}
	if invalid > 1 {
		return fmt.Errorf("%w (and %d other targets like it)", first, invalid-1)
	}
	return first
}

// number reads a target of a binary task or of regression, with the side of its bound, or returns the
// reason why it cannot be one.
func (x *Examples) number(text string) (y float64, side int8, reason string) {
	y, ok := parseNumber(text)
	boundSide, end, isBound := check.Bound(text)
	if isBound && x.Task.Bounds && x.Kind == model.Regression {
		y = end
		side = boundSide
		ok = true
	}
	switch {
	case !ok && isBound:
		reason = "is a bound and not a number; write the number alone, leave the target empty, make " +
			"classes of it, or ask for bounds (-bounds)"
	case !ok && check.IsAlmostBound(text):
		reason = "has a sign or a unit; write the number alone, leave the target empty, or make classes of it"
	case !ok && check.HasDecimalComma(text):
		reason = "has a decimal comma; write a point"
	case !ok:
		reason = "is not a number; leave a missing target empty"
	case math.Abs(y) > maxTarget:
		reason = fmt.Sprintf("is beyond %g; take another unit or the logarithm", float64(maxTarget))
	case x.Kind == model.Regression && !x.Task.Scale.Holds(y):
		reason = fmt.Sprintf("is not %v, as -target-scale asks", x.Task.Scale)
	case x.Kind == model.Binary && y != 0 && y != 1 && !math.IsNaN(y):
		reason = "is no binary target; want 0, 1 or nothing (kind regression takes numbers, kind " +
			"classes texts)"
	}
	return y, side, reason
}

// readClasses fills Y with the numbers of classes.
func (x *Examples) readClasses() error {
	if x.Task.Scale != (model.Scale{}) {
		return ErrScale
	}
	if len(x.Targets) > 1 {
		return fmt.Errorf("finetune: %s: %w", strings.Join(x.Targets, ","), ErrSeveral)
	}
	var texts []string
	x.eachTarget(func(_ *records.Record, _, text string) {
		if check.IsGap(text) {
			text = ""
		}
		texts = append(texts, text)
	})
	classes := records.Classes(texts)
	if len(classes) == 1 {
		return fmt.Errorf("%s: column %s has %q in all records with a target, so there is nothing to learn; want "+
			"at least two classes", x.path, x.Targets[0], classes[0])
	}
	if len(classes) < 2 || len(classes) > len(texts)/2 {
		return fmt.Errorf("%s: column %s has %d different values in %d records, such as %q, which "+
			"cannot be classes; is the column a name or an id?",
			x.path, x.Targets[0], len(classes), len(texts), classes[:min(3, len(classes))])
	}
	x.Head = model.Head{Kind: model.Classes, Outputs: len(classes), ClassValues: classes}
	for _, text := range texts {
		y := math.NaN()
		if text != "" {
			y = float64(slices.Index(classes, text))
		}
		x.Y = append(x.Y, y)
	}
	return nil
}

// readPositive fills Y with 1 for the text Positive and with 0 for the one other text of the targets.
func (x *Examples) readPositive() error {
	negative := ""
	var first error
	x.eachTarget(func(r *records.Record, target, text string) {
		y := 0.0
		switch {
		case check.IsGap(text):
			y = math.NaN()
		case text == x.Positive:
			y = 1
		case negative == "":
			negative = text
		case text != negative && first == nil:
			first = fmt.Errorf("%s:%d: column %s: %q is neither the positive answer %q nor %q; "+
				"want two texts, or nothing",
				x.file(len(x.Y)/len(x.Targets)), r.Line, target, text, x.Positive, negative)
		}
		x.Y = append(x.Y, y)
	})
	switch {
	case first != nil:
		return first
	case !slices.Contains(x.Y, 1):
		return fmt.Errorf("%s: no target is %q, the positive answer; the first is %q",
			x.path, x.Positive, negative)
	}
	if negative == "" {
		return fmt.Errorf("%s: every target is %q or missing; an empty text or NA or none is missing",
			x.path, x.Positive)
	}
	x.Head = model.Head{
		Kind:        model.Binary,
		Outputs:     len(x.Targets),
		Tasks:       x.Targets,
		ClassValues: []string{negative, x.Positive},
	}
	return nil
}

// Summary describes the targets in a line: their kind, how many are missing, and what else they might be.
func (x *Examples) Summary() string {
	missing := 0
	values := map[float64]bool{}
	for _, y := range x.Y {
		if math.IsNaN(y) {
			missing++
		} else if len(values) <= 3 {
			values[y] = true
		}
	}
	text := fmt.Sprintf("targets %s: %s", strings.Join(x.Targets, ", "), x.Kind)
	bounds := 0
	for _, b := range x.Bounds {
		bounds += int(b * b)
	}
	if bounds > 0 {
		text += fmt.Sprintf(", %d bounds", bounds)
	}
	if x.merged > 0 {
		text += fmt.Sprintf(", %d replicates merged or dropped", x.merged)
	}
	if missing > 0 {
		text += fmt.Sprintf(", %d of %d missing", missing, len(x.Y))
	}
	whole := true
	for y := range values {
		whole = whole && y == math.Trunc(y)
	}
	switch n := len(values); {
	case x.Kind == model.Regression && n == 1:
		text += "; all have the same value, so there is nothing to learn"
	case x.Kind == model.Regression && n == 2:
		text += "; they have two values only: write 0 and 1 for binary targets, or ask for kind classes"
	case x.Kind == model.Regression && n == 3 && whole:
		text += "; they have three values only: ask for kind classes if they are such"
	}
	for _, proposal := range x.proposeScales() {
		text += "; " + proposal
	}
	if names := x.binaryAmongNumbers(); names != nil {
		text += fmt.Sprintf("; %s has 0 and 1 only and is fitted as a number: predict it "+
			"in a run of its own",
			strings.Join(names, ", "))
	}
	return text
}

// proposeScales names the scales that suit the targets of a regression better than their unit: the
// logarithm for positive numbers over decades with a long tail, and a range for numbers that reach
// the end of one.
func (x *Examples) proposeScales() (proposals []string) {
	if x.Kind != model.Regression || x.Task.Scale != (model.Scale{}) {
		return nil
	}
	for task, name := range x.Targets {
		var y []float64
		for i := task; i < len(x.Y); i += len(x.Targets) {
			if !math.IsNaN(x.Y[i]) {
				y = append(y, x.Y[i])
			}
		}
		if len(y) < 20 {
			continue
		}
		low := slices.Min(y)
		high := slices.Max(y)
		switch {
		case x.decided[task]: // and said
		case check.SpansDecades(y):
			proposals = append(proposals, fmt.Sprintf("%s spans %.1f decades, %.4g to %.4g: "+
				"-log fits its logarithm", name, math.Log10(high/low), low, high))
		case low >= 0 && (high > 0.9 && high <= 1 || high > 90 && high <= 100):
			end := 1
			if high > 1 {
				end = 100
			}
			proposals = append(proposals, fmt.Sprintf("%s lies between %.4g and %.4g: -range 0,%d keeps its "+
				"predictions there, if that is what it can be", name, low, high, end))
		}
	}
	return proposals
}

// binaryAmongNumbers returns the targets that have the values 0 and 1 only, next to others that have more.
func (x *Examples) binaryAmongNumbers() (names []string) {
	if x.Kind != model.Regression {
		return nil
	}
	for task, name := range x.Targets {
		values := map[float64]bool{}
		for i := task; i < len(x.Y); i += len(x.Targets) {
			if !math.IsNaN(x.Y[i]) {
				values[x.Y[i]] = true
			}
			if len(values) > 2 {
				break
			}
		}
		if len(values) == 2 && values[0] && values[1] {
			names = append(names, name)
		}
	}
	if len(names) == len(x.Targets) { // asked for by -kind
		return nil
	}
	return names
}
