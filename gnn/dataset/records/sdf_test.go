package records

import (
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/gnn/molecule"
)

// sdRecord returns fluoroethanol with a title and a property y, but for its last line.
func sdRecord(name, y string) string {
	return name + `
  a program

  4  3  0  0  0  0  0  0  0  0999 V2000
    0.0000    0.0000    0.0000 F   0  0  0  0  0  0
    1.2990    0.7500    0.0000 C   0  0  0  0  0  0
    2.5981    0.0000    0.0000 C   0  0  0  0  0  0
    3.8971    0.7500    0.0000 O   0  0  0  0  0  0
  1  2  1  0
  2  3  1  0
  3  4  1  0
M  END
>  25  <y> (X1)
` + y + `

> <two words>
first

>second

`
}

// TestSDF: molfiles have the graphs of their SMILES; properties are columns; what is wrong with a
// record is named with its line, and the next one is read.
func TestSDF(t *testing.T) {
	defer func(n int) { longestMolfile = n }(longestMolfile)
	longestMolfile = 4000
	v3000 := `third
  a program

  0  0  0     0  0            999 V3000
M  V30 BEGIN CTAB
M  V30 COUNTS 2 1 0 0 0
M  V30 BEGIN ATOM
M  V30 7 C 0 0 0 0
M  V30 9 N 1 0 0 0 -
M  V30 CHG=1
M  V30 END ATOM
M  V30 BEGIN BOND
M  V30 1 1 7 9
M  V30 END BOND
M  V30 END CTAB
M  END
`
	text := strings.Join([]string{
		sdRecord("one", "0.5"),                                // line 1
		strings.Replace(sdRecord("two", ""), " F ", " Xx", 1), // 22: an error in line 26
		v3000, // 43
		"\n",  // 60: nothing
		strings.Repeat("x", longestMolfile) + "\n",              // 62: too long
		sdRecord("", "1") + "> <y>\n2\n\n",                      // 64: y twice, and no title
		strings.Replace(sdRecord("six", ">10"), "M  E", "E", 1), // 87: no end of the molfile
		sdRecord("seven", ">10\n<y>"),                           // 109
	}, "$$$$\r\n")
	dir := t.TempDir()
	var want []*graph.Graph
	for _, s := range []string{"FCCO", "C[NH3+]", "FCCO"} {
		m, err := molecule.Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		g, err := m.Graph()
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, g)
	}
	for skip := range 2 { // what is skipped has properties, too
		var reading Reading
		o := Options{
			Input:   strings.NewReader(text),
			Fields:  []string{"y", "zz", "Two words", "zz", "_Name"},
			Skip:    100 * skip,
			Reading: &reading,
		}
		if err := Read(t.Context(), "a.sdf", o, func(*Record) error { return nil }); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff([]string{"Two words", "zz"}, reading.Absent); d != "" {
			t.Error(d)
		}
	}
	suggesting := Reading{Fields: []string{"yield", "yields"}, Absent: []string{"Two words", "name", "yields"}, Unused: []string{"two words"}}
	for field, want := range map[string]string{
		"Two words": `no record has a value of Two words; did you mean "two words"?`,
		"yields":    `no record has a value of yields; did you mean "yield"?`,
		"name":      `no record has a value of name; did you mean "_Name"?`,
		"_name":     "no record has a value of _name", // not of an SD file
	} {
		if got := suggesting.NoValue(field); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	for file, text := range map[string]string{"a.sdf": text, "a.SD.gz": string(zipped(t, text)), "a.mol": text + "$$$$\n\n\n"} {
		path := filepath.Join(dir, file)
		write(t, path, text)
		table, err := ReadAll(t.Context(), path, Options{ID: "_Name", Fields: []string{"y", "two words", "none"}, Scaffolds: true, Identities: true})
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, table.Set.Graphs); d != "" {
			t.Errorf("%s: %s", file, d)
		}
		var have []string
		for _, r := range table.Records {
			have = append(have, fmt.Sprintf("%d %d %s %q", r.Number, r.Line, r.ID, r.Fields))
		}
		for _, e := range table.Rejected {
			have = append(have, strings.TrimPrefix(e.Error(), "dataset: "+path))
		}
		if d := cmp.Diff([]string{
			`1 1 one ["0.5" "first\n\n>second" ""]`, `3 43 third ["" "" ""]`, `8 109 seven [">10\n<y>" "first\n\n>second" ""]`,
			`:26: "two": "Xx" is not an element`, ":60: there is no molfile before the line $$$$", ":62: a record of more than 4000 bytes",
			`:64: the property "y" is there twice`, `:107: "six": there is no line "M  END"`,
		}, have); d != "" {
			t.Errorf("%s: %s", file, d)
		}
		if have := strings.Join(table.Set.SMILES, " "); have != "[F]-[CH2]-[CH2]-[OH1] [CH3]-[NH3+1] [F]-[CH2]-[CH2]-[OH1]" {
			t.Errorf("SMILES %s", have)
		}
		if table.Records[0].Identity != table.Records[2].Identity || table.Records[0].Identity == table.Records[1].Identity {
			t.Error("identities are not those of the molecules")
		}
		got, want := table.Reading.String(), "8 molecules, of which 5 are skipped; id _Name; also read y, two words"
		if got != want {
			t.Errorf("reading %q, want %q", got, want)
		}
	}
	path := filepath.Join(dir, "b.sdf")
	write(t, path, sdRecord("a", "1"))
	table, err := ReadAll(t.Context(), path, Options{})
	if err != nil || table.Records[0].ID != "1" || table.Reading.String() != "1 molecules; not used two words, y" {
		t.Errorf("%+v, %v", table, err)
	}
	if _, err := ReadAll(t.Context(), path, Options{ID: "id"}); err == nil || !strings.Contains(err.Error(), `b.sdf:1: there is no "id", which is to name the molecule`) {
		t.Errorf("no ID: %v", err)
	}
	if _, err := ReadAll(t.Context(), path, Options{SMILES: "s"}); err == nil || !strings.Contains(err.Error(), `no column of SMILES, such as "s"`) {
		t.Errorf("a column of SMILES: %v", err)
	}
}

// TestSDFStream: 100,000 molfiles take no more memory than some thousands.
func TestSDFStream(t *testing.T) {
	records := 100_000
	if testing.Short() {
		records = 10_000
	}
	text := sdRecord("a", "1") + "$$$$\n"
	var peak, before, stats runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	n := 0
	err := Read(t.Context(), "-", Options{Format: SDF, Input: &repeated{text: text, left: records}}, func(r *Record) error {
		if n++; n%5000 == 0 {
			runtime.GC()
			if runtime.ReadMemStats(&stats); stats.HeapAlloc > peak.HeapAlloc {
				peak = stats
			}
		}
		if r.Err != nil {
			return r.Err
		}
		return nil
	})
	if err != nil || n != records {
		t.Fatalf("%d records, %v", n, err)
	}
	if grown := int64(peak.HeapAlloc) - int64(before.HeapAlloc); grown > 64<<20 {
		t.Errorf("%d MiB more while a file of %d MiB is read", grown>>20, records*len(text)>>20)
	}
}

// repeated reads as a text many times over.
type repeated struct {
	text string
	left int
	rest string
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.rest == "" {
		if r.left == 0 {
			return 0, io.EOF
		}
		r.left--
		r.rest = r.text
	}
	n := copy(p, r.rest)
	r.rest = r.rest[n:]
	return n, nil
}
