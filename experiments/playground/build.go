package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/specmatch/specmatch/experiments/playground/play"
	"github.com/specmatch/specmatch/specmatch/report/webpage"
)

//go:embed page
var page embed.FS

// build returns the page's files by name. It compiles the engine, with the go command,
// from the module's source; equal sources give equal bytes.
func build(ctx context.Context) (webpage.Files, error) {
	root, err := webpage.Source(ctx)
	if err != nil {
		return nil, err
	}
	glue, err := webpage.Glue(ctx)
	if err != nil {
		return nil, err
	}
	wasm, err := webpage.Compile(ctx, root, "experiments/playground/worker")
	if err != nil {
		return nil, err
	}
	operators, err := operatorsOf(filepath.Join(root, "autodiff"))
	if err != nil {
		return nil, err
	}
	files := webpage.Files{}
	entries, err := page.ReadDir("page")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		files[e.Name()], err = page.ReadFile("page/" + e.Name())
		if err != nil {
			return nil, err
		}
	}
	// One script has all that the worker needs, because a page from a file may neither
	// fetch nor start a worker from another file.
	worker := string(glue) + "\n" + string(files["worker.js"])
	files["offline.js"] = webpage.Offline
	recorded, err := recording()
	if err != nil {
		return nil, err
	}
	files["recorded.js"] = fmt.Appendf(nil, "\"use strict\";\nconst recorded = %s;\n", recorded)
	engine, err := json.Marshal(map[string]any{"worker": worker, "wasm": wasm, "operators": operators})
	delete(files, "worker.js")
	files["engine.js"] = fmt.Appendf(nil, "engineLoaded(%s);\n", engine)
	return files, err
}

// recording returns the opening of the page as JSON: the engine trains for it once, on this machine.
var recording = sync.OnceValues(func() ([]byte, error) {
	opening, err := play.RecordOpening(openingEpochs)
	if err != nil {
		return nil, err
	}
	return json.Marshal(opening)
})

const openingEpochs = 10

// operator is what the page shows of an operator: its comment, its source and where it
// stands.
type operator struct {
	Doc    string `json:"doc"`
	VJP    string `json:"vjp"`
	File   string `json:"file"`
	Line   int    `json:"line"`
	Source string `json:"source"`
}

// operatorsOf reads the operators from the source of package autodiff: exported methods
// of Var and functions that return a *Var. Where a comment has no VJP, it is in that of
// the function that does the work.
func operatorsOf(dir string) (map[string]operator, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(paths) == 0 {
		return nil, fmt.Errorf("%s: no source: %v", dir, err)
	}
	set := token.NewFileSet()
	funcs := map[string]*ast.FuncDecl{}
	sources := map[string][]byte{}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sources[path] = text
		f, err := parser.ParseFile(set, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok && d.Doc != nil && ofVar(d) {
				funcs[d.Name.Name] = d
			}
		}
	}
	source := func(d *ast.FuncDecl) string {
		start := set.Position(d.Doc.Pos())
		end := set.Position(d.End())
		return string(sources[start.Filename][start.Offset:end.Offset])
	}
	operators := map[string]operator{}
	for name, d := range funcs {
		if !ast.IsExported(name) {
			continue
		}
		place := set.Position(d.Pos())
		o := operator{
			Doc:    d.Doc.Text(),
			VJP:    formula(d.Doc.Text()),
			File:   "autodiff/" + filepath.Base(place.Filename),
			Line:   place.Line,
			Source: source(d),
		}
		if o.VJP == "" {
			ast.Inspect(d.Body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok && o.VJP == "" {
					if f, ok := call.Fun.(*ast.Ident); ok && funcs[f.Name] != nil {
						o.VJP = formula(funcs[f.Name].Doc.Text())
						o.Source += "\n\n" + source(funcs[f.Name])
					}
				}
				return true
			})
		}
		operators[name] = o
	}
	return operators, nil
}

func ofVar(d *ast.FuncDecl) bool {
	l := d.Recv
	if l == nil {
		l = d.Type.Results
	}
	return l != nil && len(l.List) == 1 && types.ExprString(l.List[0].Type) == "*Var"
}

// formula returns the part of a comment that begins with VJP, or the table of a comment
// that has the gradients of several operators.
func formula(doc string) string {
	if i := strings.Index(doc, "VJP"); i >= 0 {
		text := doc[i:]
		text = text[strings.IndexAny(text, ":,")+1:]
		return strings.Join(strings.Fields(text), " ")
	}
	return strings.Join(gradients.FindAllString(doc, -1), "\n")
}

var gradients = regexp.MustCompile(`(?m)^\s*y = .*dx = .*$`)
