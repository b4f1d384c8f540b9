package files_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/tensor/files"
)

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"":                     "",
		"1-Ä °C":               "1-Ä °C",
		"M\xfcller":            "M\uFFFDller",
		"a\x1b[31mb\x00\u009b": `a\x1b[31mb\x00\u009b`,
		"a\r\n\tb\u2028":       `a\r\n\tb\u2028`,
		"x\u202ey":             `x\u202ey`,
	} {
		if got := files.Printable(in); got != want {
			t.Errorf("%q gives %q, want %q", in, got, want)
		}
	}
	if got, want := files.Data("a\r\n\tb\x1b\u2028\xff"), "a\\r\n\tb\\x1b\\u2028\uFFFD"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := files.PrintableLines("a\nb\x1b\n"); got != "a\nb\\x1b\n" {
		t.Errorf("%q", got)
	}
}

func TestDistinct(t *testing.T) {
	got := files.Distinct("id", "y", "y_std", "y_std", "y_std_std", "id", "y\n", "y", "y_2", "M\xff")
	if got := strings.Join(got, " "); got != `id y y_std y_std_2 y_std_std id_2 y\n y_3 y_2 M`+"\uFFFD" {
		t.Error(got)
	}
}

// TestPattern: a pattern finds the file of a path, and no other.
func TestPattern(t *testing.T) {
	t.Chdir(t.TempDir())
	names := []string{"x1/a", "x[1]/a", "x[1]/b", "[[]]/a", "]/a", "^[^a]/a", "*/a", "?/a", `\[/a`, `\a/a`}
	for _, name := range names {
		err := os.MkdirAll(filepath.Dir(name), 0o755)
		if err == nil {
			err = os.WriteFile(name, nil, 0o644)
		}
		if err != nil {
			t.Skip(err) // a file system without such names
		}
	}
	for _, name := range names {
		if found, err := filepath.Glob(files.Pattern(name)); err != nil || !slices.Equal(found, []string{name}) {
			t.Errorf("%s: found %q, %v", name, found, err)
		}
	}
}

// TestApart: a file is the same by whatever name, and one that nobody reads may be written.
func TestApart(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"in.csv", "other.csv", "set/raw/A.txt"} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"link.csv": "in.csv", "dangling.csv": "gone.csv", "set/B.txt": "../other.csv", "linked": "set"} {
		if err := os.Symlink(to, link); err != nil {
			t.Skip(err)
		}
	}
	if err := os.Link("in.csv", "hard.csv"); err != nil {
		t.Skip(err)
	}
	for _, c := range []struct{ written, read, want string }{
		{"in.csv", "in.csv", "cannot write in.csv: it is the input in.csv"},
		{"x.csv,./in.csv", "in.csv", "it is the input in.csv"},
		{"link.csv", "m,in.csv", "cannot write link.csv: it is the input in.csv"},
		{"in.csv", "link.csv", "it is the input "},
		{"hard.csv", "in.csv", "it is the input "},
		{"set/raw/A.txt", "set", "it is the input "},
		{"other.csv", "set", "it is the input "},
		{"set/raw/A.txt", "linked", "it is the input "},
		{"set", "in.csv", "is a folder"},
		{"link.csv", "other.csv", "cannot write link.csv: it is a link"},
		{"dangling.csv", "other.csv", "cannot write dangling.csv: it is a link"},
		{"/dev/null", "other.csv", "cannot write /dev/null: it is a device"},
		{"new.csv,./new.csv", "other.csv", "another output has that name"},
		{"other.csv,new.csv", "in.csv,nowhere,-", ""},
		{"new.csv", "new.csv", ""},
	} {
		err := files.Apart(strings.Split(c.written, ","), strings.Split(c.read, ","))
		if err == nil && c.want != "" || err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

func TestSweep(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, name := range []string{"v.csv", ".v.csv.1234", ".v.csv.x", ".w.csv.1234", ".v.csv.journal.77"} {
		if err := os.WriteFile(name, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Sweep("v.csv"); err != nil {
		t.Fatal(err)
	}
	if left, err := filepath.Glob("*v.csv*"); err != nil || strings.Join(left, " ") != ".v.csv.journal.77 .v.csv.x v.csv" {
		t.Errorf("%v, %v", left, err)
	}
}
