package augment

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func TestPolicyFor(t *testing.T) {
	for want, names := range map[string]string{
		Random2: "MUTAG NCI1 PROTEINS DD nci1 BBBP Tox21 zinc_standard_agent",
		Random3: "RDT-B RDT-M5K REDDIT-BINARY REDDIT-MULTI-5K ppi",
		Random4: "COLLAB IMDB-B IMDB-BINARY imdb-multi",
	} {
		for _, name := range strings.Fields(names) {
			if got, known := PolicyFor(name); got != want || !known {
				t.Errorf("PolicyFor(%q) = %q, %v, want %q", name, got, known, want)
			}
		}
	}
	for _, name := range []string{"", "motifs", "NCI"} {
		if got, known := PolicyFor(name); got != Random2 || known {
			t.Errorf("PolicyFor(%q) = %q, %v, want the default and false", name, got, known)
		}
	}
	seen := make(map[string]string)
	for policy, names := range families {
		if _, ok := randomPolicies[policy]; !ok {
			t.Errorf("no policy %q", policy)
		}
		for _, name := range names {
			if name != strings.ToUpper(name) {
				t.Errorf("%q can never be found", name)
			}
			if other, twice := seen[name]; twice {
				t.Errorf("%q has the policies %s and %s", name, other, policy)
			}
			seen[name] = policy
		}
	}
}

func TestParsePolicy(t *testing.T) {
	for _, c := range []struct {
		policy string
		impl   Impl
		ratio  float64
		want   Augmentation
	}{
		{"random2", ImplIntended, 0, Choice{NodeDropping{0.2}, Subgraph{0.2}}},
		{"random3", ImplIntended, 0, Choice{NodeDropping{0.2}, EdgePerturbation{0.2}, Subgraph{0.2}}},
		{"random4", ImplIntended, 0.3, Choice{NodeDropping{0.3}, EdgePerturbation{0.3}, Subgraph{0.3}, AttributeMasking{0.3}}},
		{"dropN", ImplIntended, 0, NodeDropping{0.2}},
		{"permE", ImplIntended, 1, EdgePerturbation{1}},
		{"maskN", ImplIntended, 0, AttributeMasking{0.2}},
		{"subgraph", ImplIntended, 0, Subgraph{0.2}},
		{"none", ImplIntended, 0, Identity{}},
		{"dropN, subgraph", ImplIntended, 0, Choice{NodeDropping{0.2}, Subgraph{0.2}}},
		{"none,dropN,dropN", ImplIntended, 0, Choice{Identity{}, NodeDropping{0.2}, NodeDropping{0.2}}},

		{"random4", ImplUnsupervised, 0, Choice{
			GraphCLUnsupervised{DropN, 0.1, true}, GraphCLUnsupervised{PermE, 0.1, true},
			GraphCLUnsupervised{Sub, 0.2, true}, GraphCLUnsupervised{MaskN, 0.1, true},
		}},
		{"dropN", ImplUnsupervised, 0, GraphCLUnsupervised{DropN, 0.1, true}},
		{"subgraph", ImplUnsupervised, 0, GraphCLUnsupervised{Sub, 0.2, true}},
		{"permE", ImplUnsupervised, 0, GraphCLUnsupervised{PermE, 0.1, false}},
		{"maskN", ImplUnsupervised, 0.3, GraphCLUnsupervised{MaskN, 0.3, false}},
		{"none", ImplUnsupervised, 0, Identity{SelfLoops: true}},

		{"none,permE", ImplUnsupervised, 0, Choice{GraphCLUnsupervised{None, 0.1, true}, GraphCLUnsupervised{PermE, 0.1, true}}},

		{"random3", ImplSemi, 0, Choice{GraphCLSemi{DropN, 0.2}, GraphCLSemi{PermE, 0.2}, GraphCLSemi{Sub, 0.2}}},
		{"maskN", ImplSemi, 0, GraphCLSemi{MaskN, 0.2}},
	} {
		got, err := ParsePolicy(c.policy, c.impl, c.ratio)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("ParsePolicy(%q, %v, %v) = %#v, %v, want %#v", c.policy, c.impl, c.ratio, got, err, c.want)
			continue
		}
		again, err := ParsePolicy(got.Name(), c.impl, c.ratio)
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("the name %q of %#v is read as %#v, %v", got.Name(), got, again, err)
		}
	}
}

func TestParsePolicyErrors(t *testing.T) {
	for _, c := range []struct {
		policy string
		impl   Impl
		ratio  float64
		want   string
	}{
		{"random5", ImplIntended, 0, `no augmentation "random5"`},
		{"", ImplIntended, 0, `no augmentation ""`},
		{"dropN,", ImplIntended, 0, `no augmentation "" in policy "dropN,"`},
		{"dropN,random2", ImplIntended, 0, `no augmentation "random2"`},
		{"DROPN", ImplIntended, 0, "want random2, random3"},
		{"dropN", Impl(3), 0, "Impl(3)"},
		{"dropN", Impl(-1), 0, "Impl(-1)"},
		{"dropN", ImplIntended, -0.1, "ratio -0.1"},
		{"dropN", ImplIntended, 1.5, "ratio 1.5"},
		{"dropN", ImplIntended, math.NaN(), "ratio NaN"},
	} {
		if got, err := ParsePolicy(c.policy, c.impl, c.ratio); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("ParsePolicy(%q, %v, %v) = %v, %v, want an error with %q", c.policy, c.impl, c.ratio, got, err, c.want)
		}
	}
}
