package table

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"math"
	"strings"
)

// WriteHTML writes the table as HTML, the best figures bold. Heads are buttons, and a
// cell whose text is not what it is to be sorted by has that in data-v: a script may
// sort by them.
func (t *Table) WriteHTML(w io.Writer) error {
	grid, best := t.grid()
	var b bytes.Buffer
	if t.Caption != "" {
		fmt.Fprintf(&b, "<p class=\"caption\">%s</p>\n", html.EscapeString(t.Caption))
	}
	b.WriteString("<div class=\"scroll\"><table>\n<thead><tr>")
	for _, head := range grid[0] {
		fmt.Fprintf(&b, "<th scope=\"col\"><button type=\"button\">%s</button></th>", html.EscapeString(head))
	}
	b.WriteString("</tr></thead>\n<tbody>\n")
	for i, line := range grid[1:] {
		fmt.Fprintf(&b, "<tr><th scope=\"row\">%s</th>", html.EscapeString(line[0]))
		for j, s := range line[1:] {
			class, value := "", ""
			if best[i+1][j+1] {
				class = " class=\"best\""
			}
			if v := t.rows[i].cells[j].value; !math.IsNaN(v) {
				value = fmt.Sprintf(" data-v=\"%v\"", v)
			}
			fmt.Fprintf(&b, "<td%s%s>%s</td>", class, value, html.EscapeString(s))
		}
		b.WriteString("</tr>\n")
	}
	b.WriteString("</tbody></table></div>\n")
	for _, note := range t.Footnotes {
		fmt.Fprintf(&b, "<p class=\"note\">%s</p>\n", html.EscapeString(note))
	}
	_, err := w.Write(b.Bytes())
	return err
}

// WriteLaTeX writes the table as LaTeX, in the rules of the package booktabs and with
// the best figures bold, for a document in UTF-8.
func (t *Table) WriteLaTeX(w io.Writer) error {
	grid, best := t.grid()
	var b bytes.Buffer
	b.WriteString("\\begin{table}\n\\centering\n")
	if t.Caption != "" {
		fmt.Fprintf(&b, "\\caption{%s}\n", latex.Replace(t.Caption))
	}
	fmt.Fprintf(&b, "\\begin{tabular}{l%s}\n\\toprule\n", strings.Repeat("r", len(t.columns)))
	for i, line := range grid {
		for j, s := range line {
			if s = latex.Replace(s); best[i][j] {
				s = "\\textbf{" + s + "}"
			}
			if j > 0 {
				b.WriteString(" & ")
			}
			b.WriteString(s)
		}
		b.WriteString(" \\\\\n")
		if i == 0 {
			b.WriteString("\\midrule\n")
		}
	}
	b.WriteString("\\bottomrule\n\\end{tabular}\n")
	for _, note := range t.Footnotes {
		fmt.Fprintf(&b, "\n%s\n", latex.Replace(note))
	}
	b.WriteString("\\end{table}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// latex makes texts show as they are. LaTeX's text fonts lack what is in dollars here.
var latex = strings.NewReplacer(
	`\`, `\textbackslash{}`, `&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`, `{`, `\{`, `}`, `\}`,
	`~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`, `<`, `$<$`, `>`, `$>$`, "\n", " ",
	`±`, `$\pm$`, `−`, `$-$`, `·`, `$\cdot$`, `≤`, `$\le$`, `≥`, `$\ge$`, `×`, `$\times$`, `√`, `$\surd$`,
	`β`, `$\beta$`, `κ`, `$\kappa$`, `τ`, `$\tau$`, `γ`, `$\gamma$`, `η`, `$\eta$`, `θ`, `$\theta$`,
	`†`, `$\dagger$`, `²`, `$^2$`, `*`, `$*$`, `|`, `$|$`, `Δ`, `$\Delta$`, `σ`, `$\sigma$`,
)
