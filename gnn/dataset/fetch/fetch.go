// Package fetch downloads data sets, archives of the TUDataset collection and tables of
// MoleculeNet, and verifies those in a folder.
package fetch

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
)

// The official homes of the files.
const (
	TUDatasetURL   = "https://www.chrsmrrs.com/graphkerneldatasets"
	MoleculeNetURL = "https://deepchemdata.s3-us-west-1.amazonaws.com/datasets"
)

// Options say how [Dataset] downloads. The zero value is ready for use.
type Options struct {
	// BaseURL is the folder of the files. Default [TUDatasetURL] or [MoleculeNetURL].
	BaseURL string
	// Progress, if set, is called from the goroutine of Dataset after every block, with
	// the bytes of the file on disk and its size; total is -1 while that is unknown. done
	// jumps when a download is resumed or restarted.
	Progress func(done, total int64)
	// Client makes the requests. The default does not follow redirections from https to
	// http.
	Client *http.Client

	attempts int           // consecutive failed requests without headway; 0 means 5
	backoff  time.Duration // wait after the first failure, doubled after each; 0 means 1 s
	idle     time.Duration // how long a request may deliver nothing; 0 means 1 min
	maxBytes int64         // 0 means 1 GiB
}

const (
	maxBackoff    = time.Minute
	maxRetryAfter = 5 * time.Minute
	headway       = 1 << 20 // bytes after which attempts are counted from 0 again
)

// errRedirect is a redirection that is not followed; another attempt would fail, too.
var errRedirect = errors.New("redirection refused")

func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return fmt.Errorf("%w: more than 10", errRedirect)
	}
	if source := via[len(via)-1].URL; source.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("%w: from %s to insecure %s",
			errRedirect, source.Redacted(), req.URL.Redacted())
	}
	return nil
}

// HTTPError is a response of the server other than the file.
type HTTPError struct {
	URL    string
	Status string // such as "404 Not Found"
	Code   int
}

func (e *HTTPError) Error() string {
	return fmt.Sprintf("%s: the server answers %s", e.URL, e.Status)
}

// file is an archive or a table, on the server and on disk.
type file struct {
	home   string // URL of its official folder
	remote string // its name there
	path   string // its path on disk
	// check checks the contents of the file at path, which may have a temporary name.
	check func(ctx context.Context, path string) error
}

// fileOf returns the file of a set in dir.
func fileOf(dir, name string) (file, error) {
	if set, err := moleculenet.ByName(name); err == nil {
		check := func(ctx context.Context, path string) error {
			return set.Check(ctx, path, set.File)
		}
		return file{MoleculeNetURL, set.File, set.Path(dir), check}, nil
	}
	if err := dataset.CheckName(name); err != nil {
		return file{}, err
	}
	archive := name + ".zip"
	check := func(ctx context.Context, path string) error {
		return dataset.CheckArchive(ctx, path, name)
	}
	return file{TUDatasetURL, archive, filepath.Join(dir, archive), check}, nil
}

// Dataset downloads a data set to dir, which it makes if necessary: the archive
// dir/NAME.zip, or the table of a set of [moleculenet.Sets] to its Path. If the file
// exists already, Dataset only verifies it.
//
// The download goes into a file whose name ends in .part. When it is interrupted, by ctx or
// by too many failures, that file stays. The next call only requests the missing bytes if
// the server's file is still the same by its ETag or Last-Modified, which are kept in
// .part.json; otherwise it requests all of it. Server errors (5xx, 429, 408) and broken
// connections are tried again; other responses are an [*HTTPError]. A complete download
// must be a zip archive of the set whose members are all intact, or a table with the set's
// columns; only then does it get its name, in one step. Its sum is recorded next to it, in
// a file whose name ends in .sha256, in the format of sha256sum.
//
// Only one download of a set may run in a folder at a time.
func Dataset(ctx context.Context, dir, name string, opts Options) error {
	f, err := fileOf(dir, name)
	if err != nil {
		return err
	}
	opts.BaseURL = cmp.Or(opts.BaseURL, f.home)
	opts.attempts = cmp.Or(opts.attempts, 5)
	opts.maxBytes = cmp.Or(opts.maxBytes, 1<<30)
	opts.backoff = cmp.Or(opts.backoff, time.Second)
	opts.idle = cmp.Or(opts.idle, time.Minute)
	if opts.Client == nil {
		opts.Client = &http.Client{CheckRedirect: checkRedirect}
	}
	base, err := url.Parse(opts.BaseURL)
	if err != nil {
		return fmt.Errorf("dataset: base URL: %w", err)
	}
	if base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return fmt.Errorf("dataset: base URL %q is not of the form https://host/path", opts.BaseURL)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("dataset: %w", err)
	}
	if _, err := os.Lstat(f.path); err == nil {
		_, err := f.verify(ctx)
		return err
	}
	part := f.path + ".part"
	d := &download{
		file: f,
		opts: opts,
		url:  base.JoinPath(f.remote).String(),
		part: part,
		meta: part + ".json",
	}
	if err := d.run(ctx); err != nil {
		return fmt.Errorf("dataset: %s: %w", name, err)
	}
	return nil
}

// download is one call of [Dataset].
type download struct {
	file
	opts       Options
	url        string
	part, meta string // paths
	size       int64  // of the part file
	// inherited is set if the part file began with the data of an earlier call, which may
	// be why the whole file is wrong.
	inherited bool
}

// partMeta identifies the server's file, in the .part.json file, so that parts of different
// files are never joined.
type partMeta struct {
	URL          string `json:"url"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// validator returns the value for If-Range, or "" if nothing tells whether the server's
// file changed. A weak ETag is not enough (RFC 9110, 13.1.5).
func (m partMeta) validator() string {
	v := m.LastModified
	if m.ETag != "" && !strings.HasPrefix(m.ETag, "W/") {
		v = m.ETag
	}
	if strings.ContainsFunc(v, func(c rune) bool { return c < ' ' || c > '~' }) {
		return "" // from a damaged file: not a header's value
	}
	return v
}

// A retryError is a failure that another request may not meet.
type retryError struct {
	err   error
	after time.Duration // the wait that the server asked for
}

func (e *retryError) Error() string { return e.err.Error() }

// run makes requests until the file is complete, and then finishes it.
func (d *download) run(ctx context.Context) error {
	farthest, _ := d.resume()
	d.inherited = farthest > 0
	wait := d.opts.backoff
	failures := 0
	for {
		err := d.attempt(ctx)
		if err == nil {
			err = d.finish(ctx)
			if !d.inherited || !errors.Is(err, errContent) {
				return err
			}
			d.inherited = false
			continue
		}
		if ctx.Err() != nil {
			if size, _ := d.resume(); size > 0 {
				return fmt.Errorf("%w; %s has the first %d bytes, for the next attempt to continue",
					ctx.Err(), d.part, size)
			}
			return ctx.Err()
		}
		var retry *retryError
		if !errors.As(err, &retry) {
			return err
		}
		// Getting as far as before is no headway: a server that cuts connections
		// and ignores Range does that for ever.
		failures++
		if d.size >= farthest+headway {
			wait = d.opts.backoff
			failures = 1
			farthest = d.size
		}
		if failures >= d.opts.attempts {
			return fmt.Errorf("gave up after %d attempts: %w", failures, retry.err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(max(wait, retry.after)):
		}
		wait = min(2*wait, maxBackoff)
	}
}

// attempt makes one request for the missing bytes of the file. It returns nil when the
// part file is complete.
func (d *download) attempt(ctx context.Context) error {
	size, meta := d.resume()
	d.size = size
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(d.opts.idle, func() {
		cancel(fmt.Errorf("no data for %v", d.opts.idle))
	})
	defer idle.Stop()

	resp, err := d.request(ctx, size, meta)
	switch {
	case errors.Is(err, errRedirect):
		return fmt.Errorf("%s: %w", d.url, err)
	case err != nil:
		return d.broken(ctx, err)
	}
	defer resp.Body.Close()

	// Does the response continue the part file, or begin anew?
	refused := &HTTPError{d.url, resp.Status, resp.StatusCode}
	span := resp.Header.Get("Content-Range")
	etag := resp.Header.Get("ETag")
	sameFile := etag == "" || meta.ETag != meta.validator() || etag == meta.ETag
	total := resp.ContentLength
	switch code := resp.StatusCode; {
	case code == http.StatusOK && total == 0:
		return fmt.Errorf("%s: the server's answer is empty", d.url)
	case code == http.StatusOK: // everything: nothing to resume, or not the same file
		size = 0
	case code == http.StatusPartialContent && sameFile && rangeSize(span, size) > 0:
		total = rangeSize(span, size)
	case code == http.StatusRequestedRangeNotSatisfiable && size > 0 &&
		span == fmt.Sprintf("bytes */%d", size):
		return nil // only the name is missing
	case code == http.StatusPartialContent, code == http.StatusRequestedRangeNotSatisfiable:
		d.discard()
		return &retryError{err: fmt.Errorf("%w with Content-Range %q of %s, asked for bytes from %d of %s",
			refused, span, etag, size, meta.ETag)}
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return &retryError{refused, retryAfter(resp.Header.Get("Retry-After"))}
	case code == http.StatusNotFound:
		return fmt.Errorf("%w (is the name spelled as on the site?)", refused)
	default:
		return refused
	}
	if total > d.opts.maxBytes {
		return fmt.Errorf("%s: %w: %d bytes, limit %d",
			d.url, dataset.ErrTooLarge, total, d.opts.maxBytes)
	}
	f, err := d.openPart(size, partMeta{
		URL:          d.url,
		ETag:         etag,
		LastModified: resp.Header.Get("Last-Modified"),
	})
	if err != nil {
		return err
	}
	d.size = size
	return errors.Join(d.copy(ctx, f, resp.Body, total, idle), f.Close())
}

// request asks for the file, behind its first size bytes if it is still the same file.
func (d *download) request(ctx context.Context, size int64, meta partMeta) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return nil, err
	}
	// A transparent gzip would make lengths and ranges those of another file.
	req.Header.Set("Accept-Encoding", "identity")
	if size > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", size))
		req.Header.Set("If-Range", meta.validator())
	}
	return d.opts.Client.Do(req)
}

// broken returns the error about a connection that ended early.
func (d *download) broken(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return &retryError{err: fmt.Errorf("%s: after %d bytes: %w", d.url, d.size, err)}
}

// copy appends the body to the part file, which must then have total bytes unless that is
// -1.
func (d *download) copy(
	ctx context.Context, f *os.File, body io.Reader, total int64, idle *time.Timer,
) error {
	buf := make([]byte, 128<<10)
	for n, err := 0, error(nil); ; n, err = body.Read(buf) {
		if n > 0 {
			idle.Reset(d.opts.idle)
			if d.size+int64(n) > d.opts.maxBytes {
				d.discard()
				return fmt.Errorf("%s: %w: more than %d bytes",
					d.url, dataset.ErrTooLarge, d.opts.maxBytes)
			}
			if _, err := f.Write(buf[:n]); err != nil {
				return err
			}
			d.size += int64(n)
		}
		if d.opts.Progress != nil {
			d.opts.Progress(d.size, total)
		}
		switch {
		case err == io.EOF && total >= 0 && d.size != total:
			return d.broken(ctx, fmt.Errorf("the connection ended, want %d", total))
		case err == io.EOF:
			return f.Sync()
		case err != nil, ctx.Err() != nil: // what is buffered could be read even now
			return d.broken(ctx, err)
		}
	}
}

// resume returns the size and origin of the part file, 0 if there is none that
// can be continued.
func (d *download) resume() (int64, partMeta) {
	var meta partMeta
	info, err := os.Lstat(d.part)
	if err != nil || !info.Mode().IsRegular() {
		return 0, meta
	}
	b, err := os.ReadFile(d.meta)
	if err != nil || json.Unmarshal(b, &meta) != nil || meta.URL != d.url || meta.validator() == "" {
		return 0, partMeta{}
	}
	return info.Size(), meta
}

// discard removes a part file that cannot be continued.
func (d *download) discard() {
	os.Remove(d.part)
	os.Remove(d.meta)
}

// openPart opens the part file to continue at byte size, or empties it if that is 0.
func (d *download) openPart(size int64, meta partMeta) (*os.File, error) {
	if size > 0 {
		return os.OpenFile(d.part, os.O_WRONLY|os.O_APPEND, 0)
	}
	// First the data goes, then the description changes: a crash in between
	// leaves an empty part, never bytes with another file's description. The
	// part is created anew, so that a link in its place is not followed.
	d.discard()
	d.inherited = false
	b, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(d.meta, append(b, '\n'), 0o666); err != nil {
		return nil, err
	}
	return os.OpenFile(d.part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

// errContent is wrapped by the errors of finish about the contents of the download.
var errContent = errors.New("the download is not what it should be")

// finish checks the complete part file and gives it its name.
func (d *download) finish(ctx context.Context) error {
	sum, err := dataset.SumFile(ctx, d.part)
	if err != nil {
		return err
	}
	if err := d.check(ctx, d.part); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		d.discard()
		return fmt.Errorf("%w: %s: %w", errContent, d.url, err)
	}
	// The record first: a file under its name always has one.
	if err := writeSum(d.path, sum); err != nil {
		return err
	}
	if err := os.Rename(d.part, d.path); err != nil {
		return err
	}
	os.Remove(d.meta)
	return nil
}

// rangeSize returns the size of the file if a Content-Range gives all of it from an offset on,
// as in "bytes 5-9/10", and 0 otherwise.
func rangeSize(span string, offset int64) int64 {
	_, size, _ := strings.Cut(span, "/")
	n, err := strconv.ParseInt(size, 10, 64)
	if err != nil || n <= offset || span != fmt.Sprintf("bytes %d-%d/%d", offset, n-1, n) {
		return 0
	}
	return n
}

// retryAfter parses the header's number of seconds; dates are not supported.
func retryAfter(s string) time.Duration {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, int64(maxRetryAfter/time.Second))) * time.Second
}
