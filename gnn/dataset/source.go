package dataset

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Limits bound what reading a data set may cost, whatever its files claim
// about themselves. A zero field stands for the default.
type Limits struct {
	// FileBytes bounds the uncompressed size of one file. Default 1 GiB
	// (COLLAB's edge list, the largest of the usual sets, has 346 MiB).
	FileBytes int64
	// TotalBytes bounds the uncompressed size of all files read. Default 2 GiB.
	TotalBytes int64
	// Ratio bounds how much larger a zip member is than its compressed form,
	// once it exceeds 16 MiB. Default 200 (COLLAB's is 6; DEFLATE's best 1032).
	Ratio int64
}

// ratioFloor is the size below which a member may compress as well as it
// likes: a list of equal labels reaches DEFLATE's best ratio honestly.
const ratioFloor = 16 << 20

// maxMembers bounds the entries of an archive; TU archives have about ten.
const maxMembers = 1000

// WithDefaults returns the limits with defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	if l.FileBytes <= 0 {
		l.FileBytes = 1 << 30
	}
	if l.TotalBytes <= 0 {
		l.TotalBytes = 2 << 30
	}
	if l.Ratio <= 0 {
		l.Ratio = 200
	}
	return l
}

// ErrTooLarge is wrapped by errors about data beyond [Limits].
var ErrTooLarge = errors.New("data set too large")

// A source is an opened data set: a zip archive or a folder, read through the
// names of its files and never unpacked.
type source struct {
	ctx    context.Context // of one call that reads the source
	name   string          // of the data set
	limits Limits
	total  int64                  // bytes read so far
	sum    func(file, sum string) // Options.Sum

	root    string               // path of the archive or folder; "." for an fs.FS
	closer  io.Closer            // what the source holds open, or nil
	members map[string]*zip.File // by base name; nil for a folder
	folder  fs.FS
}

func (s *source) Close() error {
	if s.closer == nil {
		return nil
	}
	return s.closer.Close()
}

// newSource returns a source without files.
func newSource(ctx context.Context, name string, opts Options) *source {
	return &source{ctx: ctx, name: name, limits: opts.Limits.WithDefaults(), sum: opts.Sum}
}

// openSource opens NAME.zip or the folder NAME.
func openSource(ctx context.Context, p string, opts Options) (*source, error) {
	info, err := os.Stat(p)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	// "." and "NAME/.." have a name only once they are absolute.
	abs, err := filepath.Abs(p)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	name, isZip := cutZip(filepath.Base(abs))
	s := newSource(ctx, name, opts)
	s.root = p
	switch {
	case info.IsDir() && isZip:
		return nil, fmt.Errorf("dataset: %s: is a folder, want a zip archive", p)
	case info.IsDir():
		// A Root refuses symbolic links that lead out of the folder.
		root, err := os.OpenRoot(p)
		if err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		s.closer, s.folder = root, root.FS()
		return s, nil
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("dataset: %s: is neither a file nor a folder (%v)", p, info.Mode().Type())
	case !isZip:
		return nil, fmt.Errorf("dataset: %s: is not a data set; give NAME.zip or the folder that holds NAME_A.txt", p)
	}
	f, err := os.Open(p)
	if err != nil {
		return nil, fmt.Errorf("dataset: %w", err)
	}
	files, err := openZip(f, info.Size())
	if err == nil {
		s.members, err = index(files, name)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("dataset: %s: %w", p, err)
	}
	s.closer = f
	return s, nil
}

func cutZip(base string) (name string, ok bool) {
	if ext := filepath.Ext(base); strings.EqualFold(ext, ".zip") {
		return base[:len(base)-len(ext)], true
	}
	return base, false
}

// openZip returns the files in an archive, after refusing what no honest data
// set contains.
func openZip(r io.ReaderAt, size int64) ([]*zip.File, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a complete zip archive: %w", err)
	}
	if len(z.File) > maxMembers {
		return nil, fmt.Errorf("%d members, limit %d: %w", len(z.File), maxMembers, ErrTooLarge)
	}
	files := z.File[:0]
	for _, f := range z.File {
		if !localName(f.Name) {
			return nil, fmt.Errorf("member %q has a name that leads out of the archive", f.Name)
		}
		if !strings.HasSuffix(f.Name, "/") { // not a folder
			files = append(files, f)
		}
	}
	return files, nil
}

// index returns the members of an archive by base name. Of the data set's own
// files there may be only one each.
func index(files []*zip.File, name string) (map[string]*zip.File, error) {
	members := make(map[string]*zip.File, len(files))
	for _, f := range files {
		// Old official archives write NAME//NAME_A.txt, hence the Clean. What
		// macOS adds (__MACOSX/NAME/._NAME_A.txt) has other base names.
		base := path.Base(path.Clean(f.Name))
		if other, ok := members[base]; ok && strings.HasPrefix(base, name+"_") {
			return nil, fmt.Errorf("members %q and %q have the same file name", other.Name, f.Name)
		}
		members[base] = f
	}
	return members, nil
}

// localName reports whether a zip member's name stays below the folder it would
// be unpacked in, on any operating system.
func localName(name string) bool {
	return name != "" && name[0] != '/' && !strings.ContainsAny(name, "\\:\x00") &&
		!slices.Contains(strings.Split(name, "/"), "..")
}

// file returns the name of one file of the data set and its path for messages.
func (s *source) file(part string) (base, display string) {
	base = s.name + "_" + part + ".txt"
	if f, ok := s.members[base]; ok {
		return base, s.root + "/" + f.Name
	}
	return base, filepath.Join(s.root, base)
}

// has reports whether the data set has a file.
func (s *source) has(part string) bool {
	base, _ := s.file(part)
	if s.members != nil {
		return s.members[base] != nil
	}
	// Whatever is there, even a broken link, is for open to judge.
	_, err := fs.Lstat(s.folder, base)
	return err == nil
}

// open opens one file of the data set for scanning, within the limits.
func (s *source) open(part string) (*scanner, io.Closer, error) {
	base, display := s.file(part)
	var rc io.ReadCloser
	var err error
	if s.members != nil {
		f := s.members[base]
		if f == nil {
			return nil, nil, fmt.Errorf("dataset: %s: no member %s%s: %w", s.root, base, s.hint(), fs.ErrNotExist)
		}
		if rc, err = s.openMember(f); err != nil {
			err = fmt.Errorf("dataset: %s: %w", display, err)
		}
	} else {
		rc, err = s.openFile(base, display)
	}
	if err != nil {
		return nil, nil, err
	}
	return newScanner(display, rc), rc, nil
}

func (s *source) openMember(f *zip.File) (io.ReadCloser, error) {
	if !f.Mode().IsRegular() {
		return nil, fmt.Errorf("is not a regular file (%v)", f.Mode().Type())
	}
	if f.Flags&1 != 0 {
		return nil, errors.New("is encrypted")
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	limit := s.limits.FileBytes
	// Dividing rather than multiplying: the sizes are what the archive says.
	if c := int64(min(f.CompressedSize64, 1<<62)); c < limit/s.limits.Ratio {
		limit = min(limit, max(ratioFloor, c*s.limits.Ratio))
	}
	return s.limit(path.Base(path.Clean(f.Name)), r, limit), nil
}

func (s *source) openFile(base, display string) (io.ReadCloser, error) {
	// Look before opening: opening a named pipe would block.
	info, err := fs.Stat(s.folder, base)
	var e *fs.PathError
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("dataset: %s: no file %s%s: %w", s.root, base, s.hint(), fs.ErrNotExist)
	case errors.As(err, &e): // whose operation is a system call's name
		return nil, fmt.Errorf("dataset: %s: %w", display, e.Err)
	case err != nil:
		return nil, fmt.Errorf("dataset: %s: %w", display, err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("dataset: %s: is not a regular file (%v)", display, info.Mode().Type())
	}
	f, err := s.folder.Open(base)
	if err != nil {
		return nil, fmt.Errorf("dataset: %s: %w", s.root, err)
	}
	return s.limit(base, f, s.limits.FileBytes), nil
}

// hint names the data set that seems to be inside, for a file that was renamed.
func (s *source) hint() string {
	var bases []string
	if s.members != nil {
		for base := range s.members {
			bases = append(bases, base)
		}
	} else {
		entries, _ := fs.ReadDir(s.folder, ".")
		for _, e := range entries {
			bases = append(bases, e.Name())
		}
	}
	slices.Sort(bases)
	for _, base := range bases {
		if name, ok := strings.CutSuffix(base, "_A.txt"); ok && name != s.name {
			return fmt.Sprintf(" (it holds %s: has it been renamed from %s?)", base, name)
		}
	}
	return ""
}

// limit returns r, the file base, with an error, rather than an end, at the limit of
// the file or of the set. Closing it tells the sum of what was read.
func (s *source) limit(base string, r io.ReadCloser, file int64) io.ReadCloser {
	return &limitReader{r, s, base, min(file, s.limits.TotalBytes-s.total), sha256.New()}
}

type limitReader struct {
	io.ReadCloser
	s    *source
	base string
	left int64
	sum  hash.Hash
}

func (l *limitReader) Read(p []byte) (int, error) {
	if err := l.s.ctx.Err(); err != nil {
		return 0, err
	}
	if int64(len(p)) > l.left {
		p = p[:l.left+1] // one byte more than allowed tells "too long" from "just fits"
	}
	n, err := l.ReadCloser.Read(p)
	l.sum.Write(p[:n])
	l.left -= int64(n)
	l.s.total += int64(n)
	if l.left < 0 {
		return n, fmt.Errorf("%w: limits: file %d bytes, set %d bytes, zip member %d times its compressed size above %d bytes",
			ErrTooLarge, l.s.limits.FileBytes, l.s.limits.TotalBytes, l.s.limits.Ratio, int64(ratioFloor))
	}
	return n, err
}

func (l *limitReader) Close() error {
	if l.s.sum != nil {
		l.s.sum(l.base, hex.EncodeToString(l.sum.Sum(nil)))
	}
	return l.ReadCloser.Close()
}

// SumFile returns the SHA-256 sum of a regular file, in hexadecimal.
func SumFile(ctx context.Context, path string) (string, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	for err == nil {
		if err = ctx.Err(); err == nil {
			_, err = io.CopyN(h, f, 1<<20)
		}
	}
	if err != io.EOF {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// CheckArchive reads all members of a data set's archive, whose checksums are
// verified on the way, and misses none that every set has: no checksum covers the
// names.
func CheckArchive(ctx context.Context, path, name string) error {
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
