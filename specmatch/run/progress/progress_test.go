package progress

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// screen is a terminal of one endless column of lines: it obeys \r, \n and
// "erase to the right", fails on any other escape code, and counts writes.
type screen struct {
	t      *testing.T
	mu     sync.Mutex
	lines  [][]rune
	col    int
	writes int
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.lines == nil {
		s.lines = [][]rune{nil}
	}
	text := string(p)
	for text != "" {
		last := len(s.lines) - 1
		if rest, ok := strings.CutPrefix(text, clearRight); ok {
			s.lines[last] = s.lines[last][:min(s.col, len(s.lines[last]))]
			text = rest
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
			s.col = 0
		case '\n':
			s.lines, s.col = append(s.lines, nil), 0
		case '\x1b':
			s.t.Errorf("unknown escape code in %q", p)
		default:
			line := append(s.lines[last], make([]rune, max(0, s.col+1-len(s.lines[last])))...)
			line[s.col] = r
			s.lines[last] = line
			s.col++
		}
	}
	return len(p), nil
}

func (s *screen) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lines []string
	for _, l := range s.lines {
		lines = append(lines, string(l))
	}
	return strings.Join(lines, "\n")
}

func (s *screen) want(want string) {
	s.t.Helper()
	if got := s.text(); got != want {
		s.t.Errorf("screen shows\n%s\nwant\n%s", got, want)
	}
}

// wait lets d pass and every goroutine come to rest.
func wait(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func TestTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{t: t}
		var width atomic.Int64
		width.Store(81)
		b := start(s, Options{Label: "MUTAG", Unit: "epoch", Total: 200}, func() int { return int(width.Load()) })
		wait(frame)
		s.want("MUTAG    0%  [--------------------]  0/200")

		b.Add(84)
		b.Message("loss %.3f\nand more", 1.5)
		wait(42*time.Second - frame)
		s.want("MUTAG   42%  [########------------]  84/200  2.00 epoch/s  ETA 58s  loss 1.500 a")

		b.Message("")
		width.Store(40) // the terminal was made narrow
		wait(frame)
		s.want("MUTAG   42%  84/200  2.00 epoch/s  ETA ")

		// Idle frames write only when a figure has changed.
		before := s.writes
		wait(frame / 2)
		if s.writes != before {
			t.Errorf("%d writes without a tick", s.writes-before)
		}

		b.Stop()
		b.Stop()
		s.want("")
		b.Add(1)
		wait(time.Second)
		s.want("")
	})
}

func TestFrameIsOneWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{t: t}
		b := start(s, Options{Unit: "graph", Total: 10}, func() int { return 80 })
		defer b.Stop()
		for i := range 5 {
			b.Add(1)
			wait(frame)
			if s.writes != i+1 {
				t.Fatalf("frame %d took %d writes", i+1, s.writes-i)
			}
		}
		wait(frame / 2)
		for range 1000 {
			b.Message("no frame is drawn by the caller")
		}
		synctest.Wait()
		if s.writes != 5 {
			t.Errorf("updates wrote %d times", s.writes-5)
		}
	})
}

func TestPlain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{t: t}
		b := start(s, Options{Label: "NCI1", Unit: "epoch", Total: 20}, nil)
		b.Skip(10)
		wait(plain)
		b.Add(5)
		b.Message("loss 0.25")
		wait(plain)
		b.Add(5)
		wait(plain / 2)
		b.Stop()
		s.want("NCI1   50%  10/20\n" +
			"NCI1   75%  15/20  4.00 s/epoch  ETA 20s  loss 0.25\n" +
			"NCI1  100%  20/20  2.50 s/epoch  in 25s  loss 0.25\n")
	})
}

func TestWriteThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{t: t}
		b := start(s, Options{Unit: "epoch", Total: 2}, func() int { return 80 })
		fmt.Fprintln(b, "before the first frame")
		wait(frame)
		log := slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		log.Info("read", "graphs", 188)
		const bar = "  0%  [-------------------]  0/2"
		s.want("before the first frame\nlevel=INFO msg=read graphs=188\n" + bar)
		b.Stop()
		log.Info("after")
		s.want("before the first frame\nlevel=INFO msg=read graphs=188\nlevel=INFO msg=after\n")
	})
}

// A reader that goes away does not end the run.
func TestBrokenWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := start(broken{}, Options{Total: 1}, func() int { return 80 })
		wait(frame)
		if _, err := b.Write([]byte("x\n")); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("Write: %v", err)
		}
		b.Stop()
	})
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &screen{t: t}
		b := start(s, Options{Unit: "graph", Total: 4000}, func() int { return 80 })
		var wg sync.WaitGroup
		for worker := range 4 {
			wg.Go(func() {
				for i := range 1000 {
					b.Add(1)
					b.Message("worker %d at %d", worker, i)
					time.Sleep(time.Millisecond)
					if i%100 == 0 {
						fmt.Fprintf(b, "worker %d\n", worker)
					}
				}
			})
		}
		wg.Wait()
		wait(frame)
		if got := s.text(); !strings.Contains(got, "100%") || strings.Count(got, "\n") != 40 {
			t.Errorf("screen shows\n%s", got)
		}
		b.Stop()
	})
}

func TestStartWithoutTerminal(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, w := range []io.Writer{f, new(bytes.Buffer)} {
		b := Start(w, Options{Total: 3})
		if b.width != nil {
			t.Errorf("%T was taken for a terminal", w)
		}
		b.Stop()
	}
	if data, err := os.ReadFile(f.Name()); string(data) != "  0%  0/3\n" {
		t.Errorf("file holds %q, %v", data, err)
	}
}

func TestFigures(t *testing.T) {
	for perSecond, want := range map[float64]string{
		0.001: "1000.00 s/u", 0.5: "2.00 s/u", 1: "1.00 u/s", 9.996: "10.00 u/s", 12.34: "12.34 u/s",
	} {
		if got := rate(perSecond, "u"); got != want {
			t.Errorf("rate(%v) = %q, want %q", perSecond, got, want)
		}
	}
}

func Example() {
	// Standard output of an example is not a terminal, so there is one last line.
	bar := Start(os.Stdout, Options{Label: "resumed", Unit: "seed", Total: 5})
	bar.Skip(5)
	bar.Stop()
	// Output: resumed  100%  5/5
}
