package augment

import (
	"fmt"
	"slices"
	"strings"
)

// Impl is a family of implementations of the augmentations.
type Impl int

const (
	// ImplIntended is the augmentations as papers describe them.
	ImplIntended Impl = iota
	// ImplUnsupervised is [GraphCLUnsupervised].
	ImplUnsupervised
	// ImplSemi is [GraphCLSemi].
	ImplSemi
)

var implNames = []string{"intended", "graphcl-unsupervised", "graphcl-semi"}

// String returns the name of the family.
func (i Impl) String() string {
	if i < 0 || int(i) >= len(implNames) {
		return fmt.Sprintf("Impl(%d)", int(i))
	}
	return implNames[i]
}

// The policies of the literature: which augmentations to draw from.
const (
	// Random2 is dropN and subgraph: molecules and proteins.
	Random2 = "random2"
	// Random3 is dropN, permE and subgraph: sparse social networks.
	Random3 = "random3"
	// Random4 is dropN, permE, subgraph and maskN: dense social networks.
	Random4 = "random4"
)

var randomPolicies = map[string][]Op{
	Random2: {DropN, Sub},
	Random3: {DropN, PermE, Sub},
	Random4: {DropN, PermE, Sub, MaskN},
}

// families lists the data sets of each policy: those that You et al. (2020) and
// the section "Experimental setup" of the paper name, and their siblings of the
// same origin. For the pretraining sets of transfer learning it follows the loaders
// of GraphCL's code.
var families = map[string][]string{
	Random2: {
		"MUTAG", "NCI1", "NCI109", "PROTEINS", "DD", "D&D", "PTC_MR", "ENZYMES", "ZINC",
		"ZINC_STANDARD_AGENT", "BBBP", "BACE", "CLINTOX", "HIV", "MUV", "SIDER", "TOX21", "TOXCAST",
	},
	Random3: {
		"RDT-B", "REDDIT-B", "REDDIT-BINARY", "RDT-M5K", "REDDIT-MULTI-5K", "RDT-M12K",
		"REDDIT-MULTI-12K", "PPI",
	},
	Random4: {"COLLAB", "IMDB-B", "IMDB-BINARY", "IMDB-M", "IMDB-MULTI"},
}

// PolicyFor returns the policy for a data set, spelled as TUDataset, MoleculeNet
// or the papers do, in any case. For an unknown name it returns [Random2] and
// false. Random2 makes sense for every kind of graph, since it only removes parts;
// added edges and noisy features suit only some.
func PolicyFor(dataset string) (policy string, ok bool) {
	name := strings.ToUpper(dataset)
	for policy, names := range families {
		if slices.Contains(names, name) {
			return policy, true
		}
	}
	return Random2, false
}

// DefaultRatio returns the default ratio of an augmentation: 0.2 as in the papers,
// or in GraphCL's unsupervised code 0.1 for all but the star subgraph.
func DefaultRatio(op Op, impl Impl) float64 {
	if impl == ImplUnsupervised && op != Sub {
		return 0.1
	}
	return 0.2
}

// ParsePolicy reads a policy: random2, random3 or random4; one of none, dropN,
// permE, maskN and subgraph; or several of these joined by commas, of which one
// is drawn for every graph. Ratio 0 stands for [DefaultRatio]; it is an error
// if ratio is outside [0, 1] or a name or impl is unknown.
//
// ImplUnsupervised treats single names, and policies that draw one of several, as
// GraphCL's training loop does: see [GraphCLUnsupervised].Strip. Its "none" is the graph
// with self-loops, [Identity].SelfLoops.
func ParsePolicy(policy string, impl Impl, ratio float64) (Augmentation, error) {
	if !(ratio >= 0 && ratio <= 1) {
		return nil, fmt.Errorf("augment: ratio %v is outside [0, 1]", ratio)
	}
	if impl < 0 || int(impl) >= len(implNames) {
		return nil, fmt.Errorf("augment: no implementation %v", impl)
	}
	ops, ok := randomPolicies[policy]
	if !ok {
		for name := range strings.SplitSeq(policy, ",") {
			op := Op(strings.TrimSpace(name))
			if !slices.Contains([]Op{None, DropN, PermE, MaskN, Sub}, op) {
				return nil, fmt.Errorf(
					"augment: no augmentation %q in policy %q; want random2, random3, random4, or "+
						"some of none, dropN, permE, maskN, subgraph",
					name, policy,
				)
			}
			ops = append(ops, op)
		}
	}
	drawn := len(ops) > 1
	choice := make(Choice, len(ops))
	for i, op := range ops {
		r := ratio
		if r == 0 {
			r = DefaultRatio(op, impl)
		}
		choice[i] = newAugmentation(op, impl, r, drawn)
	}
	if drawn {
		return choice, nil
	}
	return choice[0], nil
}

func newAugmentation(op Op, impl Impl, ratio float64, drawn bool) Augmentation {
	switch impl {
	case ImplUnsupervised:
		if op == None && !drawn {
			return Identity{SelfLoops: true}
		}
		return GraphCLUnsupervised{Op: op, Ratio: ratio, Strip: drawn || op == DropN || op == Sub}
	case ImplSemi:
		return GraphCLSemi{Op: op, Ratio: ratio}
	}
	switch op {
	case DropN:
		return NodeDropping{Ratio: ratio}
	case PermE:
		return EdgePerturbation{Ratio: ratio}
	case MaskN:
		return AttributeMasking{Ratio: ratio}
	case Sub:
		return Subgraph{Ratio: ratio}
	}
	return Identity{}
}
