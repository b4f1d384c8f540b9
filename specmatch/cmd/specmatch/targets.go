package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset/suggest"
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// alike is the word of -target-weights that divides weights by numbers of labels.
const alike = "alike"

var lossOf = setting.OneOf(string(finetune.Squared), string(finetune.Absolute))

// parseLoss checks an element of -loss: LOSS for all targets, or NAME=LOSS for one.
func parseLoss(s string) (string, error) {
	_, value := cutName(s)
	_, err := lossOf(value)
	return s, err
}

// parseWeight checks an element of -target-weights: alike, or NAME=WEIGHT.
func parseWeight(s string) (string, error) {
	name, value := cutName(s)
	if name == "" {
		if value == alike {
			return s, nil
		}
		return "", fmt.Errorf("want %s or NAME=WEIGHT", alike)
	}
	_, err := setting.Positive(value)
	return s, err
}

// cutName splits NAME=VALUE; a name may have an equals sign. VALUE alone has no name.
func cutName(s string) (name, value string) {
	i := strings.LastIndexByte(s, '=')
	return strings.TrimSpace(s[:max(i, 0)]), strings.TrimSpace(s[i+1:])
}

// eachTarget returns the value of each target by the elements of a flag: its own, or else that of the element
// without a name, or else rest.
func eachTarget(flag string, elements, targets []string, rest string) ([]string, error) {
	values := make([]string, len(targets))
	hasRest := false
	for _, element := range elements {
		name, value := cutName(element)
		if name == "" {
			if hasRest {
				return nil, cli.Usagef("-%s %s: want one value without a name", flag, strings.Join(elements, ","))
			}
			hasRest = true
			rest = value
			continue
		}
		task := slices.Index(targets, name)
		if task < 0 {
			return nil, cli.Usagef("-%s %s: no target %q%s (targets: %s)",
				flag, element, name, suggest.DidYouMean(name, targets), strings.Join(targets, ", "))
		}
		if values[task] != "" {
			return nil, cli.Usagef("-%s %s: target %s has two values", flag, strings.Join(elements, ","), name)
		}
		values[task] = value
	}
	for task, value := range values {
		if value == "" {
			values[task] = rest
		}
	}
	return values, nil
}

// setTargets sets the losses and weights of the targets, which must suit them.
func (x *tuning) setTargets() error {
	targets := x.examples.Targets
	kind := x.examples.Kind
	x.options.Alike = slices.Contains(x.TargetWeights, alike)
	losses, err := eachTarget("loss", x.Losses, targets, string(finetune.Squared))
	if err != nil {
		return err
	}
	isNamed := func(element string) bool { return strings.Contains(element, "=") }
	switch {
	case kind == model.Regression:
		x.options.Losses = nil
		for _, loss := range losses {
			x.options.Losses = append(x.options.Losses, finetune.Loss(loss))
		}
	case slices.ContainsFunc(x.Losses, isNamed):
		return cli.Usagef("-loss %s is for numbers, and the targets are of kind %s",
			strings.Join(x.Losses, ","), kind)
	}
	if x.TargetWeights == nil {
		return nil
	}
	if len(targets) == 1 {
		return cli.Usagef("-target-weights is for several targets, and %s is the only one", targets[0])
	}
	weights, err := eachTarget("target-weights", x.TargetWeights, targets, alike)
	if err != nil {
		return err
	}
	x.options.TargetWeights = nil
	for _, text := range weights {
		w := 1.0
		if text != alike {
			w, err = setting.Positive(text)
		}
		x.options.TargetWeights = append(x.options.TargetWeights, w)
	}
	return err
}
