package main

import (
	"errors"
	"fmt"

	"gonum.org/v1/gonum/stat"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/backend/ref"
	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/specmatch/report/plot"
	"github.com/specmatch/specmatch/specmatch/theory"
)

func (x *experiment) figures(sets [][]group) error {
	err := x.adjacencyFigure()
	for _, groups := range sets {
		ds := groups[0].ds
		err = errors.Join(
			err, x.trajectoryFigure(ds, groups), x.boundsFigures(ds, groups), x.layoutFigure(ds, groups),
		)
	}
	return err
}

// exampleThreshold is the θ of the paper's Figure 2.
const exampleThreshold = 0.4

// adjacencyFigure is the paper's Figure 2: the weight of an edge against the
// similarity, and beside it the slope, which is what a gradient is made of.
func (x *experiment) adjacencyFigure() error {
	weight := plot.Lines{Axes: plot.Axes{XLabel: "similarity S", YLabel: "edge weight A"}}
	slope := plot.Lines{Axes: plot.Axes{XLabel: "similarity S", YLabel: "slope dA/dS"}}
	t := autodiff.NewInference(ref.New())
	for _, c := range []specmatch.LaplacianMatch{
		{Adjacency: specmatch.Hard},
		{Adjacency: specmatch.Sigmoid, Kappa: 10},
		{Adjacency: specmatch.Sigmoid, Kappa: 50},
	} {
		s := plot.Series{Name: fmt.Sprintf("sigmoid, κ = %v", c.Kappa)}
		if c.Adjacency == specmatch.Hard {
			s.Name = "hard threshold, θ = 0.4"
		}
		ds := plot.Series{Name: s.Name}
		const steps = 400
		for k := range steps + 1 {
			cos := -1 + 2*float64(k)/steps
			// The edge of two graphs of that similarity, as the loss has it.
			a := c.Weights(
				t.Matrix(2, 2, []float64{1, cos, cos, 1}), t.Scalar(exampleThreshold),
			).Data()[1]
			t.Reset()
			s.X = append(s.X, cos)
			s.Y = append(s.Y, a)
			// hard: A(1-A) = 0
			ds.X = append(ds.X, cos)
			ds.Y = append(ds.Y, c.Kappa*a*(1-a))
		}
		weight.Series, slope.Series = append(weight.Series, s), append(slope.Series, ds)
	}
	return plot.Save(x.Dir.Join("adjacency"), 2, weight, slope)
}

// trajectoryFigure is the paper's Figure 3.
func (x *experiment) trajectoryFigure(ds *dataset.Dataset, groups []group) error {
	panel := plot.Lines{Axes: plot.Axes{
		Title:  fmt.Sprintf("%s, mean of %d seeds; numbers are epochs", ds.Name, x.Recipe.Seeds),
		XLabel: "alignment loss L_align", YLabel: "uniformity loss L_unif",
	}}
	for _, g := range groups {
		s := plot.Series{Name: x.label(g.method)}
		for k := range g.checkpoints() {
			s.X = append(s.X, stat.Mean(g.at(k, 0, "align"), nil))
			s.Y = append(s.Y, stat.Mean(g.at(k, 0, "uniform"), nil))
			s.Labels = append(s.Labels, fmt.Sprint(g.outcomes[0].Checkpoints[k].Epoch))
		}
		panel.Series = append(panel.Series, s)
	}
	return plot.Save(x.Dir.Join("trajectory-"+ds.Name), 1, panel)
}

// boundsFigures show both sides of the theorems along training, a column per
// method, for the soft graph, which is always connected.
func (x *experiment) boundsFigures(ds *dataset.Dataset, groups []group) error {
	curve := func(g group, name, quantity string) plot.Series {
		s := plot.Series{Name: name}
		for k := range g.checkpoints() {
			mean, std := stat.MeanStdDev(g.at(k, len(x.graphs())-1, quantity), nil)
			s.X = append(s.X, float64(g.outcomes[0].Checkpoints[k].Epoch))
			s.Y = append(s.Y, mean)
			s.Err = append(s.Err, std)
		}
		return s
	}
	var first, second []plot.Panel
	for _, g := range groups {
		title := ds.Name + ", " + x.label(g.method)
		alignment := plot.Lines{
			Axes: plot.Axes{
				Title:  title,
				XLabel: "epoch",
				YLabel: "Theorem 4.2 (nats)",
				LogY:   true,
			},
			Series: []plot.Series{
				curve(g, "left side, negatives fixed", "gap_fixed"),
				curve(g, "left side, z* = z¹", "gap_view1"),
			},
		}
		for _, td := range x.check.times {
			alignment.Series = append(alignment.Series, curve(
				g, fmt.Sprintf("right side, t_d = %v", td), theory.AtTime("right", td),
			))
		}
		first = append(first, alignment)
		second = append(second, plot.Lines{
			Axes: plot.Axes{Title: title, XLabel: "epoch", YLabel: "Theorem 4.3 (nats)"},
			Series: []plot.Series{
				curve(g, "L_unif", "unif"),
				curve(g, "direct bound, before L_G enters", "direct"),
				curve(g, "right side, second smallest", "right_4.3"),
				curve(g, "right side, smallest non-zero", "right_4.3_nonzero"),
			},
		})
	}
	return errors.Join(
		plot.Save(x.Dir.Join("theorem-4.2-"+ds.Name), len(groups), first...),
		plot.Save(x.Dir.Join("theorem-4.3-"+ds.Name), len(groups), second...))
}

// layoutFigure is a t-SNE of the embeddings h after training, by class.
func (x *experiment) layoutFigure(ds *dataset.Dataset, groups []group) error {
	var panels []plot.Panel
	for _, g := range groups {
		m, err := newMeter(nil, g.runs[0])
		if err != nil {
			return err
		}
		s := plot.Scatter{Axes: plot.Axes{
			Title:  fmt.Sprintf("%s, %s, epoch %d", ds.Name, x.label(g.method), x.Recipe.Epochs),
			XLabel: "t-SNE coordinate 1", YLabel: "t-SNE coordinate 2",
		}}
		for c := range ds.Classes {
			s.Names = append(s.Names, fmt.Sprint("class ", c))
		}
		layout := g.outcomes[0].Layout
		for k, sample := range m.sample.Samples {
			s.X, s.Y = append(s.X, layout[2*k]), append(s.Y, layout[2*k+1])
			s.Class = append(s.Class, ds.Graphs[sample].Class)
		}
		panels = append(panels, s)
	}
	return plot.Save(x.Dir.Join("tsne-"+ds.Name), len(panels), panels...)
}
