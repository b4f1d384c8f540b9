// Package progress shows how far a long run has come: one bar at the bottom of
// a terminal, or a plain line now and then where there is none.
//
// The mental model: the run counts ([Bar.Add], [Bar.Message]), from any number
// of goroutines, and never draws; one goroutine draws, at a fixed rate, and
// only what has changed. Each frame is one write, so that nothing flickers:
//
//	bar := progress.Start(os.Stderr, progress.Options{Label: "MUTAG", Unit: "epoch", Total: 100})
//	defer bar.Stop()
//	for epoch := range 100 {
//		…
//		bar.Add(1)
//		bar.Message("loss %.3f", loss)
//	}
//
// Whatever else is written to the terminal meanwhile must go through the bar,
// which is an [io.Writer]: it clears itself, writes, and comes back below.
package progress

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

const (
	frame      = 100 * time.Millisecond // between two frames on a terminal
	plain      = 10 * time.Second       // between two lines where there is none
	minWidth   = 60                     // a narrower terminal shows no bar, only figures
	maxCells   = 30                     // the bar's length on a wide one
	clearRight = "\x1b[K"               // ANSI: erase from the cursor to the end of the line
)

// Options describe a run.
type Options struct {
	Label string // what is running; printed first
	Unit  string // what is counted, singular, as in "epoch"
	Total int    // how many there are in all; 0 if nobody knows
}

// Bar is a run's progress. Its methods may be called concurrently.
type Bar struct {
	w     io.Writer
	opts  Options
	width func() int // the terminal's; nil where there is none
	start time.Time
	quit  chan struct{}
	done  chan struct{}
	once  sync.Once

	mu      sync.Mutex
	count   int // done, skipped included
	skipped int
	message string
	line    string // what the terminal shows now
}

// Start shows a bar on w, if that is a terminal, and plain lines otherwise.
// The caller must call [Bar.Stop].
func Start(w io.Writer, opts Options) *Bar {
	return start(w, opts, terminal(w))
}

// terminal returns a function that measures the width of the terminal behind w,
// or nil if there is no terminal that understands escape codes.
func terminal(w io.Writer) func() int {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) || os.Getenv("TERM") == "dumb" {
		return nil
	}
	return func() int {
		width, _, err := term.GetSize(int(f.Fd()))
		if err != nil || width <= 0 { // a pseudo-terminal without a size
			return 80
		}
		return width
	}
}

func start(w io.Writer, opts Options, width func() int) *Bar {
	b := &Bar{
		w:     w,
		opts:  opts,
		width: width,
		start: time.Now(),
		quit:  make(chan struct{}),
		done:  make(chan struct{}),
	}
	go b.run()
	return b
}

func (b *Bar) run() {
	defer close(b.done)
	every := frame
	if b.width == nil {
		every = plain
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			b.mu.Lock()
			b.draw()
			b.mu.Unlock()
		case <-b.quit:
			return
		}
	}
}

// Add counts n more as done.
func (b *Bar) Add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count += n
}

// Skip counts n more as done earlier: they say nothing about the speed of this
// run.
func (b *Bar) Skip(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.count += n
	b.skipped += n
}

// Message sets the text after the bar.
func (b *Bar) Message(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.message = strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ") // one line
}

// Write writes p, which should be whole lines, above the bar.
func (b *Bar) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.line == "" {
		return b.w.Write(p)
	}
	shown := b.line
	b.line = ""
	if _, err := io.WriteString(b.w, "\r"+clearRight); err != nil {
		return 0, err
	}
	n, err := b.w.Write(p)
	if err == nil && bytes.HasSuffix(p, []byte("\n")) {
		b.line = shown
		_, err = io.WriteString(b.w, shown)
	}
	return n, err
}

// Stop removes the bar, or writes a last line if there is no terminal. What is
// written through the bar afterwards passes unchanged. Further calls do
// nothing.
func (b *Bar) Stop() {
	b.once.Do(func() {
		close(b.quit)
		<-b.done
		b.mu.Lock()
		defer b.mu.Unlock()
		if b.width == nil {
			b.draw()
			return
		}
		if b.line != "" {
			io.WriteString(b.w, "\r"+clearRight)
			b.line = ""
		}
	})
}

// draw writes one frame, with the lock held. Errors are ignored: a run must not end
// because nobody is watching.
func (b *Bar) draw() {
	if b.width == nil {
		io.WriteString(b.w, b.render(0)+"\n")
		return
	}
	// The last column stays free: a character there makes some terminals
	// start a new line.
	if line := b.render(max(1, b.width()-1)); line != b.line {
		b.line = line
		io.WriteString(b.w, "\r"+line+clearRight)
	}
}

// render returns the line for a terminal of that width, or the plain line for
// width 0. A line that is too long is cut off.
func (b *Bar) render(width int) string {
	elapsed := time.Since(b.start)
	var parts []string
	if b.opts.Label != "" {
		parts = append(parts, b.opts.Label)
	}
	if b.opts.Total > 0 {
		percent := max(0, min(100, 100*b.count/b.opts.Total)) // rounded down: 100 % means done
		parts = append(parts, fmt.Sprintf("%3d%%", percent))
		if width >= minWidth {
			// The bar's length depends on nothing but the terminal's, so that
			// what follows it does not move.
			cells := min(maxCells, width/4)
			full := cells * percent / 100
			parts = append(parts, "["+strings.Repeat("#", full)+strings.Repeat("-", cells-full)+"]")
		}
		parts = append(parts, fmt.Sprintf("%d/%d", b.count, b.opts.Total))
	} else {
		parts = append(parts, fmt.Sprint(b.count))
	}
	if fresh := b.count - b.skipped; fresh > 0 && elapsed > 0 {
		parts = append(parts, rate(float64(fresh)/elapsed.Seconds(), b.opts.Unit))
		if left := b.opts.Total - b.count; left > 0 {
			eta := time.Duration(float64(elapsed) / float64(fresh) * float64(left))
			parts = append(parts, "ETA "+eta.Round(time.Second).String())
		} else {
			parts = append(parts, "in "+elapsed.Round(time.Second).String())
		}
	}
	if b.message != "" {
		parts = append(parts, b.message)
	}
	line := []rune(strings.Join(parts, "  "))
	if width > 0 && len(line) > width {
		line = line[:width]
	}
	return string(line)
}

// rate formats a speed in units a second or, below one, in seconds a unit.
func rate(perSecond float64, unit string) string {
	if perSecond < 1 {
		return fmt.Sprintf("%.2f s/%s", 1/perSecond, unit)
	}
	return fmt.Sprintf("%.2f %s/s", perSecond, unit)
}
