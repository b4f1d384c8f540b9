package table

import (
	"bytes"
	"errors"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func sample() *Table {
	t := New("method", Column{"MUTAG", Max}, Column{"L_G", Min}, Column{"epochs", None})
	t.Caption = "Accuracy (%), mean ± std over 5 seeds."
	t.Footnotes = []string{"† diverged once"}
	t.Add("untrained", MeanStd(87.1, 0.7, 2), Text("–"))
	t.Add("infonce", MeanStd(88.004, 10.55, 2), Number(-0.125, 2), Number(20, 0))
	diverged := MeanStd(math.NaN(), math.NaN(), 2)
	diverged.Mark = "†"
	t.Add("graphcl", diverged, Number(-0.001, 2), Number(20, 0))
	t.Add("specmatch|β", MeanStd(88.0, 0.5, 2), Number(0.04, 2), Number(100, 0))
	return t
}

func TestText(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteText(&b); err != nil {
		t.Fatal(err)
	}
	want := `Accuracy (%), mean ± std over 5 seeds.

method               MUTAG     L_G   epochs
────────────────────────────────────────────
untrained     87.10 ± 0.70       –
infonce      88.00 ± 10.55*  −0.12*      20
graphcl               n/a†    0.00       20
specmatch|β   88.00 ± 0.50*   0.04      100

* best of its column
† diverged once
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	for line := range strings.Lines(b.String()) {
		if strings.HasSuffix(strings.TrimSuffix(line, "\n"), " ") {
			t.Errorf("%q ends with a space", line)
		}
	}
}

// Bold takes no width: without the escape codes, figures stay aligned.
func TestBold(t *testing.T) {
	text := string(sample().text(true))
	if !strings.Contains(text, "\x1b[1m88.00 ± 10.55\x1b[0m") || strings.Contains(text, "*") {
		t.Errorf("got\n%s", text)
	}
	plain := strings.NewReplacer("\x1b[1m", "", "\x1b[0m", "").Replace(text)
	lines := strings.Split(plain, "\n")
	if a, b := column(lines[5], "± 10.55"), column(lines[7], "± 0.50"); a != b-1 {
		t.Errorf("not aligned:\n%s", plain)
	}
	if strings.Contains(plain, "best of its column") {
		t.Errorf("a note for marks that are not there:\n%s", plain)
	}
}

func column(line, s string) int { return utf8.RuneCountInString(line[:strings.Index(line, s)]) }

func TestMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteMarkdown(&b); err != nil {
		t.Fatal(err)
	}
	want := `Accuracy (%), mean ± std over 5 seeds.

| method | MUTAG | L\_G | epochs |
| --- | ---: | ---: | ---: |
| untrained | 87.10 ± 0.70 | – |  |
| infonce | **88.00 ± 10.55** | **−0.12** | 20 |
| graphcl | n/a† | 0.00 | 20 |
| specmatch\|β | **88.00 ± 0.50** | 0.04 | 100 |

† diverged once
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestEmpty(t *testing.T) {
	var b bytes.Buffer
	if err := New("method").WriteText(&b); err != nil || b.String() != "method\n──────\n" {
		t.Errorf("got %q, %v", b.String(), err)
	}
	defer func() {
		if r := recover(); r != `table: Add "x": 1 cells for 0 columns` {
			t.Errorf("panic %v", r)
		}
	}()
	New("method").Add("x", Text("y"))
}

func TestWriteErrors(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	if sample().WriteText(f) == nil || sample().WriteMarkdown(f) == nil {
		t.Error("wrote to a closed file")
	}
	if err := sample().WriteText(io.Discard); err != nil {
		t.Error(err)
	}
}

func Example() {
	t := New("method", Column{"MUTAG", Max}, Column{"NCI1", Max})
	t.Add("infonce", MeanStd(87.1, 0.7, 2), MeanStd(78.2, 0.4, 2))
	t.Add("specmatch", MeanStd(88.0, 0.5, 2), MeanStd(77.9, 0.3, 2))
	t.WriteText(os.Stdout)
	// Output:
	// method            MUTAG           NCI1
	// ───────────────────────────────────────
	// infonce    87.10 ± 0.70   78.20 ± 0.40*
	// specmatch  88.00 ± 0.50*  77.90 ± 0.30
	//
	// * best of its column
}

func TestP(t *testing.T) {
	for p, want := range map[float64]string{0: "<0.0001", 0.00009: "<0.0001", 0.0001: "0.0001", 0.04996: "0.0500", 1: "1.0000"} {
		if got := P(p).text; got != want {
			t.Errorf("P(%v) is %s, want %s", p, got, want)
		}
	}
	if got := P(math.NaN()).text; got != "n/a" {
		t.Error(got)
	}
}

func TestHTML(t *testing.T) {
	var b bytes.Buffer
	table := sample()
	table.Add("<b>&", Text("<i>"))
	if err := table.WriteHTML(&b); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`<p class="caption">Accuracy (%), mean ± std over 5 seeds.</p>`,
		`<th scope="col"><button type="button">L_G</button></th>`,
		`<tr><th scope="row">infonce</th><td class="best" data-v="88">88.00 ± 10.55</td><td class="best" data-v="-0.12">−0.12</td><td data-v="20">20</td></tr>`,
		`<tr><th scope="row">&lt;b&gt;&amp;</th><td>&lt;i&gt;</td><td></td><td></td></tr>`,
		`<p class="note">† diverged once</p>`,
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %s in\n%s", want, b.String())
		}
	}
}

func TestLaTeX(t *testing.T) {
	var b bytes.Buffer
	if err := sample().WriteLaTeX(&b); err != nil {
		t.Fatal(err)
	}
	want := `\begin{table}
\centering
\caption{Accuracy (\%), mean $\pm$ std over 5 seeds.}
\begin{tabular}{lrrr}
\toprule
method & MUTAG & L\_G & epochs \\
\midrule
untrained & 87.10 $\pm$ 0.70 & – &  \\
infonce & \textbf{88.00 $\pm$ 10.55} & \textbf{$-$0.12} & 20 \\
graphcl & n/a$\dagger$ & 0.00 & 20 \\
specmatch$|$$\beta$ & \textbf{88.00 $\pm$ 0.50} & 0.04 & 100 \\
\bottomrule
\end{tabular}

$\dagger$ diverged once
\end{table}
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

// TestForeignText: names and captions of other people's files neither steer a terminal nor
// become a part of a page.
func TestForeignText(t *testing.T) {
	tb := New("set", Names("a\x1b[2J")...)
	tb.Caption = "x\x1b[31m <script>alert(1)</script> ![p](http://q)\nz"
	tb.Footnotes = []string{"<img src=x>\x1b[31m"}
	tb.Add("n\r\x9b<b>", Text("v\x07"))
	var text, markdown bytes.Buffer
	if err := errors.Join(tb.WriteText(&text), tb.WriteMarkdown(&markdown)); err != nil {
		t.Fatal(err)
	}
	for _, b := range []string{text.String(), markdown.String()} {
		if strings.ContainsAny(b, "\x1b\r\x07\x00") || !utf8.ValidString(b) {
			t.Errorf("%q", b)
		}
	}
	if b := markdown.String(); strings.ContainsAny(b, "<") || strings.Contains(b, "![p]") {
		t.Errorf("%s", b)
	}
	odd := New("class")
	odd.Add(`~~a~~ $b$ &lt; c_d`)
	var escaped bytes.Buffer
	want := `| \~\~a\~\~ &#36;b&#36; &amp;lt; c\_d |`
	if err := odd.WriteMarkdown(&escaped); err != nil || !strings.Contains(escaped.String(), want) {
		t.Errorf("no %s in\n%s", want, escaped.String())
	}
	var tex bytes.Buffer
	tb.Add("[2em]", Text("x"))
	if err := tb.WriteLaTeX(&tex); err != nil || !strings.Contains(tex.String(), "\\\\\n{[}2em] & x \\\\\n") {
		t.Errorf("%s, %v", tex.String(), err)
	}
}
