package gallery_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/report/browsertest"
	"github.com/specmatch/specmatch/specmatch/report/gallery"
)

// sample is a page of four molecules, one of which is no molecule, and one has no value.
func sample() *gallery.Page {
	return &gallery.Page{
		Title:   "Four <molecules>",
		Columns: []string{"id", "smiles", "y", "kind"},
		Rows: [][]string{
			{"a", "CCO", "2.5", "alcohol"},
			{"b", "c1ccccc1", "-1", "ring"},
			{"</script>", "C1CC", "", "none"},
			{"d", "CC(C)O", "10", "alcohol"},
		},
		SMILES: 1,
		Points: [][2]float64{{0, 0}, {1, 2}, {3, 1}, {-1, -1}},
		Colour: "y",
	}
}

// TestPage: what is no molecule has no drawing, texts are escaped, and the number of drawings is bounded.
func TestPage(t *testing.T) {
	var b bytes.Buffer
	if err := sample().Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	if n := strings.Count(text, "<svg"); n != 3 {
		t.Errorf("%d drawings", n)
	}
	if !strings.Contains(text, "Four &lt;molecules&gt;") || strings.Count(text, "</script>") != 1 {
		t.Error("a text is not escaped")
	}
	large := sample()
	for range gallery.MaxDrawings {
		large.Rows = append(large.Rows, []string{"e", "C", "1", ""})
	}
	large.Points = nil
	b.Reset()
	if err := large.Write(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(b.String(), "<figure"); n != gallery.MaxDrawings || large.Drawings() != n ||
		!strings.Contains(b.String(), "The first 1000 of 1004 molecules are drawn.") {
		t.Errorf("%d drawings", n)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	if err := large.Write(stopped, &b); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestBrowser: the grid sorts, colours and finds, the map chooses a drawing, no width makes the page scroll sideways,
// no script fails, and nothing but the file is asked for.
func TestBrowser(t *testing.T) {
	b := browsertest.Start(t)
	path := filepath.Join(t.TempDir(), "page.html")
	file, err := os.Create(path)
	if err == nil {
		err = errors.Join(sample().Write(t.Context(), file), file.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int{1280, 390} {
			b.Prefers(theme)
			b.Open("file://"+path, width, 900)
			if w := b.Eval("document.documentElement.scrollWidth"); w != fmt.Sprint(width) {
				t.Errorf("at a width of %d pixels the page is %s wide", width, w)
			}
			b.Screenshot(fmt.Sprintf("%s-%d.png", theme, width))
		}
	}
	const order = `[...document.querySelectorAll("figure")].map(f => f.dataset.row).join("")`
	change := func(name, value string) {
		b.Eval(fmt.Sprintf(`{const e = document.getElementById(%q); e.value = %q; e.dispatchEvent(new Event("change")); ""}`,
			name, value))
	}
	change("sort", "2")
	if got := b.Eval(order); got != `"1032"` {
		t.Errorf("by y: %s", got)
	}
	b.Press("#down")
	if got := b.Eval(order); got != `"3012"` {
		t.Errorf("by y, descending: %s", got)
	}
	change("sort", "-1")
	b.Press("#down")
	if got := b.Eval(order); got != `"0123"` {
		t.Errorf("as in the file: %s", got)
	}
	const tops = `[...document.querySelectorAll("figure")].map(f => f.style.borderTopColor)`
	if got := b.Eval(tops); got != `["rgb(52, 99, 139)","rgb(68, 1, 84)","","rgb(253, 231, 37)"]` {
		t.Errorf("coloured by y: %s", got)
	}
	change("colour", "3")
	if got := b.Eval(`document.getElementById("legend").textContent`); got != `"alcohol (2)ring (1)none (1)"` {
		t.Errorf("legend %s", got)
	}
	b.Eval(`{const m = document.getElementById("map"), r = m.getBoundingClientRect(); ` +
		`m.dispatchEvent(new MouseEvent("click", {clientX: r.right - 14, clientY: r.top + r.height / 3})); ""}`)
	if got := b.Eval(`document.querySelector("figure.chosen").dataset.row`); got != `"2"` {
		t.Errorf("a click on the map chooses %s", got)
	}
	b.Eval(`{const e = document.getElementById("find"); e.value = "ccO"; e.dispatchEvent(new Event("input")); ""}`)
	if got := b.Eval(`[...document.querySelectorAll("figure:not([hidden])")].map(f => f.dataset.row).join("")`); got != `"0"` {
		t.Errorf("found %s", got)
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
