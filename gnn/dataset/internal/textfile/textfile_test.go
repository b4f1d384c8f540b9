package textfile

import (
	"errors"
	"io"
	"strings"
	"testing"

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
