package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// knownSums are the SHA-256 sums of official archives. It is empty: nobody
// publishes them, and none could be computed from the site itself when this was
// written. Fetch therefore records the sum of what it got (see [Verify]).
var knownSums = map[string]string{}

// SumError reports an archive that is not the wanted one.
type SumError struct {
	Path      string // of the file, or its URL
	Got, Want string // SHA-256, hexadecimal
}

func (e *SumError) Error() string {
	return fmt.Sprintf("%s: SHA-256 is %s, want %s", e.Path, e.Got, e.Want)
}

// Verification is what [Verify] found out about an archive.
type Verification struct {
	Path string
	Sum  string // SHA-256 of the file
	// Source says what the sum was compared with: "official" (known to this
	// package), "recorded" (NAME.zip.sha256), "SHA256SUMS" (a list beside the
	// archive or one folder up) or "" if there is nothing to compare with.
	Source string
}

// Verify checks the archive dir/NAME.zip: its SHA-256 sum against the known or
// recorded one (a [*SumError] if they differ), the checksums that the archive
// itself has of its members, and that the members are there without which a set
// is none. Sums are looked for in this package, in dir/NAME.zip.sha256 and in
// lists SHA256SUMS of dir and its parent, in the format of sha256sum; without
// any, only the members are checked and Verification.Source is empty.
func Verify(ctx context.Context, dir, name string) (Verification, error) {
	if err := checkName(name); err != nil {
		return Verification{}, err
	}
	return verifyFile(ctx, filepath.Join(dir, name+".zip"), func(path string) error { return checkArchive(ctx, path, name) })
}

func verifyFile(ctx context.Context, path string, check func(path string) error) (v Verification, err error) {
	v.Path = path
	if v.Sum, err = SumFile(ctx, path); err != nil {
		return v, fmt.Errorf("dataset: %w", err)
	}
	want, source, err := wantedSum(path)
	if err != nil {
		return v, err
	}
	v.Source = source
	if want != "" && v.Sum != want {
		return v, fmt.Errorf("dataset: %w (%s)", &SumError{path, v.Sum, want}, source)
	}
	if err := check(path); err != nil {
		return v, fmt.Errorf("dataset: %s: %w", path, err)
	}
	return v, nil
}

// wantedSum returns the sum that the archive should have and who says so.
func wantedSum(path string) (sum, source string, err error) {
	base := filepath.Base(path)
	name, _ := cutZip(base)
	if sum := knownSums[name]; sum != "" {
		return sum, "official", nil
	}
	dir := filepath.Dir(path)
	for _, list := range []struct{ file, entry, source string }{
		{path + ".sha256", base, "recorded"},
		{filepath.Join(dir, "SHA256SUMS"), base, "SHA256SUMS"},
		{filepath.Join(dir, "..", "SHA256SUMS"), filepath.Base(absDir(dir)) + "/" + base, "SHA256SUMS"},
	} {
		sum, err := readSum(list.file, list.entry)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return "", "", fmt.Errorf("dataset: %w", err)
		case sum != "":
			return sum, list.source, nil
		case list.source == "recorded":
			return "", "", fmt.Errorf("dataset: %s: no SHA-256 sum of %s in it", list.file, base)
		}
	}
	return "", "", nil
}

func absDir(dir string) string {
	if abs, err := filepath.Abs(dir); err == nil {
		return abs
	}
	return dir
}

// maxSumFile bounds the size of a list of sums.
const maxSumFile = 1 << 20

// readSum returns the sum of a file in a list made by sha256sum; "" if the list
// does not name it.
func readSum(list, name string) (string, error) {
	f, err := os.Open(list)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxSumFile))
	return parseSums(string(b), name), err
}

// parseSums finds the line "sum  name" or "sum *name" of a list and returns the
// sum in lower case. Other lines are none of our business.
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

// writeSum records the sum of the archive at path.
func writeSum(path, sum string) error {
	tmp := path + ".sha256.tmp"
	if err := os.WriteFile(tmp, []byte(sum+"  "+filepath.Base(path)+"\n"), 0o666); err != nil {
		return err
	}
	return os.Rename(tmp, path+".sha256")
}

// SumFile returns the SHA-256 sum of a regular file, in hexadecimal.
func SumFile(ctx context.Context, path string) (string, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, cancelled{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// cancelled reads r until ctx is cancelled.
type cancelled struct {
	ctx context.Context
	r   io.Reader
}

func (c cancelled) Read(p []byte) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.Read(p)
}

// checkArchive reads all members of a data set's archive, whose checksums are
// verified on the way, and misses none that every set has: no checksum covers the
// names.
func checkArchive(ctx context.Context, path, name string) error {
	f, size, err := openRegular(path)
	if err != nil {
		return err
	}
	defer f.Close()
	files, err := openZip(f, size)
	if err != nil {
		return err
	}
	s := newSource(ctx, name, Options{})
	if s.members, err = index(files, name); err != nil {
		return err
	}
	for _, m := range files {
		r, err := s.openMember(m)
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	needed := []string{"A", "graph_indicator"}
	if !s.has("graph_attributes") { // regression targets
		needed = append(needed, "graph_labels")
	}
	for _, part := range needed {
		if base, _ := s.file(part); !s.has(part) {
			return fmt.Errorf("no member %s%s", base, s.hint())
		}
	}
	return nil
}

// openRegular opens a file after making sure that opening cannot block.
func openRegular(path string) (*os.File, int64, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s: is not a regular file (%v)", path, info.Mode().Type())
	}
	f, err := os.Open(path)
	return f, info.Size(), err
}
