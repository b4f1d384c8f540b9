//go:build unix

package report_test

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// browser is a headless Chromium, driven through its pipe by the DevTools protocol.
type browser struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	session string
	id      int
	asked   []string // URLs that the page has asked for
	scripts []string // exceptions of scripts
}

// chromium starts a browser with an empty page. The test is skipped where there is
// none.
func chromium(t *testing.T) *browser {
	t.Helper()
	var path string
	for _, name := range []string{"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome"} {
		if p, err := exec.LookPath(name); err == nil && path == "" {
			path = p
		}
	}
	if path == "" {
		t.Skip("there is no Chromium here (Debian: apt-get install chromium-headless-shell)")
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe", "--user-data-dir="+t.TempDir())
	c.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &browser{t: t, in: in, out: bufio.NewReader(out)}
	t.Cleanup(func() {
		fmt.Fprintf(in, `{"id":0,"method":"Browser.close"}`+"\x00")
		in.Close()
		io.Copy(io.Discard, out)
		c.Wait()
	})
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Network", "Runtime"} {
		b.call(domain+".enable", nil, nil)
	}
	return b
}

// message is one of the protocol.
type message struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

// next reads a message, and notes what the page asks for.
func (b *browser) next() message {
	b.t.Helper()
	text, err := b.out.ReadString(0)
	if err != nil {
		b.t.Fatal("the browser has gone: ", err)
	}
	var m message
	if err := json.Unmarshal([]byte(strings.TrimSuffix(text, "\x00")), &m); err != nil {
		b.t.Fatal(err)
	}
	switch m.Method {
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			b.t.Fatal(err)
		}
		b.asked = append(b.asked, p.Request.URL)
	case "Runtime.exceptionThrown":
		b.scripts = append(b.scripts, string(m.Params))
	}
	return m
}

// call calls a method of the protocol.
func (b *browser) call(method string, params any, result any) {
	b.t.Helper()
	b.id++
	if params == nil {
		params = map[string]any{}
	}
	request := map[string]any{"id": b.id, "method": method, "params": params}
	if b.session != "" {
		request["sessionId"] = b.session
	}
	text, err := json.Marshal(request)
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	if err != nil {
		b.t.Fatal(err)
	}
	m := b.next()
	for m.ID != b.id {
		m = b.next()
	}
	if m.Error != nil {
		err = errors.New(m.Error.Message)
	} else if result != nil {
		err = json.Unmarshal(m.Result, result)
	}
	if err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
}

// open opens a file at a width, and waits until it is there.
func (b *browser) open(path string, width int) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
	b.call("Page.navigate", map[string]any{"url": "file://" + path}, nil)
	for b.next().Method != "Page.loadEventFired" {
	}
}

// eval returns the value of an expression in the page, as JSON.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return string(r.Result.Value)
}

// press presses the mouse's button on the element of a selector.
func (b *browser) press(selector string) {
	b.t.Helper()
	var at struct{ X, Y float64 }
	where := b.eval(fmt.Sprintf(`(e => { e.scrollIntoView({block: "center", inline: "center"}); const r = e.getBoundingClientRect(); return {x: r.x + r.width/2, y: r.y + r.height/2} })(document.querySelector(%q))`, selector))
	if err := json.Unmarshal([]byte(where), &at); err != nil {
		b.t.Fatalf("%s: %v", where, err)
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// prefers sets the system's theme.
func (b *browser) prefers(theme string) {
	b.t.Helper()
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []any{map[string]any{"name": "prefers-color-scheme", "value": theme}}}, nil)
}

// screenshot writes the whole page to a file among the test's artifacts (go test
// -artifacts keeps them).
func (b *browser) screenshot(name string) {
	b.t.Helper()
	var r struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.t.ArtifactDir(), name), data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

const background = `getComputedStyle(document.body).backgroundColor`

// A page in a browser: its tables sort, its theme is the system's until it is chosen,
// a legend hides a series; no width makes it scroll sideways, no script fails, and
// nothing but the file is asked for.
func TestBrowser(t *testing.T) {
	b := chromium(t)
	dir := t.TempDir()
	s := shape{sets: 3, methods: 4, seeds: 4, epochs: 8, metrics: 2}
	made(t, filepath.Join(dir, "a"), 0.5, s)
	made(t, filepath.Join(dir, "b"), 1, s)
	path := filepath.Join(dir, "report.html")
	if err := page(t, "", dir).Save(path); err != nil {
		t.Fatal(err)
	}
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int{1280, 400} {
			b.prefers(theme)
			b.open(path, width)
			if w := b.eval("document.documentElement.scrollWidth"); w != fmt.Sprint(width) {
				t.Errorf("at a width of %d pixels the page is %s wide", width, w)
			}
			if small := b.eval(`Math.min(...[...document.querySelectorAll("svg.plot text")].filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect().height))`); len(small) < 2 {
				t.Errorf("at a width of %d pixels letters are %s pixels high", width, small)
			}
			b.screenshot(fmt.Sprintf("%s-%d.png", theme, width))
		}
	}

	const light, dark = `"rgb(255, 255, 255)"`, `"rgb(22, 24, 29)"`
	for _, step := range []struct{ system, press, want string }{
		{"light", "", light}, {"dark", "", dark}, {"dark", "#theme", light}, {"dark", "#theme", dark}, {"light", "", dark}, {"light", "#theme", light}, {"dark", "", dark},
	} {
		b.prefers(step.system)
		if step.press != "" {
			b.press(step.press)
		}
		if got := b.eval(background); got != step.want {
			t.Errorf("system %s, %s: the background is %s, want %s", step.system, b.eval(`document.getElementById("theme").textContent`), got, step.want)
		}
	}

	// The figures of a column, as they stand in the page, from top to bottom.
	column := func(k int) string {
		return b.eval(fmt.Sprintf(`[...document.querySelector("#differences table").tBodies[0].rows].map(r => r.cells[%d].dataset.v ?? r.cells[%[1]d].textContent)`, k))
	}
	sorted := func(k int, numeric bool, way string) string {
		compare := "a < b ? -1 : 1"
		if numeric {
			compare = "a - b"
		}
		return b.eval(fmt.Sprintf(`(x => x.sort((a, b) => %s(%s)))(%s)`, way, compare, column(k)))
	}
	before := column(3)
	for _, c := range []struct {
		k       int
		numeric bool
		way     string
	}{{3, true, "-"}, {3, true, ""}, {1, false, ""}, {1, false, "-"}} {
		b.press(fmt.Sprintf("#differences thead th:nth-child(%d) button", c.k+1))
		if got, want := column(c.k), sorted(c.k, c.numeric, c.way); got != want {
			t.Errorf("column %d sorted: %s, want %s", c.k, got, want)
		}
	}
	if column(3) == before {
		t.Error("sorting moves no row")
	}
	b.press("#curves .legend button")
	if got := b.eval(`[document.querySelectorAll("#curves [data-hidden]").length > 0, document.querySelectorAll("#seeds [data-hidden]").length]`); got != "[true,0]" {
		t.Errorf("a press on the legend hides series of the section, and of others: %s", got)
	}

	for _, url := range b.asked {
		if url != "file://"+path && url != "about:blank" {
			t.Errorf("the page asks for %s", url)
		}
	}
	for _, e := range b.scripts {
		t.Errorf("a script has failed: %s", e)
	}
}
