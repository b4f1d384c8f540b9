package kernels_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cuda/kernels"
)

// TestOperations: the kernels number the elementwise functions as package backend does, and
// have a case for each.
func TestOperations(t *testing.T) {
	for kind, want := range map[string][]string{
		"unary_op":  names(backend.UnaryOps()),
		"binary_op": names(backend.BinaryOps()),
	} {
		before, body, _ := strings.Cut(kernels.Source(), "INLINE real "+kind+"(")
		body, _, _ = strings.Cut(body, "\n}\n")
		list := before[strings.LastIndex(before, "\nenum {")+len("\nenum {"):]
		list, _, _ = strings.Cut(list, "}")
		have := strings.Split(strings.ReplaceAll(strings.TrimSpace(list), "_", ""), ", ")
		if !slices.EqualFunc(have, want, strings.EqualFold) {
			t.Errorf("the enum before %s in kernels.cu is %v, want %v; after a change run go generate here", kind, have, want)
		}
		cases := regexp.MustCompile(`case [A-Z_]+:`).FindAllString(body, -1)
		if len(cases) != len(want) {
			t.Errorf("%s in kernels.cu has %d cases, want one for each of %v", kind, len(cases), want)
		}
	}
}

func names[T fmt.Stringer](ops []T) (names []string) {
	for _, op := range ops {
		names = append(names, op.String())
	}
	return names
}
