package fetch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/specmatch/specmatch/gnn/dataset"
	"github.com/specmatch/specmatch/gnn/dataset/moleculenet"
)

// A server offers one archive on the loopback interface and misbehaves as told.
type server struct {
	*httptest.Server
	mu       sync.Mutex
	body     []byte
	etag     string
	modified time.Time
	// before, if set, is called for request n (from 0) and may answer itself.
	before   func(n int, w http.ResponseWriter, r *http.Request) (done bool)
	requests []*http.Request
}

func newServer(t testing.TB, body []byte) *server {
	s := &server{body: body, etag: `"v1"`, modified: time.Date(2020, 7, 1, 0, 0, 0, 0, time.UTC)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := len(s.requests)
	s.requests = append(s.requests, r)
	before, body, etag, modified := s.before, s.body, s.etag, s.modified
	s.mu.Unlock()
	if r.URL.Path != "/tu/S.zip" {
		http.NotFound(w, r)
		return
	}
	if etag != "" {
		w.Header().Set("ETag", etag)
	}
	if before != nil && before(n, w, r) {
		return
	}
	http.ServeContent(w, r, "", modified, bytes.NewReader(body))
}

// cutAfter sends the first part of what a whole answer is, and breaks the
// connection.
func (s *server) cutAfter(w http.ResponseWriter, from, to int) {
	w.Header().Set("Last-Modified", s.modified.Format(http.TimeFormat))
	w.Header().Set("Content-Length", fmt.Sprint(len(s.body)-from))
	if from > 0 {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(s.body)-1, len(s.body)))
		w.WriteHeader(http.StatusPartialContent)
	}
	w.Write(s.body[from:to])
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

func (s *server) options() Options {
	return Options{BaseURL: s.URL + "/tu/", backoff: time.Millisecond, Client: s.Client()}
}

// log returns the Range header of every request.
func (s *server) log() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for _, r := range s.requests {
		out = append(out, r.Header.Get("Range"))
	}
	return out
}

// bigZip is an archive of a few hundred KiB that does not compress.
func bigZip(t testing.TB) []byte {
	rng := rand.New(rand.NewChaCha8([32]byte{1}))
	noise := make([]byte, 300<<10)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	f := small.with("noise", string(noise))
	return f.zip(t, "S")
}

// fetched checks that dir holds the whole archive and nothing unfinished.
func fetched(t *testing.T, dir string, body []byte) {
	t.Helper()
	got, err := os.ReadFile(filepath.Join(dir, "S.zip"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, body) {
		t.Errorf("S.zip has %d bytes that are not the server's %d", len(got), len(body))
	}
	if names := ls(t, dir); !slices.Equal(names, []string{"S.zip", "S.zip.sha256"}) {
		t.Errorf("the folder holds %v", names)
	}
	if v, err := Verify(t.Context(), dir, "S"); err != nil || v.Source != "recorded" {
		t.Errorf("Verify = %+v, %v", v, err)
	}
}

func ls(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := []string{}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func TestFetch(t *testing.T) {
	body := bigZip(t)
	s := newServer(t, body)
	dir := filepath.Join(t.TempDir(), "new", "data")
	var last, calls int64
	opts := s.options()
	opts.Progress = func(done, total int64) {
		if done < last || total != int64(len(body)) {
			t.Errorf("progress %d of %d after %d", done, total, last)
		}
		last = done
		calls++
	}
	if err := Dataset(t.Context(), dir, "S", opts); err != nil {
		t.Fatal(err)
	}
	fetched(t, dir, body)
	if last != int64(len(body)) || calls < 3 {
		t.Errorf("progress ended at %d of %d after %d calls", last, len(body), calls)
	}
	if ds, err := dataset.Open(t.Context(), dir, "S", dataset.Options{}); err != nil || len(ds.Graphs) != 2 {
		t.Errorf("Open = %v, %v", ds, err)
	}
	if r := s.requests[0]; r.Header.Get("Accept-Encoding") != "identity" || r.Header.Get("Range") != "" || r.Header.Get("If-Range") != "" {
		t.Errorf("headers of the first request: %v", r.Header)
	}
	sum, err := os.ReadFile(filepath.Join(dir, "S.zip.sha256"))
	if err != nil {
		t.Fatal(err)
	}
	if f := strings.Fields(string(sum)); len(f) != 2 || !isSum(f[0]) || f[1] != "S.zip" || !strings.HasSuffix(string(sum), "  S.zip\n") {
		t.Errorf("recorded %q", sum)
	}

	// What is there is checked and not fetched again.
	if err := Dataset(t.Context(), dir, "S", opts); err != nil || len(s.requests) != 1 {
		t.Errorf("again: %v after %d requests", err, len(s.requests))
	}
	var sumErr *SumError
	write(t, filepath.Join(dir, "S.zip"), string(body[:100]))
	if err := Dataset(t.Context(), dir, "S", opts); !errors.As(err, &sumErr) || !strings.Contains(err.Error(), "recorded") {
		t.Errorf("again, after damage: %v", err)
	}
}

func TestFetchResumes(t *testing.T) {
	body := bigZip(t)
	half := len(body) / 2
	t.Run("after a cut connection", func(t *testing.T) {
		s := newServer(t, body)
		s.before = func(n int, w http.ResponseWriter, r *http.Request) bool {
			switch n {
			case 0:
				s.cutAfter(w, 0, half)
			case 1:
				s.cutAfter(w, half, half+1000)
			}
			return false
		}
		dir := t.TempDir()
		if err := Dataset(t.Context(), dir, "S", s.options()); err != nil {
			t.Fatal(err)
		}
		fetched(t, dir, body)
		if want := []string{"", fmt.Sprintf("bytes=%d-", half), fmt.Sprintf("bytes=%d-", half+1000)}; !slices.Equal(s.log(), want) {
			t.Errorf("ranges %q, want %q", s.log(), want)
		}
		if got := s.requests[1].Header.Get("If-Range"); got != s.etag {
			t.Errorf("If-Range %q, want %q", got, s.etag)
		}
	})
	t.Run("after cancellation", func(t *testing.T) {
		s := newServer(t, body)
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		opts := s.options()
		opts.Progress = func(done, total int64) {
			if done > 0 {
				cancel()
			}
		}
		err := Dataset(ctx, dir, "S", opts)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "S.zip.part has the first") {
			t.Fatalf("cancelled: %v", err)
		}
		if names := ls(t, dir); !slices.Equal(names, []string{"S.zip.part", "S.zip.part.json"}) {
			t.Fatalf("left behind: %v", names)
		}
		info, err := os.Stat(filepath.Join(dir, "S.zip.part"))
		if err != nil || info.Size() == 0 || info.Size() >= int64(len(body)) {
			t.Fatalf("S.zip.part: %v, %v", info, err)
		}
		if err := Dataset(t.Context(), dir, "S", s.options()); err != nil {
			t.Fatal(err)
		}
		fetched(t, dir, body)
		if want := []string{"", fmt.Sprintf("bytes=%d-", info.Size())}; !slices.Equal(s.log(), want) {
			t.Errorf("ranges %q, want %q", s.log(), want)
		}
	})
	t.Run("after silence", func(t *testing.T) {
		s := newServer(t, body)
		s.before = func(n int, w http.ResponseWriter, r *http.Request) bool {
			switch n {
			case 0: // not even a header
				<-r.Context().Done()
				return true
			case 1:
				w.Header().Set("Content-Length", fmt.Sprint(len(body)))
				w.Write(body[:half])
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return true
			}
			return false
		}
		opts := s.options()
		opts.idle = 50 * time.Millisecond
		dir := t.TempDir()
		if err := Dataset(t.Context(), dir, "S", opts); err != nil {
			t.Fatal(err)
		}
		fetched(t, dir, body)
		if want := []string{"", "", fmt.Sprintf("bytes=%d-", half)}; !slices.Equal(s.log(), want) {
			t.Errorf("ranges %q, want %q", s.log(), want)
		}
		opts.attempts = 1
		s.before = func(int, http.ResponseWriter, *http.Request) bool { time.Sleep(150 * time.Millisecond); return false }
		if err := Dataset(t.Context(), t.TempDir(), "S", opts); err == nil || !strings.Contains(err.Error(), "no data for 50ms") {
			t.Errorf("a silent server: %v", err)
		}
	})
}

// part leaves an interrupted download behind.
func part(t *testing.T, s *server, dir string, data []byte, etag, modified string) {
	t.Helper()
	write(t, filepath.Join(dir, "S.zip.part"), string(data))
	write(t, filepath.Join(dir, "S.zip.part.json"), fmt.Sprintf(`{"url": %q, "etag": %q, "last_modified": %q}`, s.URL+"/tu/S.zip", etag, modified))
}

func TestFetchContinues(t *testing.T) {
	body := bigZip(t)
	half := len(body) / 2
	rest := fmt.Sprintf("bytes=%d-", half)
	for _, c := range []struct {
		name  string
		setup func(t *testing.T, s *server, dir string)
		log   []string
	}{
		{"same ETag", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, body[:half], s.etag, "")
		}, []string{rest}},
		{"same date", func(t *testing.T, s *server, dir string) {
			s.etag = ""
			part(t, s, dir, body[:half], "", s.modified.Format(http.TimeFormat))
		}, []string{rest}},
		{"another file, under the ETag of this one", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, bytes.Repeat([]byte("x"), half), s.etag, "")
		}, []string{rest, ""}},
		{"weak ETag and same date", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, body[:half], `W/"v1"`, s.modified.Format(http.TimeFormat))
		}, []string{rest}},
		{"weak ETag alone cannot be used", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, body[:half], `W/"v1"`, "")
		}, []string{""}},
		{"no way to tell", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, body[:half], "", "")
		}, []string{""}},
		{"another file by ETag", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, bytes.Repeat([]byte("x"), half), `"v0"`, "")
		}, []string{rest}},
		{"another file by date", func(t *testing.T, s *server, dir string) {
			s.etag = ""
			part(t, s, dir, bytes.Repeat([]byte("x"), half), "", s.modified.Add(-time.Hour).Format(http.TimeFormat))
		}, []string{rest}},
		{"another server", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, bytes.Repeat([]byte("x"), half), s.etag, "")
			write(t, filepath.Join(dir, "S.zip.part.json"), `{"url": "http://127.0.0.1:1/S.zip", "etag": "\"v1\""}`)
		}, []string{""}},
		{"no description", func(t *testing.T, s *server, dir string) {
			write(t, filepath.Join(dir, "S.zip.part"), "whatever")
		}, []string{""}},
		{"damaged description", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, body[:half], s.etag, "")
			write(t, filepath.Join(dir, "S.zip.part.json"), `{"url`)
		}, []string{""}},
		{"description with a line break", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, body[:half], "\"v1\"\nX: y", "")
		}, []string{""}},
		{"empty part", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, nil, s.etag, "")
		}, []string{""}},
		{"complete but for its name", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, body, s.etag, "")
		}, []string{fmt.Sprintf("bytes=%d-", len(body))}},
		{"too long", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, append(slices.Clone(body), "more"...), s.etag, "")
		}, []string{fmt.Sprintf("bytes=%d-", len(body)+4), ""}},
		{"server ignores Range", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, bytes.Repeat([]byte("x"), half), s.etag, "")
			s.before = func(_ int, w http.ResponseWriter, r *http.Request) bool {
				w.Write(body)
				return true
			}
		}, []string{rest}},
		{"server sends another range", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, body[:half], s.etag, "")
			s.before = func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 0 {
					w.Header().Set("Content-Range", fmt.Sprintf("bytes 10-%d/%d", len(body)-1, len(body)))
					w.WriteHeader(http.StatusPartialContent)
					w.Write(body[10:])
				}
				return n == 0
			}
		}, []string{rest, ""}},
		{"server ignores If-Range", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, bytes.Repeat([]byte("x"), half), `"v0"`, "")
			s.before = func(n int, w http.ResponseWriter, r *http.Request) bool {
				r.Header.Del("If-Range")
				return false
			}
		}, []string{rest, ""}},
		{"416 without a size", func(t *testing.T, s *server, dir string) {
			part(t, s, dir, body[:half], s.etag, "")
			s.before = func(n int, w http.ResponseWriter, r *http.Request) bool {
				if n == 0 {
					w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
				}
				return n == 0
			}
		}, []string{rest, ""}},
		{"a link in the place of the part", func(t *testing.T, s *server, dir string) {
			victim := filepath.Join(t.TempDir(), "victim")
			write(t, victim, "precious")
			if err := os.Symlink(victim, filepath.Join(dir, "S.zip.part")); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
					t.Errorf("the file behind the link is now %q, %v", b, err)
				}
			})
		}, []string{""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, dir := newServer(t, body), t.TempDir()
			c.setup(t, s, dir)
			if err := Dataset(t.Context(), dir, "S", s.options()); err != nil {
				t.Fatal(err)
			}
			fetched(t, dir, body)
			if !slices.Equal(s.log(), c.log) {
				t.Errorf("ranges %q, want %q", s.log(), c.log)
			}
		})
	}
}

func TestFetchRetries(t *testing.T) {
	body := small.zip(t, "S")
	t.Run("until it works", func(t *testing.T) {
		s := newServer(t, body)
		codes := []int{500, 503, 429, 408}
		s.before = func(n int, w http.ResponseWriter, r *http.Request) bool {
			if n < len(codes) {
				w.Header().Set("Retry-After", "0")
				w.WriteHeader(codes[n])
			}
			return n < len(codes)
		}
		dir := t.TempDir()
		if err := Dataset(t.Context(), dir, "S", s.options()); err != nil {
			t.Fatal(err)
		}
		fetched(t, dir, body)
	})
	t.Run("not for ever", func(t *testing.T) {
		s := newServer(t, body)
		s.before = func(n int, w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(502); return true }
		opts := s.options()
		opts.attempts = 3
		err := Dataset(t.Context(), t.TempDir(), "S", opts)
		var status *HTTPError
		if !errors.As(err, &status) || status.Code != 502 || !strings.Contains(err.Error(), "gave up after 3 attempts") || !strings.Contains(err.Error(), "502 Bad Gateway") {
			t.Errorf("got %v", err)
		}
		if len(s.log()) != 3 {
			t.Errorf("%d requests, want 3", len(s.log()))
		}
	})
	t.Run("while something arrives", func(t *testing.T) {
		// Every request brings a little more than 1 MiB, so that two attempts
		// are enough for any number of requests.
		f := small.with("noise", strings.Repeat(string(bigZip(t)), 12))
		var b strings.Builder
		b.Write(f.zip(t, "S"))
		body := []byte(b.String())
		s := newServer(t, body)
		const step = headway + 1000
		if len(body) < 2*step {
			t.Fatalf("only %d bytes", len(body))
		}
		s.before = func(n int, w http.ResponseWriter, r *http.Request) bool {
			if from := n * step; from+step < len(body) {
				s.cutAfter(w, from, from+step)
			}
			return false
		}
		opts := s.options()
		opts.attempts = 2
		dir := t.TempDir()
		if err := Dataset(t.Context(), dir, "S", opts); err != nil {
			t.Fatal(err)
		}
		fetched(t, dir, body)
	})
	for what, cut := range map[string]func(s *server, w http.ResponseWriter, n int){
		"but not for getting as far as before": func(s *server, w http.ResponseWriter, n int) { s.cutAfter(w, 0, 2*headway) }, // whatever the Range
		"nor for a few bytes at a time":        func(s *server, w http.ResponseWriter, n int) { s.cutAfter(w, n*1000, (n+1)*1000) },
	} {
		t.Run(what, func(t *testing.T) {
			s := newServer(t, make([]byte, 3*headway))
			s.before = func(n int, w http.ResponseWriter, r *http.Request) bool {
				cut(s, w, n)
				return true
			}
			opts := s.options()
			opts.attempts = 3
			if err := Dataset(t.Context(), t.TempDir(), "S", opts); err == nil || !strings.Contains(err.Error(), "gave up after 3 attempts") {
				t.Errorf("got %v", err)
			}
			if n := len(s.log()); n != 3 {
				t.Errorf("%d requests, want 3", n)
			}
		})
	}
	t.Run("nobody there", func(t *testing.T) {
		s := newServer(t, body)
		opts := s.options()
		opts.attempts = 2
		s.Close()
		if err := Dataset(t.Context(), t.TempDir(), "S", opts); err == nil || !strings.Contains(err.Error(), "gave up after 2 attempts") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("cancelled while waiting", func(t *testing.T) {
		s := newServer(t, body)
		s.before = func(n int, w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(500); return true }
		opts := s.options()
		opts.backoff = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := Dataset(ctx, t.TempDir(), "S", opts); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// A transport answers requests without a network, so that time can be faked.
type transport func(r *http.Request) *http.Response

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r), nil }

// drip is a body that takes its time before every piece.
type drip struct {
	ctx   context.Context
	data  []byte
	pause time.Duration
}

func (d *drip) Read(p []byte) (int, error) {
	if len(d.data) == 0 {
		return 0, io.EOF
	}
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(d.pause):
	}
	n := copy(p, d.data[:min(len(d.data), 200)])
	d.data = d.data[n:]
	return n, nil
}

func (d *drip) Close() error { return nil }

func TestFetchTimes(t *testing.T) {
	body := small.zip(t, "S")
	fetch := func(t *testing.T, attempts int, answer transport) (time.Duration, error) {
		t.Helper()
		start := time.Now()
		err := Dataset(t.Context(), t.TempDir(), "S", Options{BaseURL: "http://127.0.0.1", attempts: attempts, Client: &http.Client{Transport: answer}})
		return time.Since(start), err
	}
	slow := func(pause time.Duration) transport {
		return func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: 200, ContentLength: int64(len(body)), Body: &drip{r.Context(), body, pause}}
		}
	}
	synctest.Test(t, func(t *testing.T) {
		if took, err := fetch(t, 1, slow(50*time.Second)); err != nil || took < 3*time.Minute {
			t.Errorf("slow but steady: %v after %v", err, took)
		}
		if took, err := fetch(t, 1, slow(61*time.Second)); err == nil || !strings.Contains(err.Error(), "no data for 1m0s") || took != time.Minute {
			t.Errorf("too slow: %v after %v", err, took)
		}
		failing := func(after string) transport {
			return func(*http.Request) *http.Response {
				return &http.Response{StatusCode: 503, Status: "503 Service Unavailable", Header: http.Header{"Retry-After": {after}}, Body: http.NoBody}
			}
		}
		if took, err := fetch(t, 0, failing("")); err == nil || took != (1+2+4+8)*time.Second {
			t.Errorf("five failures: %v after %v, want 15 s", err, took)
		}
		if took, err := fetch(t, 3, failing("7")); err == nil || took != (7+7)*time.Second {
			t.Errorf("three failures with Retry-After: 7: %v after %v, want 14 s", err, took)
		}
		if took, err := fetch(t, 9, failing("")); err == nil || took != (1+2+4+8+16+32+60+60)*time.Second {
			t.Errorf("nine failures: %v after %v, want 183 s", err, took)
		}
	})
}

func TestFetchRefuses(t *testing.T) {
	body := small.zip(t, "S")
	damaged := slices.Clone(body)
	damaged[bytes.Index(body, []byte("S_A.txt"))+len("S_A.txt")+2] ^= 0xff
	for _, c := range []struct {
		name   string
		before func(n int, w http.ResponseWriter, r *http.Request) bool
		change func(o *Options)
		check  func(error) bool
		want   string
	}{
		{"404", func(_ int, w http.ResponseWriter, r *http.Request) bool { http.NotFound(w, r); return true }, nil,
			func(err error) bool { var e *HTTPError; return errors.As(err, &e) && e.Code == 404 }, "404 Not Found (is the name spelled"},
		{"403", func(_ int, w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(403); return true }, nil,
			func(err error) bool { var e *HTTPError; return errors.As(err, &e) && e.Code == 403 }, "403 Forbidden"},
		{"204", func(_ int, w http.ResponseWriter, r *http.Request) bool { w.WriteHeader(204); return true }, nil, nil, "204 No Content"},
		{"declared too large", nil, func(o *Options) { o.maxBytes = int64(len(body)) - 1 },
			func(err error) bool { return errors.Is(err, dataset.ErrTooLarge) }, fmt.Sprintf("%d bytes, limit %d", len(body), len(body)-1)},
		{"too large without saying so", func(_ int, w http.ResponseWriter, r *http.Request) bool {
			for range 100 {
				w.Write(body)
				w.(http.Flusher).Flush()
			}
			return true
		}, func(o *Options) { o.maxBytes = int64(len(body)) * 3 },
			func(err error) bool { return errors.Is(err, dataset.ErrTooLarge) }, "more than"},
		{"a web page", func(_ int, w http.ResponseWriter, r *http.Request) bool {
			fmt.Fprint(w, "<html>moved</html>")
			return true
		}, nil, nil, "not a complete zip archive"},
		{"a damaged archive", func(_ int, w http.ResponseWriter, r *http.Request) bool { w.Write(damaged); return true }, nil, nil, "S/S_A.txt"},
		{"an empty answer", func(_ int, w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Length", "0")
			return true
		}, nil, nil, "the server's answer is empty"},
		{"a hostile archive", func(_ int, w http.ResponseWriter, r *http.Request) bool {
			w.Write(zipOf(t, map[string]string{"../x": ""}))
			return true
		}, nil, nil, "leads out of the archive"},
		{"redirections without end", func(_ int, w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path, http.StatusFound)
			return true
		}, func(o *Options) { o.Client = nil }, nil, "redirection refused: more than 10"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newServer(t, body)
			s.before = c.before
			opts := s.options()
			if c.change != nil {
				c.change(&opts)
			}
			dir := t.TempDir()
			err := Dataset(t.Context(), dir, "S", opts)
			if err == nil || !strings.Contains(err.Error(), c.want) || c.check != nil && !c.check(err) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
			if !strings.Contains(fmt.Sprint(err), s.URL) {
				t.Errorf("error %q does not name the URL", err)
			}
			if names := ls(t, dir); len(names) > 0 {
				t.Errorf("left behind: %v", names)
			}
			if n := len(s.log()); n != 1 && c.name != "redirections without end" {
				t.Errorf("%d requests, want 1", n)
			}
		})
	}

	s := newServer(t, body)
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	for _, c := range []struct {
		name, dir, base, want string
	}{
		{"../S", t.TempDir(), "", "not the name of a data set"},
		{"", t.TempDir(), "", "not the name of a data set"},
		{"S", t.TempDir(), "ftp://127.0.0.1/tu", "not of the form https://host/path"},
		{"S", t.TempDir(), "tu", "not of the form https://host/path"},
		{"S", t.TempDir(), "http://[", "base URL"},
		{"S", file, "", "not a directory"},
	} {
		opts := s.options()
		if c.base != "" {
			opts.BaseURL = c.base
		}
		if err := Dataset(t.Context(), c.dir, c.name, opts); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Fetch(%q, %q, %+v) = %v; want an error with %q", c.name, c.dir, opts, err, c.want)
		}
	}
	if n := len(s.log()); n > 0 {
		t.Errorf("%d requests were made nevertheless", n)
	}
}

func TestCheckRedirect(t *testing.T) {
	request := func(u string) *http.Request {
		v, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		return &http.Request{URL: v}
	}
	secure, plain := request("https://example.org/a"), request("http://example.org/b")
	for _, c := range []struct {
		from, to *http.Request
		ok       bool
	}{{secure, secure, true}, {plain, plain, true}, {plain, secure, true}, {secure, plain, false}} {
		if err := checkRedirect(c.to, []*http.Request{c.from}); (err == nil) != c.ok {
			t.Errorf("from %v to %v: %v", c.from.URL, c.to.URL, err)
		}
	}
}

func TestVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tu")
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	path := small.archive(t, dir, "S")
	sum, err := dataset.SumFile(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Repeat("0", 64)
	verify := func(want string, ok bool) {
		t.Helper()
		v, err := Verify(t.Context(), dir, "S")
		var sumErr *SumError
		if v.Source != want || v.Sum != sum || v.Path != path || ok && err != nil || !ok && !errors.As(err, &sumErr) {
			t.Errorf("Verify = %+v, %v; want source %q, ok %t", v, err, want, ok)
		}
	}
	verify("", true)
	write(t, filepath.Join(dir, "..", "SHA256SUMS"), "# a comment\n"+other+"  S.zip\n"+sum+" *tu/S.zip\r\n")
	verify("SHA256SUMS", true)
	write(t, filepath.Join(dir, "SHA256SUMS"), other+"  S.zip\n")
	verify("SHA256SUMS", false)
	write(t, path+".sha256", strings.ToUpper(sum)+"  S.zip\n")
	verify("recorded", true)
	write(t, path+".sha256", sum+"  T.zip\n")
	if _, err := Verify(t.Context(), dir, "S"); err == nil || !strings.Contains(err.Error(), "S.zip.sha256: no SHA-256 sum of S.zip") {
		t.Errorf("a record of something else: %v", err)
	}
	os.Remove(path + ".sha256")
	os.Remove(filepath.Join(dir, "SHA256SUMS"))

	write(t, path, "no archive")
	sum, _ = dataset.SumFile(t.Context(), path)
	write(t, filepath.Join(dir, "..", "SHA256SUMS"), sum+"  tu/S.zip\n")
	if v, err := Verify(t.Context(), dir, "S"); err == nil || !strings.Contains(err.Error(), "not a complete zip archive") || v.Source != "SHA256SUMS" {
		t.Errorf("Verify of no archive = %+v, %v", v, err)
	}
	if _, err := Verify(t.Context(), dir, "T"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Verify of nothing: %v", err)
	}
	if _, err := Verify(t.Context(), dir, "../T"); err == nil || !strings.Contains(err.Error(), "not the name") {
		t.Errorf("Verify of a path: %v", err)
	}
	if err := os.Mkdir(filepath.Join(dir, "D.zip"), 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := Verify(t.Context(), dir, "D"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Verify of a folder: %v", err)
	}
}

func TestRangeSize(t *testing.T) {
	for _, c := range []struct {
		span       string
		from, size int64
	}{
		{"bytes 5-9/10", 5, 10},
		{"bytes 0-0/1", 0, 1},
		{"bytes 5-9/10", 4, 0},
		{"bytes */10", 5, 0},
		{"bytes 5-9/*", 5, 0},
		{"bytes */*", 0, 0},
		{"bytes 5-8/10", 5, 0}, // stops short
		{"bytes 9-5/10", 9, 0},
		{"bytes 5-10/10", 5, 0},
		{"bytes -5/10", 5, 0},
		{"bytes 5/10", 5, 0},
		{"bytes 5-9", 5, 0},
		{"bytes +5-9/10", 5, 0},
		{"items 5-9/10", 5, 0},
		{"bytes 5-9/99999999999999999999", 5, 0},
		{"", 0, 0},
	} {
		if size := rangeSize(c.span, c.from); size != c.size {
			t.Errorf("rangeSize(%q, %d) = %d, want %d", c.span, c.from, size, c.size)
		}
	}
}

func TestRetryAfter(t *testing.T) {
	for s, want := range map[string]time.Duration{
		"": 0, "3": 3 * time.Second, "-1": 0, "Wed, 21 Oct 2015 07:28:00 GMT": 0, "86400": maxRetryAfter, "99999999999999999999": 0, "4611686018427387904": maxRetryAfter,
	} {
		if got := retryAfter(s); got != want {
			t.Errorf("retryAfter(%q) = %v, want %v", s, got, want)
		}
	}
}

// FuzzContentRange checks that what is accepted makes sense as a size.
func FuzzContentRange(f *testing.F) {
	for _, s := range []string{"bytes 5-9/10", "bytes */10", "bytes 5-9/*", "bytes 0-0/1", "bytes -1-9/10", "", "bytes 9223372036854775807-9223372036854775807/*"} {
		f.Add(s, int64(5))
	}
	f.Fuzz(func(t *testing.T, s string, from int64) {
		if size := rangeSize(s, from); size != 0 && (size <= from || !strings.Contains(s, fmt.Sprint(size))) {
			t.Errorf("%q from %d: size %d", s, from, size)
		}
	})
}

// FuzzSums checks that a list of any content yields a sum only where it has one.
func FuzzSums(f *testing.F) {
	sum := strings.Repeat("0a", 32)
	for _, s := range []string{sum + "  S.zip\n", sum + " *S.zip\r\n", "\n" + sum + "  T.zip", sum, sum + " S.zip", "x  S.zip"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, list string) {
		got := parseSums(list, "S.zip")
		if got != "" && (!isSum(got) || !strings.Contains(strings.ToLower(list), got) || !strings.Contains(list, "S.zip")) {
			t.Errorf("%q: %q", list, got)
		}
	})
}

// TestFetchRenamedMember leaves a whole archive of the right length under the
// right ETag, one of whose members has another name: no checksum covers that.
func TestFetchRenamedMember(t *testing.T) {
	body := bare.zip(t, "S")
	s := newServer(t, body)
	for part := range bare {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "S.zip.part"), string(bytes.ReplaceAll(body, []byte("S_"+part), []byte("S-"+part))))
		write(t, filepath.Join(dir, "S.zip.part.json"), `{"url": "`+s.URL+`/tu/S.zip", "etag": "\"v1\""}`)
		if err := Dataset(t.Context(), dir, "S", s.options()); err != nil {
			t.Fatal(err)
		}
		fetched(t, dir, body)

		path := filepath.Join(dir, "S.zip")
		if err := os.Remove(path + ".sha256"); err != nil {
			t.Fatal(err)
		}
		write(t, path, string(bytes.ReplaceAll(body, []byte("S_"+part), []byte("S-"+part))))
		if _, err := Verify(t.Context(), dir, "S"); err == nil || !strings.Contains(err.Error(), "no member S_"+part+".txt") {
			t.Errorf("verified without %s: %v", part, err)
		}
	}
}

// FuzzPart leaves arbitrary remains of an earlier download in the folder. Whatever
// they are, the next one must succeed with an archive that can be read: with the
// right bytes if the remains are those of that archive. Remains that claim to be
// and differ where a zip file has no checksum, in a time stamp or in the name of
// a member that a set may lack, cannot be told.
func FuzzPart(f *testing.F) {
	body := small.zip(f, "S")
	s := newServer(f, body)
	const meta = `{"url": "SERVER/tu/S.zip", "etag": "\"v1\""}`
	f.Add(body[:100], meta)
	f.Add(body, meta)
	f.Add([]byte("not the archive's bytes, under its ETag"), meta)
	f.Add(append([]byte{0}, body[1:]...), meta)
	f.Add([]byte("x"), strings.Replace(meta, "v1", "v0", 1))
	f.Add([]byte{}, "{}")
	f.Add([]byte("x"), "")
	f.Fuzz(func(t *testing.T, left []byte, meta string) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "S.zip.part"), string(left))
		write(t, filepath.Join(dir, "S.zip.part.json"), strings.ReplaceAll(meta, "SERVER", s.URL))
		if err := Dataset(t.Context(), dir, "S", s.options()); err != nil {
			t.Fatal(err)
		}
		if bytes.HasPrefix(body, left) {
			fetched(t, dir, body)
		} else if _, err := dataset.LoadTU(t.Context(), filepath.Join(dir, "S.zip"), dataset.Options{}); err != nil {
			t.Error(err)
		}
	})
}

func TestFetchMoleculeNet(t *testing.T) {
	files := map[string]string{
		"/x/HIV.csv":        "smiles,activity,HIV_active\nCCO,CI,0\n",
		"/x/clintox.csv.gz": string(zipped(t, clintoxText)),
		"/x/bace.csv":       "mol,Klasse\nC,1\n",
		"/x/tox21.csv.gz":   "smiles,NR-AR\nCCO,1\n",
		"/x/sider.csv.gz":   string(zipped(t, "")),
	}
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		if text, ok := files[r.URL.Path]; ok {
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
			return
		}
		http.NotFound(w, r)
	}))
	defer s.Close()
	opts := Options{BaseURL: s.URL + "/x", Client: s.Client(), backoff: time.Millisecond}
	dir := t.TempDir()
	for _, name := range []string{"hiv", "clintox"} {
		if err := Dataset(t.Context(), dir, name, opts); err != nil {
			t.Fatal(err)
		}
		if _, err := moleculenet.Open(t.Context(), dir, name); err != nil {
			t.Error(err)
		}
	}
	if got, want := ls(t, dir), []string{"clintox.csv.gz", "clintox.csv.gz.sha256", "hiv.csv", "hiv.csv.sha256"}; !slices.Equal(got, want) {
		t.Errorf("the folder holds %v, want %v", got, want)
	}
	// What is there is checked, not fetched.
	n := len(asked)
	if err := Dataset(t.Context(), dir, "hiv", opts); err != nil || len(asked) != n {
		t.Errorf("again: %v after %d requests", err, len(asked)-n)
	}
	write(t, filepath.Join(dir, "hiv.csv"), "smiles,HIV_active\nCCO,1\n")
	if sum := (*SumError)(nil); !errors.As(Dataset(t.Context(), dir, "hiv", opts), &sum) {
		t.Error("a changed file is not noticed")
	}
	for name, want := range map[string]string{
		"bace":  `no column "Class"`,
		"tox21": "gzip: invalid header",
		"sider": "want a header, have an empty file",
		"muv":   "404",
	} {
		if err := Dataset(t.Context(), dir, name, opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %s", name, err, want)
		}
	}
	if len(ls(t, dir)) != 4 {
		t.Errorf("left behind: %v", ls(t, dir))
	}
}

// TestMoleculeNetURL: without a base URL it is the official one that is asked.
func TestMoleculeNetURL(t *testing.T) {
	var asked []string
	client := &http.Client{Transport: transport(func(r *http.Request) *http.Response {
		asked = append(asked, r.URL.String())
		return &http.Response{Status: "404 Not Found", StatusCode: 404, Body: http.NoBody}
	})}
	err := Dataset(t.Context(), t.TempDir(), "bbbp", Options{Client: client})
	if want := []string{MoleculeNetURL + "/BBBP.csv"}; err == nil || !slices.Equal(asked, want) {
		t.Errorf("asked for %v, want %v: %v", asked, want, err)
	}
}

// TestVerifyMoleculeNet: a table is checked to its last row, compressed or not,
// whatever the official file is.
func TestVerifyTable(t *testing.T) {
	const good, short = "smiles,activity,HIV_active\nCCO,CI,0\n", "smiles,activity,HIV_active\nCCO,CI,0\nC,CI\n"
	for file, text := range map[string]string{"hiv.csv": good, "hiv.csv.gz": string(zipped(t, good)), "HIV.csv": good} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, file), text)
		v, err := Verify(t.Context(), dir, "hiv")
		if sum := fmt.Sprintf("%x", sha256.Sum256([]byte(text))); err != nil || v != (Verification{Path: filepath.Join(dir, file), Sum: sum, Graphs: 1}) {
			t.Errorf("%s: %+v, %v", file, v, err)
		}
	}
	for file, text := range map[string]string{"hiv.csv": short, "hiv.csv.gz": string(zipped(t, short))} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, file), text)
		if _, err := Verify(t.Context(), dir, "hiv"); err == nil || !strings.Contains(err.Error(), file+":3: ") {
			t.Errorf("%s: error %v, want one for line 3", file, err)
		}
	}
	if _, err := Verify(t.Context(), t.TempDir(), "hiv"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	if _, err := Verify(t.Context(), t.TempDir(), "zinc"); err == nil {
		t.Error("no such set, and no error")
	}
}
