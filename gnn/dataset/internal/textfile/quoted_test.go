package textfile

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset"
)

// readRows returns the header, the rows and the errors of a table.
func readRows(t *testing.T, text string) (got []string) {
	t.Helper()
	file, err := Open(t.Context(), "n", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := file.Rows()
	if err != nil {
		return []string{err.Error()}
	}
	got = append(got, strings.Join(rows.Header, "|"))
	for {
		err := rows.Next()
		bad, isBad := err.(*dataset.SyntaxError)
		switch {
		case isBad:
			got = append(got, fmt.Sprintf("%d: %.30s", bad.Line, bad.Reason))
		case err != nil:
			return got
		default:
			got = append(got, strings.Join(rows.Row, "|"))
		}
	}
}

// TestQuotes: a quote that does not begin a field is a character. One that does is closed, or costs its row, and no
// line that may be of that row passes for another with a quote that is a character. A row that begins with the last of
// these lines, and whose quotes are closed, is read.
func TestQuotes(t *testing.T) {
	const (
		isOpen   = "a quote that opens here is not"
		isBehind = "text stands behind the quote t"
		isTail   = "this line has a quote that may"
		isLong   = "2: wrong number of fields: 3 wher"
	)
	for text, want := range map[string][]string{
		"a\tb\n2\"-hydroxy\tC\n3',4\"-diol\tCC\n":    {"a|b", `2"-hydroxy|C`, `3',4"-diol|CC`},
		"a,b\n2\"-hydroxy,C\n\"3',4\"\"-diol\",CC\n": {"a|b", `2"-hydroxy|C`, `3',4"-diol|CC`},
		"a,b\na \"b\",5\"\n\"x\", \"y\"\n":           {"a|b", `a "b"|5"`, `x| "y"`},
		"a,5\" tube\n1,2\n":                          {`a|5" tube`, "1|2"},
		"a;5\" tube;c, d\n1;2;3\n":                   {`a|5" tube|c, d`, "1|2|3"},
		"a,b\n\"5\" tube,1\n2,3\n":                   {"a|b", "2: " + isBehind, "2|3"},
		"a,b\n\"5 inch,1\n2,3\n":                     {"a|b", "2: " + isOpen, "2|3"},
		"a,b\n\"5 inch,1\n2,3\n4\"x,5\n6\",7\n":      {"a|b", "2: " + isOpen, "2|3", "4: " + isTail, "5: " + isTail},
		"a,b\n\"first\na \"b\" c\nd\nlast\",1\nx\",2\n": {
			"a|b", "2: " + isOpen, "3: " + isTail, "4: wrong number of fields: 1 wher", "5: " + isTail, `x"|2`,
		},
		"a,b\n\"3,1\n\"x\ny\",2\nz,3\n":             {"a|b", "2: " + isOpen, "x\ny|2", "z|3"},
		"a,b\n\"3\n5\"\"x,1\n\"y\n2,3\n":            {"a|b", "2: " + isOpen, "3: " + isTail, "4: " + isOpen, "2|3"},
		"a,b\n\"3,1\n\"x\",1\n2\"-x,3\n":            {"a|b", "2: " + isOpen, "x|1", `2"-x|3`},
		"a,b\nx,\"1\n2\",3\n4,5\n":                  {"a|b", isLong, "3: " + isTail, "4|5"},
		"a,b\n\"1\",\"2\n\"\nx\",3\n4,5\n":          {"a|b", "1|2\n", `x"|3`, "4|5"},
		"a,b\n\"1\",,\"2\n\"\nx,3\n":                {"a|b", isLong, "3: " + isOpen, "x|3"},
		"a,b\n\"\"\"x\"\"\",\"\"\r\n\"\n\",2\r\r\n": {"a|b", `"x"|`, "\n|2"},
	} {
		got := readRows(t, text)
		if !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// TestQuotesAsCSV: what encoding/csv reads without LazyQuotes is read as it reads it.
func TestQuotesAsCSV(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	compared := 0
	for range 20000 {
		text := ""
		isQuoted := false
		for range 1 + rng.IntN(12) {
			signs := "\"\",,x\n"
			if isQuoted {
				signs = "\"\",x\n;\t"
			}
			sign := signs[rng.IntN(len(signs))]
			text += string(sign)
			isQuoted = isQuoted != (sign == '"')
		}
		r := csv.NewReader(strings.NewReader(text))
		r.FieldsPerRecord = -1
		all, err := r.ReadAll()
		if err != nil {
			continue
		}
		isUniform := !slices.ContainsFunc(all, func(row []string) bool { return len(row) != len(all[0]) })
		if len(all) == 0 || !isUniform {
			continue
		}
		compared++
		var want []string
		for _, row := range all {
			want = append(want, strings.Join(row, "|"))
		}
		if got := readRows(t, text); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if compared < 1000 {
		t.Errorf("%d texts compared", compared)
	}
}

// TestColumns: columns that nobody asks for may have no name or the same one.
func TestColumns(t *testing.T) {
	for text, c := range map[string]struct {
		name, want string
		place      int
	}{
		"smiles,y,,\nCCO,1,,\n":              {name: "y", place: 1},
		"smiles,note,note,y\nC,a,b,1\n":      {name: "y", place: 3},
		"smiles,note,note, y\n":              {name: "note", want: `n:1: two columns named "note", the columns 2 and 3: rename one`},
		"\n\nsmiles,,\n":                     {name: "", want: `n:3: two columns named "", the columns 2 and 3`},
		"sep=;\na,b;c\n":                     {name: "c", place: 1},
		"\"sep=|\"\na,b|c\n":                 {name: "c", place: 1},
		"SEP=\t\na;b;d\tc\n":                 {name: "c", place: 1},
		"sep=;\n":                            {want: "want a header"},
		"id|smiles|y\n1|C|2\n":               {want: `n:1: "id|smiles|y": columns are separated by commas, semicolons or tabs, and | is none of them: write a line sep=| above this one`},
		"id|x,y\n":                           {name: "y", place: 1},
		"id|x\nC\n":                          {name: "id|x"},
		"sep=;;\na,b;c\n":                    {name: "c", place: 1},
		"\"a \"\"x;y;z;w\"\" b\",smiles,y\n": {name: "y", place: 2},
		"sep=;\nsmiles;z\n":                  {name: "y", want: `n:2: "smiles,z": no column "y"`},
		"smiles,\"y, nM\"\n":                 {name: "y", want: `did you mean "y, nM"? In a list, write it as '"y, nM"'`},
		"smiles,\"note, free\"\n":            {name: "note", want: `In a list, write it as '"note, free"'`},
		"smiles,\"3',4\"\"-diol, free\"\n":   {name: "free", want: `In a list, write it as '"3'\'',4""-diol, free"'`},
	} {
		file, err := Open(t.Context(), "n", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		rows, err := file.Rows()
		place := 0
		if err == nil {
			place, err = rows.Column(c.name)
		}
		if c.want == "" && (err != nil || place != c.place) {
			t.Errorf("%q: column %d, %v; want %d", text, place, err, c.place)
		}
		if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: %v, want %s", text, err, c.want)
		}
	}
}
