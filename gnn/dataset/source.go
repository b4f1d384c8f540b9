package dataset

import (
	"archive/zip"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// MaxFileBytes bounds the uncompressed size of a file, whatever it claims about itself.
// COLLAB's edge list, the largest of the usual sets, has 346 MiB.
const MaxFileBytes = 1 << 30

// ErrTooLarge is wrapped by errors about data beyond the bounds of this package.
var ErrTooLarge = errors.New("data set too large")

// limits bound what reading a data set may cost. A zero field stands for the default.
type limits struct {
	file  int64 // bytes of one file; MaxFileBytes
	total int64 // bytes of all files; 2 GiB
	// ratio bounds how much larger a zip member is than its compressed form; 200
	// (COLLAB's is 6; DEFLATE's best 1032).
	ratio int64
}

const (
	// ratioFloor is the size below which a member may have any ratio: a list of equal
	// labels reaches DEFLATE's best ratio honestly.
	ratioFloor = 16 << 20
	maxMembers = 1000 // of an archive; TU archives have about ten
)

// A source is an opened data set: a zip archive or a folder, read through the
// names of its files and never unpacked.
type source struct {
	ctx    context.Context // of the call that reads the source
	name   string          // of the data set
	limits limits
	total  int64                  // bytes read so far
	sum    func(file, sum string) // Options.Sum

	root   string // path of the archive or folder
	closer io.Closer
	kind   string // what the files are called in messages
	files  map[string]sourceFile
}

// A sourceFile is one file of a source, by its name without folders.
type sourceFile struct {
	path  string // for messages
	limit int64  // in bytes
	open  func() (io.ReadCloser, error)
}

// newSource returns a source without files.
func newSource(ctx context.Context, root, name string, opts Options) *source {
	l := limits{
		file:  cmp.Or(opts.limits.file, MaxFileBytes),
		total: cmp.Or(opts.limits.total, 2<<30),
		ratio: cmp.Or(opts.limits.ratio, 200),
	}
	return &source{
		ctx:    ctx,
		root:   root,
		name:   name,
		limits: l,
		sum:    opts.Sum,
		files:  map[string]sourceFile{},
	}
}

// openSource opens the archive or folder at path p.
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
	name := filepath.Base(abs)
	isZip := false
	if ext := filepath.Ext(name); strings.EqualFold(ext, ".zip") {
		name = name[:len(name)-len(ext)]
		isZip = true
	}
	s := newSource(ctx, p, name, opts)
	switch {
	case info.IsDir() && isZip:
		return nil, fmt.Errorf("dataset: %s: is a folder, want a zip archive", p)
	case info.IsDir():
		var root *os.Root
		root, err = os.OpenRoot(p)
		if err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		s.closer = root
		err = s.addFolder(root.FS())
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("dataset: %s: is neither a file nor a folder (%v)", p, info.Mode().Type())
	case !isZip:
		return nil, fmt.Errorf(
			"dataset: %s: is not a data set; give NAME.zip or the folder that holds NAME_A.txt",
			p,
		)
	default:
		var f *os.File
		f, err = os.Open(p)
		if err != nil {
			return nil, fmt.Errorf("dataset: %w", err)
		}
		s.closer = f
		var files []*zip.File
		files, err = openZip(f, info.Size())
		if err == nil {
			err = s.addZip(files)
		}
	}
	if err != nil {
		s.closer.Close()
		return nil, fmt.Errorf("dataset: %s: %w", p, err)
	}
	return s, nil
}

// addFolder adds the files of a folder.
func (s *source) addFolder(folder fs.FS) error {
	entries, err := fs.ReadDir(folder, ".")
	s.kind = "file"
	for _, e := range entries {
		base := e.Name()
		s.files[base] = sourceFile{
			filepath.Join(s.root, base),
			s.limits.file,
			func() (io.ReadCloser, error) {
				// Look before opening: opening a named pipe would block.
				info, err := fs.Stat(folder, base)
				if err == nil && !info.Mode().IsRegular() {
					err = fmt.Errorf("is not a regular file (%v)", info.Mode().Type())
				}
				if err != nil {
					return nil, err
				}
				return folder.Open(base)
			}}
	}
	return err
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

// addZip adds the members of an archive. Each of the data set's own files may occur only
// once.
func (s *source) addZip(files []*zip.File) error {
	s.kind = "member"
	for _, f := range files {
		// Old official archives write NAME//NAME_A.txt, hence the Clean. What
		// macOS adds (__MACOSX/NAME/._NAME_A.txt) has other base names.
		base := path.Base(path.Clean(f.Name))
		if earlier, ok := s.files[base]; ok && strings.HasPrefix(base, s.name+"_") {
			return fmt.Errorf("members %q and %q have the same file name",
				strings.TrimPrefix(earlier.path, s.root+"/"), f.Name)
		}
		s.files[base] = s.member(f)
	}
	return nil
}

// member returns the file that a member of an archive is.
func (s *source) member(f *zip.File) sourceFile {
	limit := s.limits.file
	// Dividing rather than multiplying: the sizes are what the archive says.
	if c := int64(min(f.CompressedSize64, 1<<62)); c < limit/s.limits.ratio {
		limit = min(limit, max(ratioFloor, c*s.limits.ratio))
	}
	return sourceFile{s.root + "/" + f.Name, limit, func() (io.ReadCloser, error) {
		switch {
		case !f.Mode().IsRegular():
			return nil, fmt.Errorf("is not a regular file (%v)", f.Mode().Type())
		case f.Flags&1 != 0:
			return nil, errors.New("is encrypted")
		}
		return f.Open()
	}}
}

// localName reports whether a zip member's name stays below the folder it would
// be unpacked in, on any operating system.
func localName(name string) bool {
	return name != "" && name[0] != '/' && !strings.ContainsAny(name, "\\:\x00") &&
		!slices.Contains(strings.Split(name, "/"), "..")
}

// base returns the name of one file of the data set.
func (s *source) base(part string) string { return s.name + "_" + part + ".txt" }

// path returns the path of a file of the data set, for messages.
func (s *source) path(part string) string { return s.files[s.base(part)].path }

// bad returns an error about a line of a file of the data set.
func (s *source) bad(part string, line int, value, format string, args ...any) error {
	return &SyntaxError{s.path(part), line, value, fmt.Sprintf(format, args...)}
}

// has reports whether the data set has a file, which may be a broken link.
func (s *source) has(part string) bool {
	_, ok := s.files[s.base(part)]
	return ok
}

// missing returns the error about a file that is not there.
func (s *source) missing(part string) error {
	hint := "" // the data set that seems to be inside, for a file that was renamed
	for _, base := range slices.Sorted(maps.Keys(s.files)) {
		if name, ok := strings.CutSuffix(base, "_A.txt"); ok && name != s.name && hint == "" {
			hint = fmt.Sprintf(" (it holds %s: has it been renamed from %s?)", base, name)
		}
	}
	return fmt.Errorf("dataset: %s: no %s %s%s: %w", s.root, s.kind, s.base(part), hint, fs.ErrNotExist)
}

// scan reads a file of the data set.
func (s *source) scan(part string, read func(*scanner) error) error {
	base := s.base(part)
	f, ok := s.files[base]
	if !ok {
		return s.missing(part)
	}
	r, err := s.open(base, f)
	if errors.Is(err, fs.ErrNotExist) { // a broken link
		return s.missing(part)
	}
	if err != nil {
		return fmt.Errorf("dataset: %s: %w", f.path, err)
	}
	defer r.Close()
	return read(newScanner(f.path, r))
}

// open opens a file. Reading it beyond the limit of the file or of the set is an error.
// Closing it reports the sum of what was read.
func (s *source) open(base string, f sourceFile) (io.ReadCloser, error) {
	r, err := f.open()
	var e *fs.PathError
	if errors.As(err, &e) { // whose operation is a system call's name
		err = e.Err
	}
	if err != nil {
		return nil, err
	}
	l := &limitReader{
		ReadCloser: r,
		s:          s,
		base:       base,
		left:       min(f.limit, s.limits.total-s.total),
	}
	if s.sum != nil {
		l.sum = sha256.New()
	}
	return l, nil
}

// limitReader reads a file up to its limit, and sums it up.
type limitReader struct {
	io.ReadCloser
	s    *source
	base string
	left int64
	sum  hash.Hash // or nil
}

func (l *limitReader) Read(p []byte) (int, error) {
	if err := l.s.ctx.Err(); err != nil {
		return 0, err
	}
	if int64(len(p)) > l.left {
		p = p[:l.left+1] // one byte more than allowed tells "too long" from "just fits"
	}
	n, err := l.ReadCloser.Read(p)
	if l.sum != nil {
		l.sum.Write(p[:n])
	}
	l.left -= int64(n)
	l.s.total += int64(n)
	if l.left < 0 {
		return n, fmt.Errorf("%w: limits: file %d bytes, set %d bytes, zip member %d times its "+
			"compressed size above %d bytes",
			ErrTooLarge, l.s.limits.file, l.s.limits.total, l.s.limits.ratio, int64(ratioFloor))
	}
	return n, err
}

func (l *limitReader) Close() error {
	if l.sum != nil {
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
		err = ctx.Err()
		if err == nil {
			_, err = io.CopyN(h, f, 1<<20)
		}
	}
	if err != io.EOF {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// CheckArchive reads all members of the archive of the data set NAME, whose checksums are
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
	s := newSource(ctx, path, name, Options{})
	if err := s.addZip(files); err != nil {
		return err
	}
	for _, m := range files {
		r, err := s.open(m.Name, s.member(m))
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			r.Close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.Name, err)
		}
	}
	for _, part := range []string{"A", "graph_indicator", "graph_labels"} {
		if !s.has(part) && !(part == "graph_labels" && s.has("graph_attributes")) { // regression targets
			return s.missing(part)
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
