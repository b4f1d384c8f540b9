// Package fetch downloads data sets, archives of the TUDataset collection and tables of
// MoleculeNet, and verifies what lies in a folder.
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

// A file is the one of a data set.
type file struct {
	url    string // of its official home
	remote string // its name there
	path   string // where it lies
	// check judges the contents of a file, which may have another name as yet.
	check func(ctx context.Context, path string) error
}

// fileOf returns the file of the data set in dir.
func fileOf(dir, name string) (file, error) {
	if set, err := moleculenet.ByName(name); err == nil {
		return file{MoleculeNetURL, set.File, set.Path(dir), func(ctx context.Context, path string) error { return set.Check(ctx, path, set.File) }}, nil
	}
	if err := dataset.CheckName(name); err != nil {
		return file{}, err
	}
	return file{TUDatasetURL, name + ".zip", filepath.Join(dir, name+".zip"), func(ctx context.Context, path string) error { return dataset.CheckArchive(ctx, path, name) }}, nil
}

// Options say how [Dataset] downloads. The zero value is ready for use.
type Options struct {
	// BaseURL is where the files lie. Default [TUDatasetURL] or [MoleculeNetURL].
	BaseURL string
	// Progress, if set, is called from the goroutine of Fetch after every block
	// with the bytes of the archive on disk and in all; total is -1 while
	// unknown. After a resumed or restarted download done jumps.
	Progress func(done, total int64)
	// MaxBytes bounds the size of the archive. Default 1 GiB.
	MaxBytes int64
	// Attempts bounds consecutive failed requests; one that got 1 MiB further
	// than any before starts the count anew. Default 5.
	Attempts int
	// Backoff is the wait after the first failure, doubled after each further
	// one up to a minute, or longer if the server's Retry-After says so.
	// Default 1 s.
	Backoff time.Duration
	// IdleTimeout is how long a request may bring nothing before it counts as
	// failed. Default 1 min.
	IdleTimeout time.Duration
	// Client makes the requests. The default is one that does not follow a
	// redirection from https to http.
	Client *http.Client
}

func (o Options) withDefaults() Options {
	if o.MaxBytes <= 0 {
		o.MaxBytes = 1 << 30
	}
	if o.Attempts <= 0 {
		o.Attempts = 5
	}
	if o.Backoff <= 0 {
		o.Backoff = time.Second
	}
	if o.IdleTimeout <= 0 {
		o.IdleTimeout = time.Minute
	}
	if o.Client == nil {
		o.Client = &http.Client{CheckRedirect: checkRedirect}
	}
	return o
}

func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= 10 {
		return fmt.Errorf("%w: more than 10", errRedirect)
	}
	if from := via[len(via)-1].URL; from.Scheme == "https" && req.URL.Scheme != "https" {
		return fmt.Errorf("%w: from %s to insecure %s", errRedirect, from.Redacted(), req.URL.Redacted())
	}
	return nil
}

const (
	maxBackoff    = time.Minute
	maxRetryAfter = 5 * time.Minute
	headway       = 1 << 20 // bytes that start the count of attempts anew
)

// HTTPError is an answer of the server other than the archive.
type HTTPError struct {
	URL    string
	Status string // such as "404 Not Found"
	Code   int
}

func (e *HTTPError) Error() string { return fmt.Sprintf("%s: the server answers %s", e.URL, e.Status) }

// errRedirect is a redirection that is not followed; asking again is no use.
var errRedirect = errors.New("redirection refused")

// errIdle is the cause of a cancelled request that brought nothing for too long.
var errIdle = errors.New("no data")

// Dataset downloads a data set to dir, which it makes if necessary: the archive
// dir/NAME.zip, or the table of a set of [moleculenet.Sets] to its Path. If the file is
// there already, Dataset only verifies it.
//
// The download grows in a file of the name with .part behind. When it is interrupted, by
// ctx or by too many failures, that file stays, and the next call asks only for the rest
// — under the condition that the server's file is still the same (its ETag or
// Last-Modified, kept in .part.json), otherwise for all of it. Server errors (5xx, 429,
// 408) and broken connections are tried again; other answers are an [*HTTPError]. A
// complete download must be a zip archive of the set whose members are all intact, or a
// table with the set's columns; only then does it get its name, in one step. Its sum is
// recorded beside it, with .sha256 behind the name, in the format of sha256sum.
//
// Only one download of a set may run in a folder at a time.
func Dataset(ctx context.Context, dir, name string, opts Options) error {
	f, err := fileOf(dir, name)
	if err != nil {
		return err
	}
	opts = opts.withDefaults()
	base, err := url.Parse(cmp.Or(opts.BaseURL, f.url))
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
	d := &download{opts: opts, check: f.check, url: base.JoinPath(f.remote).String(), final: f.path, part: f.path + ".part", meta: f.path + ".part.json"}
	if err := d.run(ctx); err != nil {
		return fmt.Errorf("dataset: %s: %w", name, err)
	}
	return nil
}

// A download is one file on its way.
type download struct {
	opts              Options
	check             func(ctx context.Context, path string) error
	url               string
	final, part, meta string
	// inherited records that the part file began with an earlier Fetch's data.
	// If the whole is no good then, that may be why.
	inherited bool
	size      int64 // of the part file
}

// partMeta is what NAME.zip.part.json keeps about the server's file, so that
// parts of different files are never joined.
type partMeta struct {
	URL          string `json:"url"`
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"last_modified,omitempty"`
}

// validator returns the value for If-Range, or "" if there is no way to tell
// whether the server's file changed. A weak ETag does not do (RFC 9110, 13.1.5).
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

func (d *download) run(ctx context.Context) error {
	have, _ := d.resume()
	d.inherited = have > 0
	farthest := have
	wait, failures := d.opts.Backoff, 0
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
			if have, _ := d.resume(); have > 0 {
				return fmt.Errorf("%w; %s has the first %d bytes, for the next attempt to continue", ctx.Err(), d.part, have)
			}
			return ctx.Err()
		}
		var retry *retryError
		if !errors.As(err, &retry) {
			return err
		}
		// Getting as far as before, again and again, is not headway: that is
		// what a server does that cuts connections and ignores Range.
		if failures++; d.size >= farthest+headway {
			wait, failures = d.opts.Backoff, 1
			farthest = d.size
		}
		if failures >= d.opts.Attempts {
			return fmt.Errorf("gave up after %d attempts: %w", failures, retry.err)
		}
		timer := time.NewTimer(max(wait, retry.after))
		select {
		case <-ctx.Done():
			timer.Stop()
		case <-timer.C:
		}
		wait = min(2*wait, maxBackoff)
	}
}

// A retryError is a failure that another request may not have.
type retryError struct {
	err   error
	after time.Duration // what the server asked for
}

func (e *retryError) Error() string { return e.err.Error() }

// attempt makes one request for what is missing of the archive. It returns nil
// when the part file is complete.
func (d *download) attempt(ctx context.Context) error {
	have, meta := d.resume()
	d.size = have
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(d.opts.IdleTimeout, func() {
		cancel(fmt.Errorf("%w for %v", errIdle, d.opts.IdleTimeout))
	})
	defer idle.Stop()

	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return err
	}
	// A transparent gzip would make lengths and ranges those of another file.
	req.Header.Set("Accept-Encoding", "identity")
	if have > 0 {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		req.Header.Set("If-Range", meta.validator())
	}
	resp, err := d.opts.Client.Do(req)
	switch {
	case errors.Is(err, errRedirect):
		return fmt.Errorf("%s: %w", d.url, err)
	case errors.Is(context.Cause(ctx), errIdle):
		return &retryError{err: fmt.Errorf("%s: %w", d.url, context.Cause(ctx))}
	case err != nil:
		return &retryError{err: err}
	}
	defer resp.Body.Close()

	start, total, err := d.judge(resp, have, meta)
	if err != nil || start == total {
		return err
	}
	if total > d.opts.MaxBytes {
		return fmt.Errorf("%s: %w: %d bytes, limit %d", d.url, dataset.ErrTooLarge, total, d.opts.MaxBytes)
	}
	f, err := d.openPart(start, resp)
	if err != nil {
		return err
	}
	err = d.copy(ctx, f, resp.Body, start, total, idle)
	return errors.Join(err, f.Close())
}

// judge looks at the head of an answer: where in the archive its body starts,
// and the size of the archive, -1 if it does not say. They are equal if the
// part file turns out to be complete.
func (d *download) judge(resp *http.Response, have int64, meta partMeta) (start, total int64, err error) {
	refused := &HTTPError{d.url, resp.Status, resp.StatusCode}
	span := resp.Header.Get("Content-Range")
	switch code := resp.StatusCode; {
	case code == http.StatusOK && resp.ContentLength == 0:
		return 0, 0, fmt.Errorf("%s: the server's answer is empty", d.url)
	case code == http.StatusOK: // everything: nothing to resume, or not the same file
		return 0, resp.ContentLength, nil
	case code == http.StatusPartialContent:
		start, total, err := parseContentRange(span)
		if etag := resp.Header.Get("ETag"); err == nil && have > 0 && start == have && (etag == "" || meta.ETag != meta.validator() || etag == meta.ETag) {
			return start, total, nil
		}
		d.discard()
		return 0, 0, &retryError{err: fmt.Errorf("%s: asked for bytes from %d of %s, got Content-Range %q of %s", d.url, have, meta.ETag, span, resp.Header.Get("ETag"))}
	case code == http.StatusRequestedRangeNotSatisfiable:
		if _, total, err := parseContentRange(span); err == nil && have > 0 && total == have {
			return have, have, nil // only the name is missing
		}
		d.discard()
		return 0, 0, &retryError{err: refused}
	case code >= 500, code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return 0, 0, &retryError{refused, retryAfter(resp.Header.Get("Retry-After"))}
	case code == http.StatusNotFound:
		return 0, 0, fmt.Errorf("%w (is the name spelled as on the site?)", refused)
	}
	return 0, 0, refused
}

// copy appends the body to the part file, which has start bytes of total.
func (d *download) copy(ctx context.Context, f *os.File, body io.Reader, start, total int64, idle *time.Timer) error {
	d.size = start
	d.progress(total)
	buf := make([]byte, 128<<10)
	for {
		// What is buffered can be read even after cancellation; do not.
		if ctx.Err() != nil {
			return &retryError{err: fmt.Errorf("%s: after %d bytes: %w", d.url, d.size, context.Cause(ctx))}
		}
		n, err := body.Read(buf)
		if n > 0 {
			idle.Reset(d.opts.IdleTimeout)
			if d.size+int64(n) > d.opts.MaxBytes {
				d.discard()
				return fmt.Errorf("%s: %w: more than %d bytes", d.url, dataset.ErrTooLarge, d.opts.MaxBytes)
			}
			if _, err := f.Write(buf[:n]); err != nil {
				return err
			}
			d.size += int64(n)
			d.progress(total)
		}
		switch {
		case err == io.EOF && total >= 0 && d.size != total:
			return &retryError{err: fmt.Errorf("%s: ended after %d of %d bytes", d.url, d.size, total)}
		case err == io.EOF:
			return f.Sync()
		case err != nil && errors.Is(context.Cause(ctx), errIdle):
			err = context.Cause(ctx)
			fallthrough
		case err != nil:
			return &retryError{err: fmt.Errorf("%s: after %d bytes: %w", d.url, d.size, err)}
		}
	}
}

func (d *download) progress(total int64) {
	if d.opts.Progress != nil {
		d.opts.Progress(d.size, total)
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

// discard removes what cannot be continued.
func (d *download) discard() {
	os.Remove(d.part)
	os.Remove(d.meta)
}

// openPart opens the part file to continue at byte have, or empties it.
func (d *download) openPart(have int64, resp *http.Response) (*os.File, error) {
	if have > 0 {
		return os.OpenFile(d.part, os.O_WRONLY|os.O_APPEND, 0)
	}
	// First the data goes, then the description changes: a crash in between
	// leaves an empty part, never bytes with another file's description. And
	// the part is made anew, so that a link in its place is not followed.
	d.discard()
	d.inherited = false
	b, err := json.Marshal(partMeta{URL: d.url, ETag: resp.Header.Get("ETag"), LastModified: resp.Header.Get("Last-Modified")})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(d.meta, append(b, '\n'), 0o666); err != nil {
		return nil, err
	}
	return os.OpenFile(d.part, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
}

// errContent is wrapped by the errors of finish about what was downloaded.
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
	// The record first: an archive under its name always has one.
	if err := writeSum(d.final, sum); err != nil {
		return err
	}
	if err := os.Rename(d.part, d.final); err != nil {
		return err
	}
	os.Remove(d.meta)
	return nil
}

// parseContentRange reads "bytes 5-9/10" and "bytes */10"; start is -1 for the
// latter, and size is -1 for "bytes 5-9/*".
func parseContentRange(s string) (start, size int64, err error) {
	bad := fmt.Errorf("Content-Range %q", s)
	rest, ok := strings.CutPrefix(s, "bytes ")
	span, total, ok2 := strings.Cut(rest, "/")
	if !ok || !ok2 {
		return 0, 0, bad
	}
	number := func(s string) int64 {
		v, err := strconv.ParseInt(s, 10, 64)
		if err != nil || v < 0 || s[0] == '+' {
			return -1
		}
		return v
	}
	size = -1
	if total != "*" {
		if size = number(total); size < 0 {
			return 0, 0, bad
		}
	}
	if span == "*" {
		if size < 0 {
			return 0, 0, bad
		}
		return -1, size, nil
	}
	first, last, _ := strings.Cut(span, "-")
	start, end := number(first), number(last)
	// A range that stops short of the end is legal but not what was asked for.
	if start < 0 || end < start || size >= 0 && end != size-1 {
		return 0, 0, bad
	}
	return start, size, nil
}

// retryAfter reads the header's number of seconds; dates are not worth it.
func retryAfter(s string) time.Duration {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return time.Duration(min(n, int64(maxRetryAfter/time.Second))) * time.Second
}
