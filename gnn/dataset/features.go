package dataset

import (
	"cmp"
	"fmt"
	"strings"
)

// NodeFeatures says which of the labels and attributes of nodes are their features.
type NodeFeatures string

// The choices.
const (
	FeaturesAuto   NodeFeatures = "auto"   // labels, or attributes where there are none
	FeaturesLabels NodeFeatures = "labels" // for kernels: labels alone
	FeaturesBoth   NodeFeatures = "both"
	FeaturesOneHot NodeFeatures = "onehot" // one-hot attributes, as labels
	// FeaturesDegrees stands for labels or, where there are none, degrees up to DegreeLimit.
	FeaturesDegrees NodeFeatures = "degrees"
)

// DegreeLimit is the largest degree that GraphMAE's code tells apart.
const DegreeLimit = 400

// Open returns the set that open reads, such as by [Open], with these features. It may call open
// twice.
func (choice NodeFeatures) Open(o Options, open func(o Options) (*Dataset, error)) (*Dataset, error) {
	o.NodeAttributes = choice == FeaturesBoth || choice == FeaturesOneHot
	ds, err := open(o)
	if err == nil && ds.AttributesLeftOut && choice == FeaturesAuto && len(ds.NodeLabels) == 0 {
		o.NodeAttributes = true
		ds, err = open(o)
	}
	switch {
	case err != nil:
		return nil, err
	case choice == FeaturesOneHot:
		return ds.WithAttributesAsLabels()
	case choice == FeaturesDegrees && len(ds.NodeLabels) == 0:
		d := ds.WithDegreesAsLabels(DegreeLimit)
		d.AttributesLeftOut = ds.AttributesLeftOut || ds.NodeAttributes > 0
		return d, nil
	case ds.NodeAttributes == 0 || choice == FeaturesBoth ||
		choice == FeaturesAuto && len(ds.NodeLabels) == 0:
		return ds, nil
	}
	columns, err := ds.Columns()
	if err != nil {
		return nil, err
	}
	columns.Attributes = 0
	columns.Names = nil
	ds, err = ds.WithColumns(columns)
	if err == nil {
		ds.AttributesLeftOut = true
	}
	return ds, err
}

// Summary returns a line that says what is used of a set and what is not.
func (ds *Dataset) Summary() string {
	var used, left []string
	if ds.NodeAttributes > 0 {
		used = append(used, fmt.Sprintf("%d attributes", ds.NodeAttributes))
	}
	for _, l := range ds.NodeLabels {
		used = append(used, fmt.Sprintf("labels of %d values", l.Distinct))
	}
	if ds.Degrees > 0 {
		used = append(used, fmt.Sprintf("degrees up to %d", ds.Degrees-1))
	}
	if ds.AttributesLeftOut {
		left = append(left, "attributes of nodes")
	}
	if len(ds.EdgeLabels) > 0 {
		left = append(left, "labels of edges")
	}
	if n := len(ds.Empty); n > 0 {
		left = append(left, fmt.Sprintf("%d graphs without nodes", n))
	}
	if n := ds.SelfLoops; n > 0 {
		left = append(left, fmt.Sprintf("%d self-loops", n))
	}
	if n := ds.Duplicates; n > 0 {
		left = append(left, fmt.Sprintf("%d repeated edges", n))
	}
	if n := len(ds.Targets); n > 0 {
		left = append(left, fmt.Sprintf("%d targets of graphs", n))
	}
	line := fmt.Sprintf("%s: %d graphs, %d classes; features of nodes: %s",
		ds.Name, len(ds.Graphs), ds.Classes, cmp.Or(strings.Join(used, ", "), "none, all are alike"))
	if left != nil {
		line += "; left out: " + strings.Join(left, ", ")
	}
	return line
}
