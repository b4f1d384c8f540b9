package play

import (
	"errors"
	"slices"
	"testing"
)

// TestDraw: views keep what their augmentation says, and know the nodes by number.
func TestDraw(t *testing.T) {
	const aspirin = "CC(=O)Oc1ccccc1C(=O)O"
	for _, p := range []Picture{{Index: 7}, {Index: 8, SMILES: aspirin}} {
		for _, policy := range []string{"dropN", "permE", "maskN", "subgraph"} {
			p.Policy, p.Ratio, p.Seed = policy, 0.3, 1
			d, err := p.Draw()
			if err != nil {
				t.Fatal(err)
			}
			n := len(d.Labels)
			count := func(x []bool) (k int) {
				for _, v := range x {
					if v {
						k++
					}
				}
				return k
			}
			kept, masked := map[string]int{"dropN": n - n*3/10, "subgraph": n*7/10 + 1}[policy], 0
			if kept == 0 {
				kept = n
			}
			if policy == "maskN" {
				masked = n * 3 / 10
			}
			if count(d.Kept) != kept || count(d.Masked) != masked {
				t.Errorf("%s of %d nodes keeps %d and masks %d; want %d and %d", policy, n, count(d.Kept), count(d.Masked), kept, masked)
			}
			for _, e := range d.View {
				if !d.Kept[e[0]] || !d.Kept[e[1]] {
					t.Errorf("%s: an edge of nodes that are gone: %v", policy, e)
				}
				if policy != "permE" && !slices.Contains(d.Edges, e) {
					t.Errorf("%s: a new edge %v", policy, e)
				}
			}
			if len(d.Layer.Sum) != n*len(d.Names) || len(d.Layer.Out) != n*layerWidth {
				t.Errorf("a layer of %d sums and %d values", len(d.Layer.Sum), len(d.Layer.Out))
			}
			// The sum of a node counts it and its neighbours.
			total := 0.0
			for _, v := range d.Layer.Sum {
				total += v
			}
			if int(total) != n+2*len(d.Edges) {
				t.Errorf("the sums add up to %v for %d nodes and %d edges", total, n, len(d.Edges))
			}
		}
	}
	if d, err := (Picture{SMILES: aspirin, Policy: "dropN"}).Draw(); err != nil || len(d.Labels) != 13 || len(d.Places) != 13 || !slices.Equal(d.Names, []string{"C", "O"}) || d.Colours[0] != "" || d.Colours[1] == "" || !slices.Equal(d.View, d.Edges) {
		t.Errorf("aspirin: %+v, %v", d, err)
	}
	var e *Error
	if _, err := (Picture{SMILES: "CC(C", Policy: "dropN"}).Draw(); !errors.As(err, &e) || e.Column < 3 {
		t.Errorf("a SMILES without its bracket: %v", err)
	}
	for _, p := range []Picture{{Index: -1}, {Index: 240}, {Policy: "?"}, {Policy: "dropN", Ratio: 0.95}} {
		if _, err := p.Draw(); err == nil {
			t.Errorf("%+v is drawn", p)
		}
	}
}

// TestSession: every question has an answer or an error, in JSON.
func TestSession(t *testing.T) {
	var s Session
	for _, c := range [][3]string{
		{"nonsense", "{}", `{"error":{"line":0,"column":0,"message":"there is no \"nonsense\""}}`},
		{"trace", "[", `{"error":{"line":0,"column":0,"message":"unexpected end of JSON input"}}`},
		{"step", "{}", `{"error":{"line":0,"column":0,"message":"there is no training yet"}}`},
		{"trace", `{"text":"x.Foo()","x":"1"}`, `{"error":{"line":1,"column":3,"message":"Foo is no operator of a matrix"}}`},
	} {
		if got := s.Call(c[0], c[1]); got != c[2] {
			t.Errorf("%s: %s", c[0], got)
		}
	}
}
