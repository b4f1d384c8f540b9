//go:build unix

// Package browsertest drives a headless Chromium in tests.
package browsertest

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Browser is a headless Chromium, driven through its pipe by the DevTools protocol.
type Browser struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	session string
	process int // its number
	id      int
	loads   int      // pages loaded so far
	Asked   []string // URLs that the page has asked for
	Failed  []string // exceptions of scripts, and errors on the console
}

// Start starts a browser with an empty page, and flags of its own. The test is skipped where there is
// none.
func Start(t *testing.T, flags ...string) *Browser {
	t.Helper()
	var path string
	for _, name := range []string{
		"chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "chrome",
	} {
		if p, err := exec.LookPath(name); err == nil && path == "" {
			path = p
		}
	}
	if path == "" {
		t.Skip("there is no Chromium here (Debian: apt-get install chromium-headless-shell)")
	}
	theirIn, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	flags = append(
		flags,
		"--headless",
		"--no-sandbox",
		"--disable-gpu",
		"--hide-scrollbars",
		"--remote-debugging-pipe",
		"--user-data-dir="+t.TempDir(),
	)
	c := exec.Command(path, flags...)
	c.ExtraFiles = []*os.File{theirIn, theirOut}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &Browser{
		t:       t,
		in:      answers,
		out:     bufio.NewReader(out),
		process: c.Process.Pid,
	}
	t.Cleanup(func() {
		fmt.Fprintf(answers, `{"id":0,"method":"Browser.close"}`+"\x00")
		answers.Close()
		io.Copy(io.Discard, out)
		c.Wait()
	})
	var target struct{ TargetID string }
	b.Call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.Call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Page", "Network", "Runtime"} {
		b.Call(domain+".enable", nil, nil)
	}
	return b
}

type message struct {
	ID     int
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  *struct{ Message string }
}

// next reads a message, and notes what the page asks for.
func (b *Browser) next() message {
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
		b.Asked = append(b.Asked, p.Request.URL)
	case "Page.loadEventFired":
		b.loads++
	case "Runtime.exceptionThrown":
		b.Failed = append(b.Failed, string(m.Params))
	case "Runtime.consoleAPICalled":
		var p struct{ Type string }
		if err := json.Unmarshal(m.Params, &p); err != nil {
			b.t.Fatal(err)
		}
		if p.Type == "error" || p.Type == "warning" || p.Type == "assert" {
			b.Failed = append(b.Failed, string(m.Params))
		}
	}
	return m
}

// Call calls a method of the protocol.
func (b *Browser) Call(method string, params any, result any) {
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

// Resize gives the window a size.
func (b *Browser) Resize(width, height int) {
	b.t.Helper()
	b.Call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width":             width,
		"height":            height,
		"deviceScaleFactor": 1,
		"mobile":            false,
	}, nil)
}

// Open opens a page in a window of a size, and waits until it is there.
func (b *Browser) Open(url string, width, height int) {
	b.t.Helper()
	b.Resize(width, height)
	for _, to := range []string{"about:blank", url} { // from a page to a fragment of it nothing loads
		loads := b.loads
		b.Call("Page.navigate", map[string]any{"url": to}, nil)
		for b.loads == loads {
			b.next()
		}
	}
}

// Eval returns the value of an expression in the page, as JSON. It waits for promises.
func (b *Browser) Eval(expression string) string {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.Call(
		"Runtime.evaluate",
		map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true},
		&r,
	)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", expression, r.ExceptionDetails)
	}
	return string(r.Result.Value)
}

// Press presses the mouse's button on the element of a selector.
func (b *Browser) Press(selector string) {
	b.t.Helper()
	var at struct{ X, Y float64 }
	where := b.Eval(fmt.Sprintf(
		`(e => {
			e.scrollIntoView({block: "center", inline: "center", behavior: "instant"});
			const r = e.getBoundingClientRect();
			return {x: r.x + r.width/2, y: r.y + r.height/2}
		})(document.querySelector(%q))`,
		selector,
	))
	if err := json.Unmarshal([]byte(where), &at); err != nil {
		b.t.Fatalf("%s: %v", where, err)
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		b.Call("Input.dispatchMouseEvent", map[string]any{
			"type":       kind,
			"x":          at.X,
			"y":          at.Y,
			"button":     "left",
			"clickCount": 1,
		}, nil)
	}
}

// Prefers sets the system's theme.
func (b *Browser) Prefers(theme string) {
	b.t.Helper()
	b.Call(
		"Emulation.setEmulatedMedia",
		map[string]any{"features": []any{map[string]any{
			"name":  "prefers-color-scheme",
			"value": theme,
		}}},
		nil,
	)
}

// Artifacts reports whether go test keeps files for someone to look at (-artifacts).
func Artifacts() bool { return flag.Lookup("test.artifacts").Value.String() == "true" }

// Screenshot writes the whole page to a file among the test's artifacts, if they are kept:
// without a graphics card a picture takes most of a second.
func (b *Browser) Screenshot(name string) {
	b.t.Helper()
	if !Artifacts() {
		return
	}
	var r struct{ Data string }
	b.Call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &r)
	data, err := base64.StdEncoding.DecodeString(r.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(b.t.ArtifactDir(), name), data, 0o644)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}
