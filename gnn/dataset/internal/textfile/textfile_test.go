package textfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/klauspost/compress/zstd"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// TestLimit: as much as the limit is read, and more is an error.
func TestLimit(t *testing.T) {
	for limit, want := range map[int64]error{5: nil, 4: dataset.ErrTooLarge} {
		text, err := Open(t.Context(), "n", strings.NewReader("0,1\n\n"))
		if err != nil {
			t.Fatal(err)
		}
		text.limit = limit
		if _, err := io.ReadAll(text); !errors.Is(err, want) {
			t.Errorf("5 bytes of %d: error %v, want %v", limit, err, want)
		}
	}
}

// TestMark: a byte-order mark, with which spreadsheets begin a table, is no part of it.
func TestMark(t *testing.T) {
	for text, want := range map[string]string{"\uFEFFu,v\n": "u,v\n", "u\uFEFF": "u\uFEFF", "\xEF\xBB": "\xEF\xBB", "": ""} {
		r, err := Open(t.Context(), "n", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != want {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
}

// TestEncodings: text in UTF-16 is read without a mark, and a header in Latin-1 is refused.
func TestEncodings(t *testing.T) {
	const table = "smiles,größe\nC,😀\n"
	for name, order := range map[string]binary.AppendByteOrder{"little": binary.LittleEndian, "big": binary.BigEndian} {
		var text []byte
		for _, unit := range utf16.Encode([]rune(table)) {
			text = order.AppendUint16(text, unit)
		}
		r, err := Open(t.Context(), "n", bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(r); err != nil || string(got) != table {
			t.Errorf("%s-endian: %q, %v", name, got, err)
		}
	}
	r, err := Open(t.Context(), "n", strings.NewReader("smiles,gr\xf6\xdfe\nC,1\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Rows(); err == nil || !strings.Contains(err.Error(), "n:1: the byte 0xf6 at column 10 is not UTF-8, but perhaps Latin-1") {
		t.Errorf("Latin-1: %v", err)
	}
	if err := CheckUTF8("a\uFFFD"); err != nil {
		t.Errorf("a replacement character: %v", err)
	}
	if err := CheckUTF8("\uFFFD\xe4"); err == nil || !strings.Contains(err.Error(), "0xe4 at column 4") {
		t.Errorf("one before Latin-1: %v", err)
	}
}

// TestBudget: a line that is too long costs no other line, and one that does not end ends
// the reading. What is packed is told by its beginning, and what is no text is named.
func TestBudget(t *testing.T) {
	defer func(a, b int) { LongestLine, endOfPatience = a, b }(LongestLine, endOfPatience)
	LongestLine, endOfPatience = 1<<10, 1<<20
	read := func(text string) (got string) {
		r, err := Open(t.Context(), "n", strings.NewReader(text))
		if err != nil {
			return err.Error()
		}
		rows, err := r.Rows()
		for err == nil {
			if err = rows.Next(); err == nil {
				got += strings.Join(rows.Row, "|") + ";"
			} else if bad, ok := err.(*dataset.SyntaxError); ok {
				got, err = got+fmt.Sprintf("%d %.11s;", bad.Line, bad.Reason), nil
			}
		}
		return got + err.Error()
	}
	var packed bytes.Buffer
	z, err := zstd.NewWriter(&packed)
	if err != nil {
		t.Fatal(err)
	}
	z.Write([]byte("a,b\n1,2\n"))
	z.Close()
	long, longer := strings.Repeat("x", 1<<10), strings.Repeat("x", 2<<20)
	for text, want := range map[string]string{
		"a,b\n1,2\n" + long + ",2\n3,4\n":               "1|2;3 longer than;3|4;EOF",
		"a,b\n1,2\n\"" + long[1:] + "\n" + "3,4\n5,6\n": "1|2;3 longer than;3|4;5|6;EOF",
		"a,b\n\"1\n" + long + ",2\n3,4\n":               "2 a quote tha;3 longer than;3|4;EOF",
		"a,b\n\"1\n2\",2\n3,\"4\n5\",\n":                "1\n2|2;4 wrong numbe;5 this line h;EOF",
		"a,b\n" + longer + "\n":                         "dataset: n:2: longer than 1024 bytes, and even than 1048576, where the reading ends",
		packed.String():                                 "1|2;EOF",
		"PK\x03\x04":                                    "dataset: n: is a zip archive: unpack it, or name it .zip if it is a set in TUDataset's format",
		"a;b\n1,5;\"2\"\"\"\n":                          "1,5|2\";EOF",
	} {
		if got := read(text); got != want {
			t.Errorf("%.20q: %q, want %q", text, got, want)
		}
	}
}
