package plot_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/report/plot"
)

// curve returns y = floor + height·e^(-x/scale) with noise, and its error.
func curve(rng *rand.Rand, n int, floor, height, scale float64) (x, y, e []float64) {
	for i := range n {
		x = append(x, float64(i))
		y = append(y, floor+height*math.Exp(-float64(i)/scale)*(1+0.05*rng.NormFloat64()))
		e = append(e, 0.1*height*math.Exp(-float64(i)/scale)+0.02*height)
	}
	return x, y, e
}

func loss(rng *rand.Rand, a plot.Axes, methods ...string) plot.Lines {
	l := plot.Lines{Axes: a}
	for i, m := range methods {
		x, y, e := curve(rng, 101, 0.2+0.3*float64(i), 3+float64(i), 15+5*float64(i))
		l.Series = append(l.Series, plot.Series{Name: m, X: x, Y: y, Err: e})
	}
	return l
}

type sample struct {
	name   string
	cols   int
	panels []plot.Panel
}

func samples() []sample {
	rng := rand.New(rand.NewPCG(1, 2))
	methods := []string{"untrained", "graphcl", "infonce", "specmatch"}

	beta := []float64{0.01, 0.1, 0.5, 1, 1.5}
	sweep := plot.Lines{Axes: plot.Axes{Title: "Sensitivity to β on MUTAG", XLabel: "weight β of the Laplacian loss", YLabel: "accuracy (%)", LogX: true}}
	sweep.Series = []plot.Series{
		{Name: "rbf", X: beta, Y: []float64{86.1, 87, 88.2, 88.5, 87.9}, Err: []float64{1, 0.8, 0.9, 0.5, 1.2}, Bars: true},
		{Name: "linear", X: beta, Y: []float64{85.1, 85, 86.2, math.NaN(), 86.9}, Err: []float64{1, 0.8, 0.9, 0.5, 1.2}, Bars: true},
	}

	gradient := loss(rng, plot.Axes{Title: "gradient norms", XLabel: "epoch", YLabel: "norm of the gradient of L_G", LogY: true}, methods...)
	for _, s := range gradient.Series {
		for i := range s.Y {
			s.Y[i] = math.Pow(10, -2*s.Y[i])
			s.Err[i] = s.Y[i] / 2
		}
		s.Y[50], s.Y[51], s.Y[53] = math.NaN(), 0, -1
	}

	var cloud plot.Scatter
	cloud.Axes = plot.Axes{Title: "t-SNE of NCI1", XLabel: "first coordinate", YLabel: "second coordinate"}
	cloud.Names = []string{"inactive", "active", "unknown"}
	for range 600 {
		c := rng.IntN(3)
		cloud.X = append(cloud.X, -20+rng.NormFloat64()*8+20*float64(c))
		cloud.Y = append(cloud.Y, rng.NormFloat64()*10-15*float64(c%2))
		cloud.Class = append(cloud.Class, c)
	}

	var grid []plot.Panel
	for _, name := range []string{"MUTAG", "NCI1", "PROTEINS", "DD", "COLLAB"} {
		grid = append(grid, loss(rng, plot.Axes{Title: name, XLabel: "epoch", YLabel: "loss (nats)"}, methods...))
	}
	return []sample{
		{"lines", 1, []plot.Panel{loss(rng, plot.Axes{Title: "Training loss on MUTAG", XLabel: "epoch", YLabel: "loss (nats)"}, methods...)}},
		{"bars", 1, []plot.Panel{sweep}},
		{"log", 2, []plot.Panel{gradient, sweep}},
		{"scatter", 1, []plot.Panel{cloud}},
		{"mixed", 2, []plot.Panel{cloud, sweep, gradient}},
		{"grid", 3, grid},
		{"eight", 2, []plot.Panel{loss(rng, plot.Axes{XLabel: "epoch", YLabel: "loss"}, "a", "b", "c", "d", "e", "f", "g", "h, a longer name than the others have")}},
	}
}

// TestSamples draws every kind of figure. To look at them:
//
//	go test -run Samples -artifacts -outputdir /tmp/figures
func TestSamples(t *testing.T) {
	for _, s := range samples() {
		t.Run(s.name, func(t *testing.T) {
			base := filepath.Join(t.ArtifactDir(), s.name)
			if err := plot.Save(base, s.cols, s.panels...); err != nil {
				t.Fatal(err)
			}
			svg := read(t, base+".svg")
			checkSVG(t, svg)

			if s.name != "mixed" { // it has panels of all kinds
				return
			}
			again := filepath.Join(t.TempDir(), s.name)
			if err := plot.Save(again, s.cols, s.panels...); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(read(t, again+".svg"), svg) {
				t.Error("equal data gave different bytes")
			}
		})
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// checkSVG checks that data is well-formed, 8 inches wide, and readable, and that all
// of it is inside.
func checkSVG(t *testing.T, data []byte) {
	t.Helper()
	text := string(data)
	_, size, _ := strings.Cut(text, `width="576pt" height="`)
	size, _, _ = strings.Cut(size, "pt")
	height, err := strconv.ParseFloat(size, 64)
	if err != nil || height < 200 || height > 1000 {
		t.Errorf("not 576 points wide, or of an odd height: %.200s", text)
	}
	inside(t, text, 576, height)
	for _, bad := range []string{"font-size:8px", "font-size:9px", "font-size:10px", "NaN", "Inf"} {
		if strings.Contains(text, bad) {
			t.Errorf("there is a %s", bad)
		}
	}
	if n := strings.Count(text, "<text"); n < 5 {
		t.Errorf("%d texts", n)
	}
}

// inside checks that text is XML, and that no coordinate is outside of the picture.
func inside(t *testing.T, text string, width, height float64) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		e, _ := token.(xml.StartElement)
		for _, a := range e.Attr {
			most, ok := map[string]float64{"x": width, "cx": width, "y": height, "cy": height}[a.Name.Local]
			if v, err := strconv.ParseFloat(a.Value, 64); ok && (err != nil || v < 0 || v > most) {
				t.Errorf("%s of %s is %s: outside", a.Name.Local, e.Name.Local, a.Value)
			}
		}
	}
}

var nan, inf = math.NaN(), math.Inf(1)

// The data that a failed run leaves behind are drawn as far as they can be.
func TestOddData(t *testing.T) {
	line := func(a plot.Axes, x, y, e []float64) plot.Lines {
		return plot.Lines{Axes: a, Series: []plot.Series{{Name: "a", X: x, Y: y, Err: e}, {Name: "empty", X: []float64{}, Y: []float64{}}}}
	}
	log := plot.Axes{LogX: true, LogY: true}
	for name, panel := range map[string]plot.Panel{
		"one point":          line(plot.Axes{}, []float64{1}, []float64{2}, nil),
		"one point, log":     line(log, []float64{1}, []float64{2}, []float64{3}),
		"all equal":          line(plot.Axes{}, []float64{1, 2, 3}, []float64{7, 7, 7}, []float64{0, nan, inf}),
		"all zero":           line(plot.Axes{}, []float64{0, 0}, []float64{0, 0}, nil),
		"all equal and huge": line(plot.Axes{}, []float64{1e17, 1e17}, []float64{-1e299, -1e299}, nil),
		"huge and tiny":      line(plot.Axes{}, []float64{-1e299, 1e299}, []float64{5e-324, 1e-300}, nil),
		"beyond all bounds":  line(plot.Axes{}, []float64{1, 2}, []float64{1, math.MaxFloat64}, nil),
		"huge and tiny, log": line(log, []float64{5e-324, math.MaxFloat64}, []float64{5e-324, math.MaxFloat64}, nil),
		"nearly equal":       line(plot.Axes{}, []float64{1, 2}, []float64{1, 1 + 1e-15}, nil),
		"gaps":               line(plot.Axes{}, []float64{0, 1, 2, nan, 4}, []float64{nan, 1, inf, 3, 4}, []float64{1, 1, 1, 1, 1}),
		"gaps, log":          line(log, []float64{-1, 0, 1, 2, 3}, []float64{1, 1, 0, 4, 5}, nil),
		"error beyond zero":  line(log, []float64{1, 2}, []float64{1, 2}, []float64{5, 5}),
		"scatter of one":     plot.Scatter{X: []float64{1, nan}, Y: []float64{1, 2}, Class: []int{0, 1}, Names: []string{"a", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			base := filepath.Join(t.TempDir(), "x")
			if err := plot.Save(base, 1, panel); err != nil {
				t.Fatal(err)
			}
			if svg := string(read(t, base+".svg")); strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Errorf("a coordinate is no number: %s", svg)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	good := plot.Lines{Series: []plot.Series{{X: []float64{1}, Y: []float64{1}}}}
	for _, tt := range []struct {
		want   string
		cols   int
		panels []plot.Panel
	}{
		{"1 panels in 0 columns", 0, []plot.Panel{good}},
		{`panel 2: series "a": 2 x, 1 y and 0 errors`, 1, []plot.Panel{good, plot.Lines{Series: []plot.Series{{Name: "a", X: []float64{1, 2}, Y: []float64{1}}}}}},
		{`series "a": 1 x, 1 y and 2 errors`, 1, []plot.Panel{plot.Lines{Series: []plot.Series{{Name: "a", X: []float64{1}, Y: []float64{1}, Err: []float64{1, 2}}}}}},
		{`series "a": 1 points and 2 labels`, 1, []plot.Panel{plot.Lines{Series: []plot.Series{{Name: "a", X: []float64{1}, Y: []float64{1}, Labels: []string{"x", "y"}}}}}},
		{"no series has a point", 1, []plot.Panel{plot.Lines{Series: []plot.Series{{X: []float64{1}, Y: []float64{nan}}}}}},
		{"1 x, 1 y and 0 classes", 1, []plot.Panel{plot.Scatter{X: []float64{1}, Y: []float64{1}}}},
		{"point 0 is of class 1, but there are 1 names", 1, []plot.Panel{plot.Scatter{X: []float64{1}, Y: []float64{1}, Class: []int{1}, Names: []string{"a"}}}},
		{"no point can be drawn", 1, []plot.Panel{plot.Scatter{}}},
	} {
		base := filepath.Join(t.TempDir(), "x")
		err := plot.Save(base, tt.cols, tt.panels...)
		if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), base) {
			t.Errorf("got %v, want %s", err, tt.want)
		}
		if _, err := os.Stat(base + ".svg"); err == nil {
			t.Errorf("%s: a figure was written", tt.want)
		}
	}
	base := filepath.Join(t.TempDir(), "new", "x")
	if err := plot.Save(base, 2); err != nil {
		t.Errorf("no panels: %v", err)
	}
	if _, err := os.Stat(base + ".svg"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no panels leave a file: %v", err)
	}
	if err := plot.Save(base, 1, good); err != nil {
		t.Errorf("in a folder that is not there yet: %v", err)
	}
	if err := plot.Save(filepath.Join(base+".svg", "x"), 1, good); err == nil || !strings.Contains(err.Error(), base+".svg") {
		t.Errorf("a file as the folder: %v", err)
	}
}

// One name has one colour in all panels, and no two of 56 look alike.
func TestLooks(t *testing.T) {
	seen := map[string]int{}
	for i := range 56 {
		look := plot.Look(i)
		if j, dup := seen[look]; dup {
			t.Errorf("names %d and %d look alike: %s", i, j, look)
		}
		seen[look] = i
	}
	base := filepath.Join(t.TempDir(), "x")
	one := func(names ...string) plot.Lines {
		var l plot.Lines
		for i, n := range names {
			l.Series = append(l.Series, plot.Series{Name: n, X: []float64{0, 1}, Y: []float64{float64(i), 1}})
		}
		return l
	}
	if err := plot.Save(base, 2, one("a", "b"), one("b")); err != nil {
		t.Fatal(err)
	}
	// b, the second name, is orange: two lines, and one in the legend.
	svg := read(t, base+".svg")
	if !bytes.Contains(svg, []byte(".s1{color:#E69F00}")) {
		t.Error("the second colour is not orange")
	}
	if got := bytes.Count(svg, []byte(`<g class="s1"`)); got != 3 {
		t.Errorf("%d orange lines, want 3", got)
	}
}

// Labels stand at their points, on both sides of a gap.
func TestLabels(t *testing.T) {
	base := filepath.Join(t.TempDir(), "x")
	s := plot.Series{X: []float64{1, 2, 3, 4}, Y: []float64{1, 2, nan, 4}, Labels: []string{"epoch 2", "epoch 4", "epoch 6", "epoch 8"}}
	if err := plot.Save(base, 1, plot.Lines{Series: []plot.Series{s}}); err != nil {
		t.Fatal(err)
	}
	svg := string(read(t, base+".svg"))
	for i, label := range s.Labels {
		if strings.Contains(svg, label) != (i != 2) {
			t.Errorf("%q is drawn: %v", label, i == 2)
		}
	}

	// A hundred points at one place have room for some labels, not for all.
	crowd := plot.Series{X: []float64{0, 1}, Y: []float64{0, 1}, Labels: []string{"far a", "far b"}}
	for range 100 {
		crowd.X, crowd.Y, crowd.Labels = append(crowd.X, 0.5), append(crowd.Y, 0.5), append(crowd.Labels, "crowd")
	}
	if err := plot.Save(base, 1, plot.Lines{Series: []plot.Series{crowd}}); err != nil {
		t.Fatal(err)
	}
	svg = string(read(t, base+".svg"))
	if n := strings.Count(svg, ">crowd<"); n < 2 || n > 8 || !strings.Contains(svg, ">far a<") || !strings.Contains(svg, ">far b<") {
		t.Errorf("%d labels at one place, want 2 to 8, and those far from it", n)
	}
}

func ExampleSave() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	epochs := []float64{1, 2, 3, 4}
	err = plot.Save(filepath.Join(dir, "loss"), 1, plot.Lines{
		Axes: plot.Axes{Title: "MUTAG", XLabel: "epoch", YLabel: "loss (nats)", LogY: true},
		Series: []plot.Series{
			{Name: "infonce", X: epochs, Y: []float64{4, 2, 1.5, 1.4}},
			{Name: "specmatch", X: epochs, Y: []float64{5, 2, 1, 0.9}, Err: []float64{1, 0.5, 0.2, 0.2}},
		},
	})
	files, _ := filepath.Glob(filepath.Join(dir, "*"))
	for _, f := range files {
		fmt.Println(filepath.Base(f))
	}
	fmt.Println(err)
	// Output:
	// loss.svg
	// <nil>
}

// An inline panel is XML, mentions every name, and stays inside its box; what cannot
// be drawn is an error.
func TestInline(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	lines := loss(rng, plot.Axes{Title: "a < b", XLabel: "epoch", YLabel: "loss", LogY: true}, "x", "y & z")
	bars := plot.Lines{Axes: plot.Axes{XNames: []string{"sigmoid", "hard"}}, Series: []plot.Series{{Name: "x", X: []float64{0, 1}, Y: []float64{1, math.NaN()}, Err: []float64{1, 1}, Bars: true}}}
	dots := plot.Dots{Zero: true, Rows: []plot.DotRow{
		{Name: "x", Points: []float64{3, 4, math.NaN()}, Mean: 3.5, Half: math.NaN()},
		{Name: "y & z", Mean: 5, Half: 1},
	}, Bars: [][2]int{{0, 1}}}
	for _, p := range []struct {
		panel plot.Panel
		want  []string
	}{
		{lines, []string{"a &lt; b", "<title>y &amp; z</title>", `data-s="1"`, "stroke-dasharray"}},
		{bars, []string{">sigmoid</text>", ">hard</text>"}},
		{dots, []string{`class="zero"`, `stroke-width="3"`, ">y &amp; z</text>", `class="s1" data-s="1"`}},
	} {
		svg, err := plot.Inline(p.panel, func(name string) int { return map[string]int{"x": 0, "y & z": 1}[name] })
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range p.want {
			if !strings.Contains(svg, want) {
				t.Errorf("no %s in %s", want, svg)
			}
		}
		if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
			t.Errorf("a coordinate is no number: %s", svg)
		}
		var height float64
		if _, err := fmt.Sscanf(svg, `<svg class="plot" viewBox="0 0 360 %g"`, &height); err != nil {
			t.Errorf("%v: %.200s", err, svg)
		}
		inside(t, svg, 360, height)
	}
	nothing := []plot.Panel{plot.Lines{}, plot.Dots{Rows: []plot.DotRow{{Mean: math.NaN(), Half: math.NaN()}}}}
	for _, p := range nothing {
		if svg, err := plot.Inline(p, func(string) int { return 0 }); err == nil {
			t.Errorf("nothing is drawn as %s", svg)
		}
	}
}

// TestSquare: a plot of predictions against observations is a square whose axes have one range, so that its
// line is a diagonal.
func TestSquare(t *testing.T) {
	chart := plot.Scatter{
		Axes:  plot.Axes{Title: "predicted against observed"},
		X:     []float64{0, 1, 10},
		Y:     []float64{3, 4, 5},
		Class: []int{0, 0, 0},
		Names: []string{"record"},
		Guide: plot.Identity,
	}
	svg, err := plot.Inline(chart, func(string) int { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	var x0, y0, x1, y1 float64
	_, line, _ := strings.Cut(svg, `<path class="zero" d="`)
	if _, err := fmt.Sscanf(line, "M%g %gL%g %g", &x0, &y0, &x1, &y1); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	if math.Abs((x1-x0)-(y0-y1)) > 0.2 || x1-x0 < 200 {
		t.Errorf("the line of equal values is %g wide and %g high", x1-x0, y0-y1)
	}
	width, height := map[string]int{}, map[string]int{}
	for _, label := range strings.Split(svg, "<text ")[1:] {
		_, text, _ := strings.Cut(label, ">")
		text, _, _ = strings.Cut(text, "<")
		if strings.HasPrefix(label, `class="x"`) {
			width[text]++
		}
		if strings.HasPrefix(label, `class="y"`) {
			height[text]++
		}
	}
	if width["10"] != 1 || height["10"] != 1 {
		t.Errorf("10 is not on both axes: %v, %v", width, height)
	}
}
