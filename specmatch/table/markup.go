package table

import (
	htmltemplate "html/template"
	"io"
	"strings"
	"text/template"
)

// WriteHTML writes the table as HTML, with the best figures bold. For a script that sorts, heads
// are buttons, and a cell has its value in data-v if that is not its text.
func (t *Table) WriteHTML(w io.Writer) error { return htmlTable.Execute(w, t.data()) }

// WriteMarkdown writes the table as GitHub's Markdown, the best figures bold.
func (t *Table) WriteMarkdown(w io.Writer) error {
	return markdownTable.Execute(w, t.data())
}

// WriteLaTeX writes the table as LaTeX, in the rules of the package booktabs and with
// the best figures bold, for a document in UTF-8.
func (t *Table) WriteLaTeX(w io.Writer) error { return latexTable.Execute(w, t.data()) }

func (t *Table) data() any {
	lines := t.lines()
	return struct {
		Caption   string
		Heads     []shown
		Rows      [][]shown
		Footnotes []string
	}{t.Caption, lines[0], lines[1:], t.Footnotes}
}

var htmlTable = htmltemplate.Must(htmltemplate.New("").Parse(`
{{- with .Caption}}<p class="caption">{{.}}</p>
{{end}}<div class="scroll"><table>
<thead><tr>{{range .Heads}}<th scope="col"><button type="button">{{.Text}}</button></th>{{end}}</tr></thead>
<tbody>
{{range .Rows}}<tr>{{range $i, $c := .}}{{if $i}}<td{{if .Best}} class="best"{{end}}
{{- with .Sort}} data-v="{{.}}"{{end}}>{{.Text}}</td>{{else}}<th scope="row">{{.Text}}</th>{{end}}{{end}}</tr>
{{end}}</tbody></table></div>
{{range .Footnotes}}<p class="note">{{.}}</p>
{{end}}`))

var markdownTable = template.Must(template.New("").Funcs(template.FuncMap{
	"cell": escape.Replace, "prose": func(s string) string {
		return prose.Replace(line(s))
	},
}).Parse(`
{{- with .Caption}}{{prose .}}

{{end}}{{range .Heads}}| {{cell .Text}} {{end}}|
|{{range $i, $_ := .Heads}}{{if $i}} ---: |{{else}} --- |{{end}}{{end}}
{{range .Rows}}{{range .}}| {{if .Best}}**{{cell .Text}}**{{else}}{{cell .Text}}{{end}} {{end}}|
{{end}}{{range .Footnotes}}
{{prose .}}
{{end}}`))

// prose keeps tags, links and pictures out of captions and notes, which have Markdown of their own.
var prose = strings.NewReplacer(`<`, `&lt;`, `[`, `\[`)

// escape makes names such as a_b, <x>, a|b and ~~c~~ show as they are. GitHub takes what is between two dollars for
// mathematics, also behind a backslash.
var escape = strings.NewReplacer(
	`\`, `\\`, `|`, `\|`, `*`, `\*`, `_`, `\_`, "`", "\\`", `<`, `&lt;`, `[`, `\[`, "\n", " ",
	`~`, `\~`, `$`, `&#36;`, `&`, `&amp;`,
)

var latexTable = template.Must(template.New("").Delims("<<", ">>").Funcs(template.FuncMap{
	"tex": latex.Replace,
}).Parse(
	`\begin{table}
\centering
<<with .Caption>>\caption{<<tex .>>}
<<end>>\begin{tabular}{<<range $i, $_ := .Heads>><<if $i>>r<<else>>l<<end>><<end>>}
\toprule
<<range $i, $c := .Heads>><<if $i>> & <<end>><<tex .Text>><<end>> \\
\midrule
<<range .Rows>>
<<- range $i, $c := .>><<if $i>> & <<end>>
<<- if .Best>>\textbf{<<tex .Text>>}<<else>><<tex .Text>><<end>><<end>> \\
<<end>>\bottomrule
\end{tabular}
<<range .Footnotes>>
<<tex .>>
<<end>>\end{table}
`))

// latex makes texts show as they are. LaTeX's text fonts lack what is in dollars here. It would take a [ at
// the beginning of a row for an argument of the command before it.
var latex = strings.NewReplacer(
	`\`, `\textbackslash{}`, `&`, `\&`, `%`, `\%`, `$`, `\$`, `#`, `\#`, `_`, `\_`,
	`{`, `\{`, `}`, `\}`, `~`, `\textasciitilde{}`, `^`, `\textasciicircum{}`, `<`,
	`$<$`, `>`, `$>$`, "\n", " ", `±`, `$\pm$`, `−`, `$-$`, `·`, `$\cdot$`, `≤`,
	`$\le$`, `≥`, `$\ge$`, `×`, `$\times$`, `√`, `$\surd$`, `β`, `$\beta$`, `κ`,
	`$\kappa$`, `[`, `{[}`, `τ`, `$\tau$`, `γ`, `$\gamma$`, `η`, `$\eta$`, `θ`, `$\theta$`, `†`,
	`$\dagger$`, `²`, `$^2$`, `*`, `$*$`, `|`, `$|$`, `Δ`, `$\Delta$`, `σ`, `$\sigma$`,
)
