package molecule

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var parity = flag.String("parity", "", "folder of tables by testdata/rdkit_tables.py, to compare with")

// TestParity compares atoms, bonds and scaffold splits with RDKit's on real
// molecules:
//
//	python3 testdata/rdkit_tables.py DATA TABLES
//	go test -run Parity -v -parity TABLES
func TestParity(t *testing.T) {
	if *parity == "" {
		t.Skip("no tables of RDKit's: see -parity")
	}
	files, err := filepath.Glob(filepath.Join(*parity, "*.tsv"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tables in %s: %v", *parity, err)
	}
	var p Parser
	total, decided, equal, both := 0, 0, 0, 0
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".tsv")
		rows, sameVerdict, same, accepted := 0, 0, 0, 0
		ours, theirs := []int{}, []int{}
		ourKeys, theirKeys := map[string]int{}, map[string]int{}
		sc := bufio.NewScanner(f)
		sc.Buffer(nil, 1<<24)
		for sc.Scan() {
			smiles, rest, _ := strings.Cut(sc.Text(), "\t")
			features, scaffold, _ := strings.Cut(rest, "\t")
			rows++
			m, err := p.Parse(smiles)
			if (err != nil) != (features == "rejected") {
				t.Logf("%s: %s: RDKit: %s; here: %v", name, smiles, features, err)
				continue
			}
			sameVerdict++
			if err != nil {
				continue
			}
			accepted++
			if describe(m) == features {
				same++
			} else {
				t.Logf("%s: %s: atoms or bonds differ", name, smiles)
			}
			ours = append(ours, number(ourKeys, p.Scaffold(m)))
			theirs = append(theirs, number(theirKeys, scaffold))
		}
		if err := sc.Err(); err != nil {
			t.Fatal(err)
		}
		f.Close()
		// Scaffolds are numbered by first appearance on both sides.
		differ := 0
		for i := range ours {
			if ours[i] != theirs[i] {
				differ++
			}
		}
		t.Logf("%-28s %6d rows, %6d with the same verdict, %6d accepted, %6d with the same atoms and bonds, %5d scaffolds, %d molecules with another",
			name, rows, sameVerdict, accepted, same, len(ourKeys), differ)
		total, decided, equal, both = total+rows, decided+sameVerdict, equal+same, both+accepted
	}
	t.Logf("in all %d rows, %.4f %% with the same verdict, %.4f %% of the accepted with the same atoms and bonds",
		total, 100*float64(decided)/float64(total), 100*float64(equal)/float64(both))
	if float64(decided) < 0.999*float64(total) || float64(equal) < 0.999*float64(both) {
		t.Error("less than 99.9 % agree")
	}
}

func number(keys map[string]int, key string) int {
	if _, ok := keys[key]; !ok {
		keys[key] = len(keys)
	}
	return keys[key]
}

// describe writes atoms and bonds as rdkit_tables.py does.
func describe(m *Molecule) string {
	var b strings.Builder
	for _, a := range m.Atoms {
		b.WriteString(strconv.Itoa(int(a.Z)) + ":" + strconv.Itoa(int(a.Chirality)) + " ")
	}
	b.WriteByte('|')
	for _, x := range m.Bonds {
		fmt.Fprintf(&b, " %d-%d:%d:%d", x.Begin, x.End, x.Type, x.Direction)
	}
	return b.String()
}

// BenchmarkTables reads and featurises the molecules of TestParity; the speed of
// RDKit on the same is what rdkit_tables.py prints.
func BenchmarkTables(b *testing.B) {
	files, _ := filepath.Glob(filepath.Join(*parity, "*.tsv"))
	if *parity == "" || len(files) == 0 {
		b.Skip("no tables of RDKit's: see -parity")
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		var rows []string
		for line := range strings.Lines(string(text)) {
			smiles, _, _ := strings.Cut(line, "\t")
			rows = append(rows, smiles)
		}
		b.Run(strings.TrimSuffix(filepath.Base(file), ".tsv"), func(b *testing.B) {
			var p Parser
			for b.Loop() {
				for _, s := range rows {
					if m, err := p.Parse(s); err == nil {
						m.Graph()
					}
				}
			}
			b.ReportMetric(float64(b.N)*float64(len(rows))/b.Elapsed().Seconds(), "molecules/s")
		})
	}
}
