package moleculenet

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// shared is where the real sets lie, beside the project's root.
const shared = "../../../../shared/data"

// TestReal measures the real sets: molecules, tasks, labels, and the
// scaffold splits, whose sums are those of the splits that the code of Hu et al.
// makes with RDKit 2022.09 of the SMILES as they are in the files.
func TestReal(t *testing.T) {
	type facts struct {
		molecules, dropped, tasks int
		yes, no                   int
		train, valid, test        int
		split                     string // beginning of the SHA-256 sum
	}
	want := map[string]facts{
		"bbbp":    {2039, 11, 1, 1560, 479, 1631, 204, 204, "d8e058204cca5e5d"},
		"tox21":   {7831, 0, 12, 5862, 72084, 6264, 783, 784, "e70337ace9809860"},
		"toxcast": {8576, 0, 617, 126651, 1407009, 6860, 858, 858, "232c53fd4163b72b"},
		"sider":   {1427, 0, 27, 21868, 16661, 1141, 143, 143, "6514f60016504ef6"},
		"clintox": {1477, 7, 2, 1495, 1459, 1181, 148, 148, "9313b889a25fd0fc"},
		"muv":     {93087, 0, 17, 489, 249397, 74469, 9309, 9309, "86db5fc0b33af61f"},
		"hiv":     {41127, 0, 1, 1443, 39684, 32901, 4113, 4113, "be002f50d22c20ea"},
		"bace":    {1513, 0, 1, 691, 822, 1210, 151, 152, "aee4e5b612b7a063"},
	}
	for _, set := range Sets() {
		t.Run(set.Name, func(t *testing.T) {
			if want[set.Name].molecules > 10_000 && os.Getenv("SPECMATCH_LARGE") == "" {
				t.Skip("large, and SPECMATCH_LARGE is not set")
			}
			m, err := Open(t.Context(), filepath.Join(shared, "moleculenet"), set.Name)
			if errors.Is(err, fs.ErrNotExist) {
				t.Skipf("no real data here: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
			s, err := dataset.ScaffoldSplit(m.Scaffolds, 0.8, 0.1)
			if err != nil {
				t.Fatal(err)
			}
			got := facts{molecules: len(m.Graphs), dropped: len(m.Dropped), tasks: len(m.Tasks),
				train: len(s.Train), valid: len(s.Valid), test: len(s.Test)}
			for _, l := range m.Labels {
				switch l {
				case 1:
					got.yes++
				case -1:
					got.no++
				}
			}
			if rows := got.molecules + got.dropped; rows != set.Rows {
				t.Errorf("%d rows, official %d", rows, set.Rows)
			}
			var lines []string
			for _, part := range [][]int{s.Train, s.Valid, s.Test} {
				lines = append(lines, strings.Trim(fmt.Sprint(part), "[]"))
			}
			sum := sha256.Sum256([]byte(strings.Join(lines, "\n")))
			got.split = hex.EncodeToString(sum[:8])
			if got != want[set.Name] {
				t.Errorf("%+v, want %+v", got, want[set.Name])
			}
			for i, g := range m.Graphs {
				if err := g.Validate(); err != nil {
					t.Fatalf("graph %d: %v", i, err)
				}
			}
			for _, d := range m.Dropped {
				t.Log(d)
			}
		})
	}
}
