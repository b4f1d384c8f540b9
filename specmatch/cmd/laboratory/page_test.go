//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/specmatch/specmatch/specmatch/report/browsertest"
	"github.com/specmatch/specmatch/specmatch/report/webpage"
)

// built returns the page, which takes minutes to compile; SPECMATCH_LABORATORY may name a folder that has it.
var built = sync.OnceValues(func() (webpage.Files, error) {
	dir := os.Getenv("SPECMATCH_LABORATORY")
	if dir == "" {
		return build(testContext)
	}
	parts := webpage.Files{}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if err == nil {
			parts[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
		}
	}
	return parts, err
})

// served is the page in a browser.
type served struct {
	*browsertest.Browser
	t      *testing.T
	url    string
	server *httptest.Server
}

// serve returns the page in a browser. Its tests run with SPECMATCH_LARGE, as .ci/run sets.
func serve(t *testing.T) *served {
	t.Helper()
	if os.Getenv("SPECMATCH_LARGE") == "" {
		t.Skip("compiles the engine and runs it in a browser, a minute: set SPECMATCH_LARGE=1")
	}
	b := browsertest.Start(t)
	parts, err := built()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(parts.Handler(policy))
	t.Cleanup(server.Close)
	p := &served{b, t, server.URL + "/", server}
	t.Cleanup(func() {
		for _, url := range p.Asked {
			own := strings.HasPrefix(url, server.URL+"/") || strings.HasPrefix(url, "blob:") ||
				strings.HasPrefix(url, "data:") || strings.HasPrefix(url, "file:")
			if !own && url != "about:blank" {
				t.Errorf("the page asks for %s", url)
			}
		}
		for _, e := range p.Failed {
			t.Errorf("a script has failed: %s", e)
		}
	})
	return p
}

func (p *served) open(width, height int) {
	p.t.Helper()
	p.Open(p.url, width, height)
	p.wait("document.documentElement.dataset.ready")
}

// wait waits until an expression is true in the page.
func (p *served) wait(expression string) {
	p.t.Helper()
	until := time.Now().Add(5 * time.Minute) // the machine may do other things
	for p.Eval("!!("+expression+")") != "true" {
		if time.Now().After(until) || len(p.Failed) > 0 {
			p.t.Fatalf("waited in vain for %s; the page says %s %s", expression,
				p.text("#status"), p.text("#message"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// idle waits until no task runs.
func (p *served) idle() { p.t.Helper(); p.wait("!running") }

func (p *served) text(selector string) (text string) {
	p.js(fmt.Sprintf(`return document.querySelector(%q).textContent`, selector), &text)
	return text
}

// js runs statements and decodes what they return.
func (p *served) js(body string, v any) {
	p.t.Helper()
	text := p.Eval("(async () => {" + body + "})()")
	if v != nil && text != "" {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			p.t.Fatalf("%s: %v", text, err)
		}
	}
}

// drop drops a file on the page.
func (p *served) drop(name string, content []byte) {
	p.t.Helper()
	p.js(fmt.Sprintf(`const bytes = Uint8Array.from(atob(%q), c => c.charCodeAt(0));
		const d = new DataTransfer();
		d.items.add(new File([bytes], %q));
		dispatchEvent(new DragEvent("drop", { dataTransfer: d, bubbles: true, cancelable: true }));
		while (!running && !$("#message").textContent) await new Promise(r => setTimeout(r, 5))`,
		encode(content), name), nil)
}

// change sets the value of an element.
func (p *served) change(selector, value string) {
	p.t.Helper()
	p.js(fmt.Sprintf(`const e = document.querySelector(%q); e.value = %q;
		e.dispatchEvent(new Event("input")); e.dispatchEvent(new Event("change"))`, selector, value), nil)
}

// saved returns what the page downloads when a button is pressed.
func (p *served) saved(button string) (name string, content []byte) {
	p.t.Helper()
	p.js(`window.saved = null; if (!window.make) {
		window.make = URL.createObjectURL;
		URL.createObjectURL = b => { window.saved = b; return make(b) };
		HTMLAnchorElement.prototype.click = function () { window.savedAs = this.download }
	}`, nil)
	p.js(fmt.Sprintf(`document.querySelector(%q).click()`, button), nil)
	p.wait("window.saved && !running")
	var file struct {
		Name string
		Text []byte
	}
	p.js(`const bytes = new Uint8Array(await saved.arrayBuffer());
		let s = ""; for (const c of bytes) s += String.fromCharCode(c);
		return { Name: savedAs, Text: btoa(s) }`, &file)
	return file.Name, file.Text
}

// tool is the command line, built once.
var tool = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "laboratory")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "specmatch")
	out, err := exec.Command("go", "build", "-o", path, "../specmatch").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return path, err
})

// specmatch runs the command line.
func specmatch(t *testing.T, args ...string) {
	t.Helper()
	path, err := tool()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(path, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
}

// compareTables reports cells of the second table that differ from the columns of these names in the first one.
func compareTables(t *testing.T, label string, page, program []byte) {
	t.Helper()
	read := func(text []byte) (map[string]int, [][]string) {
		rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
		if err != nil || len(rows) < 2 {
			t.Fatalf("%s: %v", label, err)
		}
		columns := map[string]int{}
		for k, name := range rows[0] {
			columns[name] = k
		}
		return columns, rows[1:]
	}
	ours, a := read(page)
	theirs, b := read(program)
	if len(a) != len(b) {
		t.Fatalf("%s: %d rows, the program has %d", label, len(a), len(b))
	}
	far := 0.0
	for name, column := range theirs {
		k, ok := ours[name]
		if !ok {
			t.Errorf("%s: no column %s", label, name)
			continue
		}
		for i := range b {
			x, errX := strconv.ParseFloat(a[i][k], 64)
			y, errY := strconv.ParseFloat(b[i][column], 64)
			if errX != nil || errY != nil {
				if a[i][k] != b[i][column] {
					t.Errorf("%s: row %d, %s: %s, the program has %s", label, i, name, a[i][k], b[i][column])
				}
				continue
			}
			far = max(far, math.Abs(x-y)/max(1, math.Abs(y)))
		}
	}
	t.Logf("%s: %d rows of %d columns are equal to %.1e", label, len(b), len(theirs), far)
	if far > 1e-5 {
		t.Errorf("%s: off by %v", label, far)
	}
}

// molecules returns the header and the first n rows of a packed table of ../shared.
func molecules(t *testing.T, name string, n int) []byte {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "..", "..", "..", "shared", "data", name))
	if err != nil {
		t.Skipf("without data: %v", err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfterN(text, []byte("\n"), n+2)
	return bytes.Join(lines[:min(n+1, len(lines))], nil)
}

// TestSize: the page is small, compressed, and nothing on it comes from elsewhere.
func TestSize(t *testing.T) {
	serve(t)
	parts, err := built()
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for name, part := range parts {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(part)
		z.Close()
		size += packed.Len()
		if name != "engine.js" && (bytes.Contains(part, []byte("http://")) || bytes.Contains(part, []byte("https://"))) {
			t.Errorf("%s names another host", name)
		}
	}
	if t.Logf("%.2f MB compressed", float64(size)/1e6); size > 12e6 {
		t.Errorf("the page has %d bytes, compressed", size)
	}
}

// TestTools: all that the page does to the molecules of testdata, with the command line's results.
func TestTools(t *testing.T) {
	p := serve(t)
	p.open(1280, 900)
	path := filepath.Join("..", "..", "..", "testdata", "molecules.csv")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	p.drop("molecules.csv", append(text, "bad,C1CC,\n"...))
	p.idle()
	if got := p.text("#rejected summary") + p.text("#rejected tbody"); !strings.Contains(got, "ring 1 is not closed") ||
		!strings.Contains(got, "28bad") && !strings.Contains(got, "C1CC") {
		t.Errorf("what cannot be used: %s", got)
	}
	dir := t.TempDir()
	out := filepath.Join(dir, "out.csv")
	own := filepath.Join(dir, "own.csv")
	if err := os.WriteFile(own, text, 0o666); err != nil {
		t.Fatal(err)
	}
	read := func() []byte {
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	_, page := p.saved("#save-csv")
	specmatch(t, "predict", "-in", own, "-out", out, "-model", "admet", "-level", "0.9", "-distance", "-id", "name")
	compareTables(t, "admet", page, read())
	_, vectors := p.saved("#save-vectors")
	specmatch(t, "embed", "-in", own, "-out", out, "-id", "name")
	compareTables(t, "vectors", vectors, read())
	name, html := p.saved("#save-html")
	if !strings.HasSuffix(name, ".html") || bytes.Count(html, []byte("<svg")) < 20 {
		t.Errorf("%s has %d drawings", name, bytes.Count(html, []byte("<svg")))
	}

	p.Press("#table tbody tr:nth-child(4) .name")
	p.wait(`document.querySelector("#explanation circle")`)
	p.change("#search-text", "[OX2H]")
	p.Press("#search button")
	p.idle()
	if got := p.text("#shown"); !strings.Contains(got, "with [OX2H]") {
		t.Errorf("a search: %s", got)
	}
	p.change("#search-text", "c1(")
	p.Press("#search button")
	p.wait(`/smarts/.test($("#message").textContent)`)
	p.idle()
	p.Press("#cluster-run")
	p.idle()
	p.Press("#pick-run")
	p.idle()
	p.Press("#map-run")
	p.idle()
	p.Press("#points")
	if p.Eval("table.chosen > 0 && document.querySelectorAll('#table tr.chosen').length") != "1" {
		t.Error("a click on the map chooses nothing")
	}

	p.change("#target", "logS")
	p.Press("#fit button")
	p.idle()
	if got := p.text("#fit-result"); !strings.Contains(got, "mean absolute error") {
		t.Errorf("a fit: %s %s", got, p.text("#message"))
	}
	_, page = p.saved("#save-csv")
	_, model := p.saved("#save-model")
	file := filepath.Join(dir, "mine.safetensors")
	if err := os.WriteFile(file, model, 0o666); err != nil {
		t.Fatal(err)
	}
	specmatch(t, "predict", "-in", own, "-out", out, "-model", file, "-id", "name")
	program := bytes.Replace(read(), []byte("id,logS"), []byte("id,predicted_logS"), 1)
	compareTables(t, "own model", page, program)
	// A file may have the name of a model of the page.
	const complete = "data.rows.filter(r => r.values.admet?.length === 56).length"
	count := p.Eval(complete)
	for i, name := range []string{"again", "vectors", "admet"} {
		p.drop(name+".safetensors", model)
		p.idle()
		got := p.text("#table thead")
		if strings.Count(got, "logS") < 3+i || p.Eval(complete) != count {
			t.Errorf("after a model file %s is dropped: %s %s", name, got, p.text("#message"))
		}
	}
	if _, again := p.saved("#save-vectors"); !bytes.Equal(again, vectors) {
		t.Error("the vectors are others after a model file is dropped")
	}

	// Nothing can connect, not even a worker.
	var refused int
	p.js(`let n = 0;
		try { await fetch("/") } catch { n++ }
		const w = new Worker(URL.createObjectURL(new Blob(["fetch(" + JSON.stringify(location.href) + ").then(() => postMessage(0), () => postMessage(1))"])));
		n += await new Promise(r => { w.onmessage = m => r(m.data) });
		return n`, &refused)
	p.Failed = nil // the console names what the policy refuses
	if refused != 2 {
		t.Errorf("%d of 2 connections are refused", refused)
	}
}

// TestFailedEngine: an engine that dies is an error and no silence, and another takes its place.
func TestFailedEngine(t *testing.T) {
	p := serve(t)
	p.open(1280, 900)
	text := []byte("id,smiles,herg\na,CCO,1\nb,CC,2\nc,c1ccccc1O,3\n")
	p.drop("own.csv", text)
	p.idle()
	_, page := p.saved("#save-csv")
	header, _, _ := strings.Cut(string(page), "\n")
	isPrefixed := strings.HasPrefix(header, "id,smiles,herg,")
	if !isPrefixed || strings.Count(header+",", ",herg,") != 1 || !strings.Contains(header, ",herg_2,") {
		t.Errorf("the columns of the download are %s", header)
	}
	// An engine that gets a number for a file ends, as one does without memory.
	for _, engine := range []string{"pool.desk", "pool.predictors[0]", "pool.predictors[0]"} {
		var failed string
		p.js(fmt.Sprintf(`const engine = %s;
			const waiting = engine.call("explain", { smiles: "C" }).catch(e => e.message);
			const dying = engine.call("nothing", {}, { bytes: 5 }).catch(e => e.message);
			const behind = engine.call("explain", { smiles: "C" }).catch(e => e.message);
			await waiting;
			return [await dying, await behind].join()`, engine), &failed)
		if strings.Count(failed, "An engine has failed and is started again") != 2 {
			t.Errorf("%s: %s", engine, failed)
		}
	}
	p.Failed = nil // the console has the trace of the engine
	p.Press("#cluster-run")
	p.idle()
	if got := p.text("#shown"); !strings.Contains(got, "clusters") {
		t.Errorf("the new desk: %s %s", got, p.text("#message"))
	}
	p.drop("again.csv", text)
	p.idle()
	if n := p.Eval("data.rows.filter(r => r.values.admet?.length === 56).length"); n != "3" {
		t.Errorf("the new predictor: %s molecules; %s", n, p.text("#message"))
	}
	// A task ends with its engine, and with Cancel.
	var said []string
	p.js(`const said = [], call = Engine.prototype.call, never = new AbortController();
		const requests = Array.from({ length: 20 }, () => ({ smiles: "C" })), used = [];
		const dies = pool.each("explain", requests, never.signal, (_, k) => used.push(k)).catch(e => e.message);
		pool.predictors[0].call("nothing", {}, { bytes: 5 }).catch(() => {});
		said.push(await dies);
		Engine.prototype.call = () => new Promise(() => {});
		const cancel = new AbortController();
		const hangs = pool.each("explain", requests, cancel.signal, () => {}).catch(e => e.message);
		cancel.abort();
		said.push(await hangs);
		Engine.prototype.call = call;
		return said`, &said)
	p.Failed = nil
	if len(said) != 2 || !strings.HasPrefix(said[0], "An engine has failed") || said[1] != "cancelled" {
		t.Errorf("a task whose engine dies, and one that is cancelled, say %q", said)
	}
	// The map of many molecules.
	p.js(`tools.map = new Map(Array.from({ length: 200000 }, (_, k) => [k + 1, [k, -k]])); tools.paint()`, nil)
	if n := p.Eval("tools.place().length"); n != "200000" {
		t.Errorf("a map of 200,000 molecules has %s points", n)
	}
}

// TestFile: the page works from a file.
func TestFile(t *testing.T) {
	p := serve(t)
	parts, err := built()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := parts.Write(dir, io.Discard); err != nil {
		t.Fatal(err)
	}
	p.url = "file://" + dir + "/index.html"
	p.open(1280, 900)
	p.Press("#example")
	p.wait("running")
	p.idle()
	if n := p.Eval("data.rows.filter(r => r.values.admet && r.svg).length"); n != "10" {
		t.Errorf("%s molecules; %s", n, p.text("#message"))
	}
}

// TestOffline: a page that was open once opens again without its server.
func TestOffline(t *testing.T) {
	p := serve(t)
	p.open(1280, 900)
	p.wait("document.documentElement.dataset.offline")
	p.open(1280, 900) // from the service worker
	p.server.Close()
	p.open(1280, 900)
	p.Press("#example")
	p.wait("running")
	p.idle()
	if n := p.Eval("data.rows.filter(r => r.values.admet).length"); n != "10" {
		t.Errorf("%s molecules; %s", n, p.text("#message"))
	}
}

// TestSpeed: 1,000 molecules of ESOL have first rows within 2 s and all within 10 s, and 10,000 of ZINC take a minute;
// the page has 500 MB. A time may be twice as long, and longer if the machine does other things meanwhile. The process
// may have a fifth more, since the browser's own code is a part of it.
func TestSpeed(t *testing.T) {
	esol := molecules(t, "moleculenet/esol.csv.gz", 1000)
	zinc := molecules(t, "zinc/zinc250k.csv.gz", 10000)
	p := serve(t)
	p.open(1280, 900)
	memory, before := p.Usage()
	t.Logf("ready after %s ms, with %s MB of the engine; the process has %d MB and took %.1f s",
		p.Eval("document.documentElement.dataset.ready"), p.Eval("Math.round(pool.bytes / 1e6)"), memory/1e6, before.Seconds())
	for _, set := range []struct {
		name       string
		text       []byte
		count      int
		first, all float64 // seconds that are asked for
	}{{"esol.csv", esol, 1000, 2, 10}, {"zinc.csv", zinc, 10000, 2, 60}} {
		p.js(`window.begun = performance.now(); window.firstRows = 0; data.rows = []; table.order();
			window.watch = setInterval(() => { if (!firstRows && document.querySelector("#table .prediction b")) firstRows = performance.now() }, 10)`, nil)
		p.drop(set.name, set.text)
		p.idle()
		var seconds [2]float64
		p.js(`clearInterval(watch); return [(firstRows - begun) / 1000, (performance.now() - begun) / 1000]`, &seconds)
		complete := p.Eval("data.rows.filter(r => r.error || r.values.admet?.length === 56).length")
		var engine int64 // megabytes
		p.js(`return Math.round((pool.bytes + performance.memory.usedJSHeapSize) / 1e6)`, &engine)
		memory, after := p.Usage()
		processor := (after - before).Seconds()
		t.Logf("%s: first rows after %.1f s (asked %v), all after %.1f s (asked %v), %s complete; %d MB of engine and scripts; "+
			"the process has %d MB and took %.1f s", set.name, seconds[0], set.first, seconds[1], set.all, complete, engine,
			memory/1e6, processor)
		before = after
		if complete != fmt.Sprint(set.count) {
			t.Errorf("%s: %s complete rows", set.name, complete)
		}
		// Two workers take more processor time than time, unless they have to wait for a processor.
		allowed := 2.0
		if processor > 0 {
			allowed = max(allowed, 2*seconds[1]/processor)
		}
		if seconds[0] > allowed*set.first || seconds[1] > allowed*set.all {
			t.Errorf("%s: first rows after %.1f s, all after %.1f s", set.name, seconds[0], seconds[1])
		}
		if engine > 500 || memory > 600e6 {
			t.Errorf("%s: the page has %d MB, its process %d MB", set.name, engine, memory/1e6)
		}
	}
}

// TestAccessible: axe-core finds nothing, in both themes and at both widths, and no width makes the page scroll sideways.
func TestAccessible(t *testing.T) {
	p := serve(t)
	var axe []byte
	if path := os.Getenv("PLAYGROUND_AXE"); path != "" {
		var err error
		if axe, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	} else {
		t.Log("not audited: PLAYGROUND_AXE does not name axe-core's axe.min.js (npm install axe-core)")
	}
	first := true
	for _, theme := range []string{"light", "dark"} {
		p.Prefers(theme)
		for _, width := range []int{1280, 390} {
			p.Call("Emulation.setDeviceMetricsOverride", map[string]any{
				"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false}, nil)
			if first {
				p.open(width, 900)
				p.Screenshot("start.png")
				p.change("#paste", "CC(=O)Oc1ccccc1C(=O)O aspirin\nC1CC wrong\n"+strings.Repeat("CCO\nc1ccncc1 pyridine\nCC(C)Cc1ccc(cc1)C(C)C(=O)O ibuprofen\n", 8))
				p.Press("#paste-form button")
				p.wait("running")
				p.idle()
				p.Press("#map-run")
				p.wait("running || tools.map")
				p.idle()
				p.Press("#cluster-run")
				p.idle()
				p.js("table.choose(1)", nil)
				p.wait(`document.querySelector("#explanation circle")`)
				p.js(`document.querySelector("#rejected").open = true`, nil)
				first = false
			}
			p.js("table.render(); tools.paint(); await new Promise(r => setTimeout(r, 200))", nil)
			if w := p.Eval("document.documentElement.scrollWidth"); w != fmt.Sprint(width) {
				t.Errorf("at a width of %d pixels the page is %s wide", width, w)
			}
			p.Screenshot(fmt.Sprintf("%s-%d.png", theme, width))
			if axe == nil {
				continue
			}
			p.js(string(axe)+"; window.axe = axe", nil)
			var found []struct {
				ID, Help string
				Nodes    []struct{ HTML string }
			}
			p.js(`return (await axe.run(document, { resultTypes: ["violations"] })).violations.map(v => ({ id: v.id, help: v.help,
				nodes: v.nodes.map(n => ({ html: n.html.slice(0, 160) + " " + n.failureSummary })) }))`, &found)
			for _, v := range found {
				t.Errorf("%s, %d wide: %s: %s: %d places, such as %s", theme, width, v.ID, v.Help, len(v.Nodes), v.Nodes[0].HTML)
			}
		}
	}
}

// TestRandomActions: 500 random actions leave no error on the console.
func TestRandomActions(t *testing.T) {
	p := serve(t)
	p.open(1280, 900)
	p.Press("#example")
	p.wait("running")
	p.idle()
	begun := time.Now()
	p.Act(browsertest.Random{
		Actions:  500,
		Seed:     56,
		Elements: "main button, main select, main input, main textarea, main tbody tr, canvas, #theme",
		Numbers:  []float64{0.5, 3, 20, -1, 0.9},
		Texts:    []string{"CCO", "c1ccccc1", "C(", "", "[#7]", "CC(=O)O acid\nCCN\nCC(C", "smiles,y\nCCO,1\nCCC,2"},
		After:    `$("#table").scrollTop = k; if (k % 11 === 0) running?.abort()`,
	})
	t.Logf("500 actions in %v", time.Since(begun).Round(time.Second))
	p.idle()
	p.Press("#example")
	p.idle()
	if n := p.Eval("data.rows.filter(r => r?.values.admet).length"); n != "10" {
		t.Errorf("after all of them, the example has %s molecules; %s", n, p.text("#message"))
	}
}
