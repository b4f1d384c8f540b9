//go:build unix

package report_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/specmatch/specmatch/specmatch/report/browsertest"
)

const background = `getComputedStyle(document.body).backgroundColor`

// A page in a browser: its tables sort, its theme is the system's until it is chosen,
// a legend hides a series; no width makes it scroll sideways, no script fails, and
// nothing but the file is asked for.
func TestBrowser(t *testing.T) {
	b := browsertest.Start(t)
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
			b.Prefers(theme)
			b.Open("file://"+path, width, 900)
			if w := b.Eval("document.documentElement.scrollWidth"); w != fmt.Sprint(width) {
				t.Errorf("at a width of %d pixels the page is %s wide", width, w)
			}
			if small := b.Eval(`Math.min(...[...document.querySelectorAll("svg.plot text")].filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect().height))`); len(small) < 2 {
				t.Errorf("at a width of %d pixels letters are %s pixels high", width, small)
			}
			b.Screenshot(fmt.Sprintf("%s-%d.png", theme, width))
		}
	}

	const light, dark = `"rgb(255, 255, 255)"`, `"rgb(22, 24, 29)"`
	for _, step := range []struct{ system, press, want string }{
		{"light", "", light}, {"dark", "", dark}, {"dark", "#theme", light}, {"dark", "#theme", dark}, {"light", "", dark}, {"light", "#theme", light}, {"dark", "", dark},
	} {
		b.Prefers(step.system)
		if step.press != "" {
			b.Press(step.press)
		}
		if got := b.Eval(background); got != step.want {
			t.Errorf("system %s, %s: the background is %s, want %s", step.system, b.Eval(`document.getElementById("theme").textContent`), got, step.want)
		}
	}

	// The figures of a column, as they stand in the page, from top to bottom.
	column := func(k int) string {
		return b.Eval(fmt.Sprintf(`[...document.querySelector("#differences table").tBodies[0].rows].map(r => r.cells[%d].dataset.v ?? r.cells[%[1]d].textContent)`, k))
	}
	sorted := func(k int, numeric bool, way string) string {
		compare := "a < b ? -1 : 1"
		if numeric {
			compare = "a - b"
		}
		return b.Eval(fmt.Sprintf(`(x => x.sort((a, b) => %s(%s)))(%s)`, way, compare, column(k)))
	}
	before := column(3)
	for _, c := range []struct {
		k       int
		numeric bool
		way     string
	}{{3, true, "-"}, {3, true, ""}, {1, false, ""}, {1, false, "-"}} {
		b.Press(fmt.Sprintf("#differences thead th:nth-child(%d) button", c.k+1))
		if got, want := column(c.k), sorted(c.k, c.numeric, c.way); got != want {
			t.Errorf("column %d sorted: %s, want %s", c.k, got, want)
		}
	}
	if column(3) == before {
		t.Error("sorting moves no row")
	}
	b.Press("#curves .legend button")
	if got := b.Eval(`[document.querySelectorAll("#curves [data-hidden]").length > 0, document.querySelectorAll("#seeds [data-hidden]").length]`); got != "[true,0]" {
		t.Errorf("a press on the legend hides series of the section, and of others: %s", got)
	}

	for _, url := range b.Asked {
		if url != "file://"+path && url != "about:blank" {
			t.Errorf("the page asks for %s", url)
		}
	}
	for _, e := range b.Failed {
		t.Errorf("a script has failed: %s", e)
	}
}
