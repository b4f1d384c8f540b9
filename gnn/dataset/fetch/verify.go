package fetch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
	"github.com/specmatch/specmatch/gnn/dataset/records"
)

// SumError reports a file with another sum than the recorded one.
type SumError struct {
	Path      string
	Got, Want string // SHA-256, hexadecimal
}

func (e *SumError) Error() string {
	return fmt.Sprintf("%s: SHA-256 is %s, want %s", e.Path, e.Got, e.Want)
}

// Verification is the result of [Verify].
type Verification struct {
	Path string
	Sum  string // SHA-256 of the file
	// Source says what the sum was compared with: "recorded" (NAME.zip.sha256),
	// "SHA256SUMS" (a list next to the file or one folder up), or "" for nothing.
	Source string
	Graphs int // how many were read
}

// List returns the names of the sets in dir: those of [dataset.List], then the tables of
// MoleculeNet.
func List(dir string) ([]string, error) {
	names, err := dataset.List(dir)
	for _, set := range moleculenet.Sets() {
		if _, err := moleculenet.Find(dir, set.Name); err == nil {
			names = append(names, set.Name)
		}
	}
	return names, err
}

// Find returns the path of a set in dir: an archive, a folder or a table. If there is none,
// the error wraps [fs.ErrNotExist].
func Find(dir, name string) (string, error) {
	if _, err := moleculenet.ByName(name); err == nil {
		return moleculenet.Find(dir, name)
	}
	return dataset.Find(dir, name)
}

// Verify checks a data set in dir and reads all of it. It compares the SHA-256 sum of an
// archive or a table with the recorded one (a [*SumError] if they differ), and the members of
// an archive with their checksums. Recorded sums are in a file whose name ends in .sha256, or
// in lists SHA256SUMS in dir and its parent, in the format of sha256sum. Without any, and for
// a folder, Verification.Source is empty.
func Verify(ctx context.Context, dir, name string) (v Verification, err error) {
	v.Path, _ = Find(dir, name)
	set, unknown := moleculenet.ByName(name)
	if unknown == nil || filepath.Ext(v.Path) == ".zip" {
		f, err := fileOf(dir, name)
		if err != nil {
			return v, err
		}
		if unknown == nil {
			f.path, err = moleculenet.Find(dir, name)
			if err != nil {
				return v, err
			}
			f.check = func(ctx context.Context, path string) error {
				return set.Check(ctx, path, filepath.Base(path))
			}
		}
		v, err = f.verify(ctx)
		if err != nil {
			return v, err
		}
	}
	if unknown == nil {
		m, err := moleculenet.Open(ctx, dir, name)
		if err != nil {
			return v, err
		}
		v.Graphs = len(m.Graphs)
		return v, nil
	}
	ds, err := records.Open(ctx, dir, name, dataset.Options{NodeAttributes: true})
	if err != nil {
		return v, err
	}
	v.Graphs = len(ds.Graphs)
	return v, nil
}

// verify compares the sum of the file with the recorded one, and checks its contents.
func (f *file) verify(ctx context.Context) (v Verification, err error) {
	v.Path = f.path
	v.Sum, err = dataset.SumFile(ctx, f.path)
	if err != nil {
		return v, fmt.Errorf("dataset: %w", err)
	}
	var listed string
	listed, v.Source, err = wantedSum(f.path)
	if err != nil {
		return v, fmt.Errorf("dataset: %w", err)
	}
	if listed != "" && v.Sum != listed {
		return v, fmt.Errorf("dataset: %w (%s)", &SumError{f.path, v.Sum, listed}, v.Source)
	}
	if err := f.check(ctx, f.path); err != nil {
		return v, fmt.Errorf("dataset: %s: %w", f.path, err)
	}
	return v, nil
}

// wantedSum returns the recorded sum of the file and its source.
func wantedSum(path string) (sum, source string, err error) {
	dir, base := filepath.Split(path)
	folder, err := filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	for _, list := range []struct{ file, entry, source string }{
		{path + ".sha256", base, "recorded"},
		{filepath.Join(dir, "SHA256SUMS"), base, "SHA256SUMS"},
		{filepath.Join(dir, "..", "SHA256SUMS"), filepath.Base(folder) + "/" + base, "SHA256SUMS"},
	} {
		b, err := os.ReadFile(list.file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", "", err
		}
		if sum := parseSums(string(b), list.entry); sum != "" {
			return sum, list.source, nil
		}
		if err == nil && list.source == "recorded" {
			return "", "", fmt.Errorf("%s: no SHA-256 sum of %s in it", list.file, base)
		}
	}
	return "", "", nil
}

// parseSums returns the sum, in lower case, on the line "sum  name" or "sum *name" of a list
// made by sha256sum, "" if there is none.
func parseSums(list, name string) string {
	for line := range strings.Lines(list) {
		sum, file, _ := strings.Cut(strings.TrimRight(line, "\r\n"), " ")
		if isSum(sum) && (file == " "+name || file == "*"+name) {
			return strings.ToLower(sum)
		}
	}
	return ""
}

func isSum(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == sha256.Size
}

// writeSum records the sum of the file at path.
func writeSum(path, sum string) error {
	tmp := path + ".sha256.tmp"
	if err := os.WriteFile(tmp, []byte(sum+"  "+filepath.Base(path)+"\n"), 0o666); err != nil {
		return err
	}
	return os.Rename(tmp, path+".sha256")
}
