//go:build unix

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/experiments/playground/play"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/report/browsertest"
	"github.com/specmatch/specmatch/tensor"
)

var built = sync.OnceValues(func() (map[string][]byte, error) { return build(testContext) })

// still keeps the opening from moving: without a graphics card, that takes a core for ten seconds. TestState sees it move.
const still = "--force-prefers-reduced-motion"

// served returns the page in a browser, ready, at a fragment of its address.
type served struct {
	*browsertest.Browser
	t   *testing.T
	url string
}

func serve(t *testing.T) *served {
	t.Helper()
	if testing.Short() {
		t.Skip("it compiles the engine")
	}
	b := browsertest.Start(t, still)
	files, err := built()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler(files))
	t.Cleanup(server.Close)
	p := &served{b, t, server.URL + "/"}
	t.Cleanup(func() {
		for _, url := range p.Asked {
			own := strings.HasPrefix(url, server.URL+"/") || strings.HasPrefix(url, "blob:"+server.URL) || strings.HasPrefix(url, "data:")
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

func (p *served) open(fragment string, width, height int) {
	p.t.Helper()
	p.Open(p.url+fragment, width, height)
	p.wait("document.documentElement.dataset.ready")
}

// wait waits until an expression is true in the page.
func (p *served) wait(expression string) {
	p.t.Helper()
	until := time.Now().Add(90 * time.Second)
	for p.Eval("!!("+expression+")") != "true" {
		if time.Now().After(until) || len(p.Failed) > 0 {
			p.t.Fatalf("waited in vain for %s; the page says %s %s", expression, p.Eval(`document.querySelector("#status").textContent`), p.Eval(`document.querySelector("#text-error").textContent`))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// js runs statements and decodes what they return.
func (p *served) js(body string, v any) {
	p.t.Helper()
	text := p.Eval("(async () => {" + body + "})()")
	if v != nil {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			p.t.Fatalf("%s: %v", text, err)
		}
	}
}

// TestSections goes through the tape, the views and the lessons on one page: to load the engine takes seconds.
func TestSections(t *testing.T) {
	t.Parallel()
	p := serve(t)
	p.open("", 1440, 900)
	tapeSection(t, p)
	viewsSection(t, p)
	lessonsSection(t, p)
}

// tapeSection: all expressions, Backward to the end, with the desktop's gradients; a
// mistake at its column; breaks that the check catches; a link that holds it all.
func tapeSection(t *testing.T, p *served) {
	for i, e := range play.Examples {
		var got play.Trace
		p.js(fmt.Sprintf(`await tape.choose(%d); tape.move(1e6); return tape.trace()`, i), &got)
		want, err := play.Tape{Text: e.Text, X: e.X, W: e.W, B: e.B, Rate: e.Rate, Descent: 40}.Trace()
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Steps) != len(want.Steps) || len(got.Caught) > 0 || len(got.Nodes) != len(want.Nodes) {
			t.Errorf("%s: %d steps, caught %v", e.Title, len(got.Steps), got.Caught)
			continue
		}
		for k, n := range want.Nodes {
			// WebAssembly and the desktop round exp and its like differently.
			if !slices.EqualFunc(n.Grad, got.Nodes[k].Grad, func(a, b float64) bool { return abs(a-b) <= 1e-9*max(1, abs(a)) }) {
				t.Errorf("%s: gradient of node %d: %v, on the desktop %v", e.Title, k, got.Nodes[k].Grad, n.Grad)
			}
		}
		if checked := p.Eval(`document.querySelectorAll(".entry .good").length > 2 && !document.querySelector(".entry .bad")`); checked != "true" {
			t.Errorf("%s: the checks do not show", e.Title)
		}
	}
	p.js(`await tape.choose(0)`, nil)
	for _, c := range []struct{ kind, node string }{{"factor", "ReLU"}, {"transpose", "MatMul"}} {
		p.js(fmt.Sprintf(`await tape.choose(0);
			const s = tape.trace().steps.findIndex(s => tape.trace().nodes[s.node].op === %q); tape.move(s + 1)`, c.node), nil)
		p.Press("[name=break][value=" + c.kind + "]")
		p.wait(`/catches it/.test(document.querySelector("#verdict").textContent)`)
		p.wait(`document.querySelector("#step .bad")`)
	}
	p.js(`await tape.choose(4);
		const s = tape.trace().steps.findIndex(s => s.breaks.includes("accumulation")); tape.move(s + 1)`, nil)
	p.Press("[name=break][value=accumulation]")
	p.wait(`/catches it: wrong at x, w/.test(document.querySelector("#verdict").textContent)`)
	var link string
	p.js(`state.write(); return location.hash`, &link)
	p.open(link, 1440, 900)
	p.wait(`/catches it: wrong at x, w/.test(document.querySelector("#verdict").textContent) && document.querySelector("[value=accumulation]").checked`)

	p.js(`const e = document.querySelector("#text"); e.value = "x.MatMul(w).Foo()"; e.dispatchEvent(new Event("input"))`, nil)
	p.wait(`/Line 1, column 13: Foo is no operator/.test(document.querySelector("#text-error").textContent)`)
}

// viewsSection: a view for each augmentation, by the ratio and the seed; a molecule, and
// one that is none; a node by hovering.
func viewsSection(t *testing.T, p *served) {
	p.js(`history.pushState(null, "", "#views?graph=5"); await state.restore()`, nil)
	const dropped = `document.querySelectorAll("#four figure:first-child g.gone").length`
	p.wait(dropped + " > 0")
	few, first := p.Eval(dropped), p.Eval(`document.querySelector("#four").innerHTML`)
	p.js(`const e = document.querySelector("#ratio"); e.value = 0.5; e.dispatchEvent(new Event("input"))`, nil)
	p.wait(dropped + " > " + few)
	p.js(`const e = document.querySelector("#ratio"); e.value = 0.2; e.dispatchEvent(new Event("input"))`, nil)
	p.wait(dropped + " == " + few)
	if p.Eval(`document.querySelector("#four").innerHTML`) != first {
		t.Error("the same seed gives another view")
	}
	p.js(`const e = document.querySelector("#view-seed"); e.value = 3; e.dispatchEvent(new Event("input"))`, nil)
	p.wait(`document.querySelector("#four").innerHTML !== ` + first)
	p.js(`const e = document.querySelector("#smiles"); e.value = "CC(=O)Oc1ccccc1C(=O)O"; e.dispatchEvent(new Event("input"))`, nil)
	p.wait(`views.drawn().labels.length === 13 && document.querySelectorAll("#four g.masked").length === 2`)
	p.js(`document.querySelectorAll("#graph-picture g.atom")[4].dispatchEvent(new MouseEvent("mouseenter"))`, nil)
	p.wait(`/^4, C/.test(document.querySelector("#node-text").textContent) || document.querySelector("#node").value === "4"`)
	p.js(`const e = document.querySelector("#smiles"); e.value = "CC(C"; e.dispatchEvent(new Event("input"))`, nil)
	p.wait(`/Column \d/.test(document.querySelector("#smiles-error").textContent)`)
}

// lessonsSection: all steps of all lessons open, and their answers are taken as right,
// and others not.
func lessonsSection(t *testing.T, p *served) {
	var counts []int
	p.js("return lessons.count", &counts)
	if !slices.Equal(counts, []int{10, 10, 10}) {
		t.Errorf("lessons of %v steps", counts)
	}
	for l, n := range counts {
		for s := range n {
			p.js(fmt.Sprintf("await lessons.open(%d, %d)", l, s), nil)
			var reply struct{ Wrong, Right, Question string }
			p.js(`const a = lessons.answer(), dock = document.querySelector("#dock"), input = document.querySelector("#answer");
				const give = v => { if (input) { input.value = v; input.form.requestSubmit(); } else [...dock.querySelectorAll(".answer")].find(b => (b.textContent === a) === (v === a)).click(); };
				const said = () => dock.querySelector("[role=status]").textContent;
				give(input ? Number(a) + 7 : "");
				const wrong = said();
				give(a);
				return { wrong, right: said(), question: dock.querySelector("label, strong").textContent }`, &reply)
			if !strings.Contains(reply.Wrong, "Not so") || !strings.Contains(reply.Right, "Right") {
				t.Errorf("lesson %d, step %d, %q: %+v", l, s, reply.Question, reply)
			}
		}
	}
	if p.Eval("lessons.solved()") != "30" {
		t.Errorf("%s steps are solved", p.Eval("lessons.solved()"))
	}
}

// TestAccessible: axe-core finds nothing, in both themes and at both sizes, with a lesson
// open and a VJP broken; and what a mouse does, keys do.
func TestAccessible(t *testing.T) {
	t.Parallel()
	p := serve(t)
	p.open("#tape?example=0&position=3", 1440, 900)
	key := func(name string, code int) {
		for _, kind := range []string{"rawKeyDown", "keyUp"} {
			p.Call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code}, nil)
			if text := map[string]string{"Enter": "\r", " ": " "}[name]; kind == "rawKeyDown" && text != "" {
				p.Call("Input.dispatchKeyEvent", map[string]any{"type": "char", "text": text}, nil)
			}
		}
	}
	focus := func(selector string) { p.js(fmt.Sprintf("document.querySelector(%q).focus()", selector), nil) }
	focus(".skip")
	key("Enter", 13)
	p.wait(`document.activeElement.id === "opening-title"`)
	focus("#forth")
	key("Enter", 13)
	p.wait(`document.querySelector("#position").value === "4"`)
	focus("#position")
	key("ArrowLeft", 37)
	p.wait(`document.querySelector("#position").value === "3"`)
	focus("[name=break]:checked")
	key("ArrowDown", 40)
	p.wait(`/catches it/.test(document.querySelector("#verdict").textContent)`)
	focus("#node")
	key("ArrowRight", 39)
	p.wait(`/^1, /.test(document.querySelector("#node-text").textContent)`)
	focus("#one")
	p.wait("training.base()")
	key(" ", 32)
	p.wait("training.history().length === 1")
	focus("#lesson-list button")
	key("Enter", 13)
	p.wait(`document.activeElement.closest("#dock")`)
	// From the top, Tab comes to every control that there is.
	var reached, controls int
	p.js(`document.activeElement.blur(); document.querySelector(".skip").focus()`, nil)
	p.js(`window.seen = new Set([document.activeElement])`, nil)
	for range 150 {
		key("Tab", 9)
		p.js(`seen.add(document.activeElement)`, nil)
	}
	p.js(`return [...seen].filter(e => e.matches("a, button, input, select, textarea, summary")).length`, &reached)
	// Of radio buttons Tab comes to one.
	p.js(`return [...document.querySelectorAll("a, button, input:not([type=radio]), select, textarea, summary")].filter(e => !e.disabled && e.checkVisibility() && !e.closest("details:not([open]) pre")).length`, &controls)
	if reached < controls {
		t.Errorf("Tab comes to %d of %d controls", reached, controls)
	}

	path := os.Getenv("PLAYGROUND_AXE")
	if path == "" {
		t.Skip("not audited: PLAYGROUND_AXE does not name axe-core's axe.min.js (npm install axe-core)")
	}
	axe, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, theme := range []string{"light", "dark"} {
		p.Prefers(theme)
		for _, size := range [][2]int{{360, 740}, {1440, 900}} {
			p.open("#tape?example=4&position=3&break=6.factor&lesson=1.9&smiles=CC(=O)Oc1ccccc1", size[0], size[1])
			p.wait("training.base()")
			p.js(`await training.guide(1); await training.step(); document.querySelector("#command").click(); document.querySelector("#step summary").click()`, nil)
			p.wait(`document.querySelector("#command-text code")`)
			p.js(string(axe)+"; window.axe = axe", nil)
			var found []struct {
				ID, Help string
				Nodes    []struct{ HTML string }
			}
			p.js(`return (await axe.run(document, { resultTypes: ["violations"] })).violations.map(v => ({ id: v.id, help: v.help, nodes: v.nodes.map(n => ({ html: n.html.slice(0, 160) + " " + n.failureSummary })) }))`, &found)
			for _, v := range found {
				t.Errorf("%s, %d wide: %s: %s: %d places, such as %s", theme, size[0], v.ID, v.Help, len(v.Nodes), v.Nodes[0].HTML)
			}
		}
	}
}

// recorded is what TestWeights of package play writes.
type recorded struct {
	Steps [][]float64
	Model []byte
}

// TestTrainingPage: two epochs within half a minute, sliders that act during training, Stop
// and Reset, what can be taken away; and the weights of Node and of the desktop.
func TestTrainingPage(t *testing.T) {
	p := serve(t)
	start := time.Now()
	p.open("#training", 1000, 800)
	t.Logf("first paint after %s ms, ready after %s ms, training after %s ms", p.Eval(`Math.round(performance.getEntriesByName("first-contentful-paint")[0].startTime)`),
		p.Eval(`Number(document.documentElement.dataset.ready)`), p.Eval(`(async () => { while (!training.base()) await new Promise(r => setTimeout(r, 5)); return Math.round(performance.now()) })()`))
	begin := time.Now()
	p.Press("#run")
	p.wait("training.evals().length === 2")
	p.js(`const e = document.querySelector("#knob-beta"); e.value = 8; e.dispatchEvent(new Event("input"))`, nil)
	p.wait("training.evals().length === 3")
	p.Press("#run")
	seconds := time.Since(begin).Seconds()
	var bytesUsed [2]int
	p.js("return [engine.bytes, performance.memory.usedJSHeapSize]", &bytesUsed)
	t.Logf("two epochs in %.1f s; memory of the engine %.0f MB, of the page's scripts %.0f MB", seconds, float64(bytesUsed[0])/1e6, float64(bytesUsed[1])/1e6)
	if seconds > 30 || bytesUsed[0]+bytesUsed[1] > 300e6 {
		t.Errorf("two epochs take %.0f s and %v bytes", seconds, bytesUsed)
	}
	p.wait(`/Train/.test(document.querySelector("#run").textContent)`)
	var changed struct {
		Command string
		Same    bool
	}
	p.js(`return engine.call("results").then(({command, same}) => ({command, same}))`, &changed)
	if changed.Same || !strings.Contains(changed.Command, "-beta 2 ") {
		t.Errorf("after a slider: %+v", changed)
	}
	p.Press("#reset")
	p.wait(`training.base() && training.history().length === 0 && /initial/.test(document.querySelector("#progress").textContent)`)

	dir := t.TempDir()
	weights := func(name string, c *exec.Cmd, env ...string) (w recorded) {
		t.Helper()
		path := filepath.Join(dir, name)
		c.Dir, c.Env = "play", append(append(os.Environ(), env...), "PLAYGROUND_WEIGHTS"+"="+path)
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", c, err, out)
		}
		text, err := os.ReadFile(path)
		if err == nil {
			err = json.Unmarshal(text, &w)
		}
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	p.js(`const e = document.querySelector("#knob-beta"); e.value = 3; e.dispatchEvent(new Event("input"));
		await training.reset(); for (let i = 0; i < 5; i++) await training.step()`, nil)
	var page recorded
	p.js(`return engine.call("results").then(({model}) => ({model}))`, &page)
	test := []string{"test", "-run", "^TestWeights$", "-count", "1", "."}
	desktop := weights("desktop", exec.Command("go", test...), "SPECMATCH_CPU=generic")
	if _, err := exec.LookPath("node"); err != nil {
		t.Log("not compared with Node: it is not here")
	} else {
		goroot, err := command(testContext, "go", "env", "GOROOT")
		if err != nil {
			t.Fatal(err)
		}
		node := weights("node", exec.Command("go", slices.Insert(slices.Clone(test), 1, "-exec", filepath.Join(goroot, "lib", "wasm", "go_js_wasm_exec"))...), "GOOS=js", "GOARCH=wasm")
		if len(node.Model) < 10000 || !bytes.Equal(node.Model, page.Model) {
			t.Error("five steps on the page give other weights than under Node")
		}
		far := 0.0
		for k := range desktop.Steps {
			for i, v := range desktop.Steps[k] {
				far = max(far, abs(v-node.Steps[k][i])/max(1, abs(v)))
			}
		}
		t.Logf("over five steps the weights of the desktop's generic engine are off by %.1e", far)
		if far > 2e-3 {
			t.Errorf("over five steps the desktop's weights are off by %v", far)
		}
	}

	p.js(`window.saved = []; const make = URL.createObjectURL; URL.createObjectURL = b => { saved.push(b); return make(b) }`, nil)
	p.Call("Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": dir}, nil)
	p.Press("#csv")
	p.wait("saved.length === 1")
	p.Press("#model")
	p.wait("saved.length === 2")
	var csv string
	p.js(`return saved[0].text()`, &csv)
	if strings.Count(csv, "\n") != 241 || !strings.HasPrefix(csv, "graph,class,h0,") {
		t.Errorf("embeddings: %d lines", strings.Count(csv, "\n"))
	}
	var file []byte
	p.js(`const b = new Uint8Array(await saved[1].arrayBuffer()); let s = ""; for (const c of b) s += String.fromCharCode(c); return btoa(s)`, &file)
	trained, err := model.Read(bytes.NewReader(file), cpu.New(tensor.Float32))
	if err != nil {
		t.Fatalf("the model file: %v", err)
	}
	if trained.Width() != 96 || trained.Card.Provenance.Method != "specmatch" {
		t.Errorf("the model file: %+v", trained.Card)
	}
	p.Press("#command")
	p.wait(`/go run .*unsupervised/.test(document.querySelector("#command-text").textContent)`)
	t.Logf("%.0f s in all", time.Since(start).Seconds())
}

func abs(x float64) float64 { return max(x, -x) }

// TestLook writes pictures of all sections (go test -artifacts keeps them), and finds
// what is wider than the window.
func TestLook(t *testing.T) {
	t.Parallel()
	p := serve(t)
	steps, themes := 2, []string{"dark"} // the fewest that make a curve; widths are equal in both
	if browsertest.Artifacts() {
		steps, themes = 8, []string{"light", "dark"}
	}
	for _, theme := range themes {
		p.Prefers(theme)
		p.open("#tape?example=0&position=3", 360, 740)
		p.js(fmt.Sprintf(`await training.guide(1); for (let i = 0; i < %d; i++) await training.step()`, steps), nil)
		for _, size := range [][2]int{{360, 740}, {1440, 900}} {
			p.Resize(size[0], size[1])
			if w := p.Eval("document.documentElement.scrollWidth"); w != fmt.Sprint(size[0]) {
				t.Errorf("at a width of %d pixels the page is %s wide", size[0], w)
			}
			p.Screenshot(fmt.Sprintf("%s-%d.png", theme, size[0]))
		}
	}
}

// TestFiles: the page works from files too, and is the same at every build.
func TestFiles(t *testing.T) {
	t.Parallel()
	b := browsertest.Start(t, still)
	if testing.Short() {
		t.Skip("it compiles the engine")
	}
	dir := t.TempDir()
	if err := execute(testContext, []string{"-out", dir}, t.Output(), t.Output()); err != nil {
		t.Fatal(err)
	}
	again, err := built()
	if err != nil {
		t.Fatal(err)
	}
	size := 0
	for name, part := range again {
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		z.Write(part)
		z.Close()
		size += packed.Len()
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || string(text) != string(part) {
			t.Errorf("%s differs between two builds, %v", name, err)
		}
	}
	if t.Logf("%.2f MB compressed", float64(size)/1e6); size > 3.2e6 {
		t.Errorf("the page has %d bytes, compressed", size)
	}
	p := &served{b, t, "file://" + dir + "/index.html"}
	p.open("", 1000, 800)
	p.wait(`tape.trace().steps.length > 3`)
	for _, e := range p.Failed {
		t.Errorf("a script has failed: %s", e)
	}
}

// TestState: the opening moves by itself and ends with what was recorded; a lesson gives the page back as the reader
// had it; Back, a reload and a reload without a network keep what is there.
func TestState(t *testing.T) {
	t.Parallel()
	b := browsertest.Start(t)
	if testing.Short() {
		t.Skip("it compiles the engine")
	}
	files, err := built()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler(files))
	defer server.Close()
	p := &served{b, t, server.URL + "/"}
	p.open("#views", 1000, 800)
	p.wait(`opening.time() > 0.1`)
	p.js(`opening.seek(10)`, nil)
	recorded := p.Eval(`recorded.frames.at(-1).accuracy.toFixed(1) + " %"`)
	if shown := p.Eval(`document.querySelector(".bar-row span:last-child").textContent`); shown != recorded {
		t.Errorf("the opening ends with %s, recorded are %s", shown, recorded)
	}
	p.js(`window.same = true; const e = document.querySelector("#text"); e.value = "x.MatMul(w).Tanh().Sum()"; e.dispatchEvent(new Event("input"))`, nil)
	p.wait(`tape.trace().nodes.some(n => n.op === "Tanh")`)
	p.js(`state.write(); await training.step()`, nil)
	link := p.Eval(`location.hash`)
	p.js(`await lessons.open(0, 3)`, nil)
	p.wait(`tape.trace().nodes.every(n => n.op !== "Tanh") && /lesson=0.3/.test(location.hash) && !/Tanh/.test(location.hash)`)
	p.js(`await lessons.open(2, 0); await lessons.close()`, nil)
	p.wait(`document.querySelector("#text").value === "x.MatMul(w).Tanh().Sum()" && training.history().length === 1`)
	if got := p.Eval(`location.hash.replace("lessons", "views")`); got != link {
		t.Errorf("after a lesson the link is %s, and was %s", got, link)
	}

	p.Press(`nav a[href="#training"]`)
	p.wait(`location.hash.startsWith("#training?")`)
	p.js(`const c = document.querySelector("#similarity canvas"), r = c.getBoundingClientRect(); c.dispatchEvent(new MouseEvent("click", { bubbles: true, clientX: r.left + r.width * 0.99, clientY: r.top + r.height * 0.01 }))`, nil)
	p.wait(`document.querySelectorAll("#pair svg").length === 2 && document.querySelector("#pair-a").value === "59"`)
	p.js(`history.back()`, nil)
	p.wait(`location.hash.startsWith("#lessons?") && document.querySelector("#text").value === "x.MatMul(w).Tanh().Sum()"`)
	if p.Eval("same && training.history().length") != "1" {
		t.Error("Back loads the page again, or loses the training")
	}
	p.js(`document.querySelector('[aria-label="First step"]').click()`, nil)
	p.js(`document.querySelector('[aria-label="Next step"]').click()`, nil)
	if n := p.Eval(`document.querySelectorAll("#node-layer .matrix").length + " " + document.querySelectorAll(".message").length`); strings.HasSuffix(n, " 0\"") || !strings.HasPrefix(n, "\"2 ") {
		t.Errorf("at the second step of the layer: %s matrices and messages", n)
	}
	p.wait(`document.documentElement.dataset.offline`)
	p.open(p.fragment(), 1000, 800)
	p.wait(`training.history().length === 1 && document.querySelector("#text").value.includes("Tanh")`)
	server.Close()
	p.open(p.fragment(), 1000, 800)
	p.wait(`tape.trace()`)
}

// TestRandomActions: 500 random actions leave no error on the console, and a page that works.
func TestRandomActions(t *testing.T) {
	if os.Getenv("SPECMATCH_LARGE") == "" {
		t.Skip("takes a minute: set SPECMATCH_LARGE=1")
	}
	p := serve(t)
	p.open("", 1280, 900)
	begun := time.Now()
	p.Act(browsertest.Random{
		Actions:  500,
		Seed:     56,
		Elements: "nav a, main button, main select, main input, main textarea, main canvas, main svg, #share, #theme, #dock button, #dock input",
		Texts: []string{
			"x.MatMul(w).Tanh().Sum()", "x.Foo(", "", "1 2 3\n4 5 6", "0 1 0\n1 0", "CCO", "c1ccccc1", "C(", "CC(=O)Oc1ccccc1C(=O)O", "2",
		},
		// Back stays on the page, and is over before the next action.
		After: `const before = navigation.entries()[navigation.currentEntry.index - 1];
			if (k % 7 === 0 && before?.sameDocument) await navigation.back().finished.catch(() => {})`,
	})
	t.Logf("500 actions in %v", time.Since(begun).Round(time.Second))
	p.js(`await lessons.close(); await training.reset(); await training.step(); await tape.choose(0); tape.move(1)`, nil)
	p.wait(`training.history().length > 0 && tape.trace().steps.length > 3 && !document.querySelector("#text-error").textContent`)
}

// fragment returns that of the page's address.
func (p *served) fragment() (text string) {
	p.js(`return location.hash`, &text)
	return text
}
