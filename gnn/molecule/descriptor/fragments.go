package descriptor

import (
	_ "embed"
	"math"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/gnn/molecule/smarts"
)

//go:embed fragments.txt
var fragmentsText string

//go:embed alerts.txt
var alertsText string

// fragment is a functional group that is counted.
type fragment struct {
	name    string
	pattern *smarts.Pattern
}

// fragments reads the table of functional groups.
func fragments() (list []fragment) {
	for line := range strings.Lines(fragmentsText) {
		if name, pattern, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "#" {
			list = append(list, fragment{name, smarts.MustCompile(pattern)})
		}
	}
	return list
}

// readAlerts reads the patterns of QED: alerts, and acceptors of hydrogen bonds.
var readAlerts = sync.OnceValues(func() (alerts, acceptors []*smarts.Pattern) {
	list := &alerts
	for line := range strings.Lines(alertsText) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "# "):
		case line == "-":
			list = &acceptors
		default:
			*list = append(*list, smarts.MustCompile(line))
		}
	}
	return alerts, acceptors
})

// desirability is a double sigmoidal function of a property, fitted to drugs, with its weight.
type desirability struct{ a, b, c, d, e, f, largest, weight float64 }

func (p desirability) of(x float64) float64 {
	rise := 1 + math.Exp(-(x-p.c+p.d/2)/p.e)
	fall := 1 + math.Exp(-(x-p.c-p.d/2)/p.f)
	return (p.a + p.b/rise*(1-1/fall)) / p.largest
}

// desirabilities are those of QED, in the order of drugLikeness.
var desirabilities = [...]desirability{
	{2.817065973, 392.5754953, 290.7489764, 2.419764353, 49.22325677, 65.37051707, 104.9805561, 0.66},
	{3.172690585, 137.8624751, 2.534937431, 4.581497897, 0.822739154, 0.576295591, 131.3186604, 0.46},
	{2.948620388, 160.4605972, 3.615294657, 4.435986202, 0.290141953, 1.300669958, 148.7763046, 0.05},
	{1.618662227, 1010.051101, 0.985094388, 0.000000001, 0.713820843, 0.920922555, 258.1632616, 0.61},
	{1.876861559, 125.2232657, 62.90773554, 87.83366614, 12.01999824, 28.51324732, 104.5686167, 0.06},
	{0.010000000, 272.4121427, 2.558379970, 1.565547684, 1.271567166, 2.758063707, 105.4420403, 0.65},
	{3.217788970, 957.7374108, 2.274627939, 0.000000001, 1.317690384, 0.375760881, 312.3372610, 0.48},
	{0.010000000, 1199.094025, -0.09002883, 0.000000001, 0.185904477, 0.875193782, 417.7253140, 0.95},
}

// drugLikeness returns QED: the weighted geometric mean of the desirabilities of eight properties.
//
//	G. R. Bickerton, G. V. Paolini, J. Besnard, S. Muresan, A. L. Hopkins, Nat. Chem. 4 (2012) 90–98.
func (x *extended) drugLikeness() float64 {
	alerts, acceptors := readAlerts()
	alarms := 0
	for _, p := range alerts {
		if x.matcher.Has(p) {
			alarms++
		}
	}
	accepting := 0
	for _, p := range acceptors {
		accepting += x.matcher.Count(p)
	}
	properties := [...]float64{
		x.weight(),
		x.logP,
		float64(accepting),
		x.donors(),
		x.polarSurface(),
		x.rotatable(),
		x.aromaticRings(),
		float64(alarms),
	}
	sum := 0.0
	weights := 0.0
	for i, d := range desirabilities {
		sum += d.weight * math.Log(d.of(properties[i]))
		weights += d.weight
	}
	return math.Exp(sum / weights)
}

// aromaticRings returns the number of rings that are left without the ring atoms that are aliphatic and
// have an aliphatic neighbour at a single bond.
func (x *extended) aromaticRings() float64 {
	n := len(x.m.Atoms)
	x.removed = zeros(x.removed, n)
	left := 0
	for i := range int32(n) {
		a := x.atom(i)
		if a.InRing && !a.Aromatic {
			for _, l := range x.of(i) {
				x.removed[i] = x.removed[i] || plain(l) && !x.atom(l.atom).Aromatic
			}
		}
		if !x.removed[i] {
			left++
		}
	}
	// Independent rings are the bonds beyond those of a forest.
	rings := -left
	for k := range x.m.Bonds {
		b := &x.m.Bonds[k]
		if !x.removed[b.Begin] && !x.removed[b.End] {
			rings++
		}
	}
	x.hops = zeros(x.hops, n)
	for i := range int32(n) {
		if !x.removed[i] && x.hops[i] == 0 {
			rings++
			x.reach(i)
		}
	}
	return float64(rings)
}

// reach marks the atoms in x.hops that paths of atoms that are not removed lead to.
func (x *extended) reach(root int32) {
	x.hops[root] = 1
	x.queue = append(x.queue[:0], root)
	for head := 0; head < len(x.queue); head++ {
		for _, l := range x.of(x.queue[head]) {
			if !x.removed[l.atom] && x.hops[l.atom] == 0 {
				x.hops[l.atom] = 1
				x.queue = append(x.queue, l.atom)
			}
		}
	}
}
