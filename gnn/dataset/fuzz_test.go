package dataset

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"path"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
)

// tight keeps a fuzzing worker from spending its time on one large input.
var tight = limits{file: 1 << 20, total: 4 << 20}

// FuzzScanner compares the scanner with a line-by-line reading, however the
// bytes arrive.
func FuzzScanner(f *testing.F) {
	for _, s := range []string{
		"", "\n", "1", "1\n", "1, 2\n3,4\r\n\n \n", "-2147483648,2147483647", "2147483648", "1\n\n2", "1,,2", ",", "1,", "+", "--1",
		"1 2", " 1 , 2 ", "0x10", "1e5, .5, 5., -0.0", "1e400", "nan", strings.Repeat("9", 200), strings.Repeat("0", 200), strings.Repeat("0", maxNumber), strings.Repeat("0", maxNumber+1), "+" + strings.Repeat("0", maxNumber), "1\r2", "\x00", "é",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var ints []int32
		var floats []float32
		intErr, floatErr := naiveTable(text, func(field string) error {
			v, err := strconv.ParseInt(field, 10, 32)
			ints = append(ints, int32(v))
			return err
		}), naiveTable(text, func(field string) error {
			v, err := strconv.ParseFloat(field, 64)
			if strings.Trim(field, "0123456789+-.eE") != "" || math.IsInf(float64(float32(v)), 0) {
				return fmt.Errorf("%q", field)
			}
			floats = append(floats, float32(v))
			return err
		})
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(text), "byte by byte": iotest.OneByteReader(strings.NewReader(text)), "with pauses": &pauses{r: strings.NewReader(text)}} {
			got, _, err := scanTable(newScanner("f", r), parseInt, -1, "item")
			if (err == nil) != (intErr == nil) || err == nil && len(ints)+len(got) > 0 && !reflect.DeepEqual(got, ints) {
				t.Errorf("%s: ints of %q = %v, %v; want %v, %v", name, text, got, err, ints, intErr)
			}
		}
		got, _, err := scanTable(newScanner("f", iotest.HalfReader(strings.NewReader(text))), parseFloat, -1, "item")
		if (err == nil) != (floatErr == nil) || err == nil && len(floats)+len(got) > 0 && !reflect.DeepEqual(got, floats) {
			t.Errorf("floats of %q = %v, %v; want %v, %v", text, got, err, floats, floatErr)
		}
	})
}

// pauses is a reader that has nothing to say three times out of four.
type pauses struct {
	r io.Reader
	n int
}

func (p *pauses) Read(b []byte) (int, error) {
	if p.n++; p.n%4 != 0 {
		return 0, nil
	}
	return p.r.Read(b)
}

// naiveTable splits a text into lines and fields. It returns an error for what
// the scanner must refuse.
func naiveTable(text string, number func(string) error) error {
	const blanks = " \t\r"
	lines := strings.Split(text, "\n")
	for len(lines) > 0 && strings.Trim(lines[len(lines)-1], blanks) == "" {
		lines = lines[:len(lines)-1]
	}
	cols := 0
	for _, line := range lines {
		fields := strings.Split(line, ",")
		if cols == 0 {
			cols = len(fields)
		}
		if len(fields) != cols {
			return fmt.Errorf("%d fields, want %d", len(fields), cols)
		}
		for _, field := range fields {
			field = strings.Trim(field, blanks)
			if len(field) > maxNumber {
				return fmt.Errorf("%d bytes", len(field))
			}
			if err := number(field); err != nil {
				return err
			}
		}
	}
	return nil
}

// FuzzLoad reads arbitrary files. What is accepted must be valid, be what the
// naive reader makes of it, and survive writing and reading.
func FuzzLoad(f *testing.F) {
	add := func(s files) {
		f.Add(s["A"], s["graph_indicator"], s["graph_labels"], s["node_labels"], s["edge_labels"], s["node_attributes"])
	}
	add(small)
	add(bare)
	add(small.with("A", "1, 2\n2, 2\n1, 2\n2, 1\n3, 3\n3, 1\n2, 2\n1, 2\n4,5\n4,4\n"))
	add(small.with("graph_indicator", "1\n2\n1\n2\n1\n2\n2\n").with("A", "1, 3\r\n3,1\r\n2,4"))
	add(small.with("node_labels", "0,7\n1,7\n0,7\n1,9\n0,7\n0,7\n0,7\n"))
	add(small.with("edge_labels", "0,5\n1,5\n0,7\n1,7\n0,6\n1,6\n0,5\n1,5\n0,7\n1,7\n"))
	add(small.with("A", "1, 4\n"))
	add(bare.with("graph_labels", bare["graph_labels"]+"1\n"))
	add(small.with("node_labels", "-2147483648\n2147483647\n0\n0\n0\n0\n0\n"))
	f.Fuzz(func(t *testing.T, a, indicator, labels, nodeLabels, edgeLabels, attributes string) {
		s := files{"A": a, "graph_indicator": indicator, "graph_labels": labels}
		for part, text := range map[string]string{"node_labels": nodeLabels, "edge_labels": edgeLabels, "node_attributes": attributes} {
			if text != "" {
				s[part] = text
			}
		}
		for _, opts := range []Options{{limits: tight}, {limits: tight, NodeAttributes: true}} {
			ds, err := LoadFS(t.Context(), s.fsys("S"), "S", opts)
			if err != nil {
				if !strings.HasPrefix(err.Error(), "dataset: ") || ds != nil {
					t.Fatalf("%v, %v", ds, err)
				}
				continue
			}
			validate(t, ds)
			if ds.NodeAttributes == 0 && len(ds.NodeLabels) <= 1 && len(ds.EdgeLabels) <= 1 {
				want := naive(s, "S")
				_, want.AttributesLeftOut = s["node_attributes"]
				want.AttributesLeftOut = want.AttributesLeftOut && !opts.NodeAttributes
				if describe(ds) != describe(want) {
					t.Errorf("got %s\nwant %s", describe(ds), describe(want))
				}
			}
			if ds.FeatureWidth > 1<<12 {
				continue // a dense line of labels is slow to write
			}
			dir := t.TempDir()
			if err := WriteTU(dir, ds); err != nil {
				t.Fatal(err)
			}
			again, err := Open(t.Context(), dir, "S", opts)
			if err != nil {
				t.Fatal(err)
			}
			// What loading removed is not written.
			again.SelfLoops, again.Duplicates, again.AttributesLeftOut = ds.SelfLoops, ds.Duplicates, ds.AttributesLeftOut
			again.Empty = ds.Empty
			if len(ds.EdgeLabels) == 0 && !reflect.DeepEqual(again, ds) {
				t.Errorf("wrote %s\nread %s", describe(ds), describe(again))
			}
		}
	})
}

// FuzzZip reads arbitrary archives.
func FuzzZip(f *testing.F) {
	whole := small.zip(f, "S")
	f.Add(whole)
	f.Add(whole[:len(whole)-30])
	f.Add(whole[20:])
	f.Add([]byte{})
	f.Add([]byte("PK\x05\x06" + strings.Repeat("\x00", 18)))
	f.Add([]byte("PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00\x00\x00\x00\x00"))
	f.Add(zipOf(f, map[string]string{"../S_A.txt": "1, 2\n", "/S_graph_labels.txt": "1\n"}))
	f.Add(bare.with("A", strings.Repeat("1, 2\n", 1<<15)).zip(f, "S"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := openZip(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		src := newSource(t.Context(), "S.zip", "S", Options{limits: tight})
		if src.addZip(list) != nil {
			return
		}
		for base := range src.files {
			if strings.ContainsAny(base, "/\\") || base == ".." {
				t.Fatalf("member %q", base)
			}
		}
		ds, err := readTU(src, Options{NodeAttributes: true})
		if err != nil {
			return
		}
		validate(t, ds)
	})
}

// FuzzLocalName checks that an accepted name stays below the folder that it is
// joined to, whichever character separates folders.
func FuzzLocalName(f *testing.F) {
	for _, s := range []string{"S/S_A.txt", "S//S_A.txt", "../x", "a/../../x", "/x", `a\b`, `\\host\x`, "c:x", "", ".", "..", "a..b/..c", "a/.."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if !localName(name) {
			return
		}
		for _, n := range []string{name, strings.ReplaceAll(name, "\\", "/")} {
			if p := path.Clean("/root/" + n); p != "/root" && !strings.HasPrefix(p, "/root/") || path.IsAbs(n) || filepath.VolumeName(n) != "" {
				t.Errorf("%q is accepted and leads to %s", name, p)
			}
		}
	})
}
