package layering

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend"
)

// sources calls visit for every Go file of the repository, whatever its build tags,
// with its path from the root.
func sources(t *testing.T, visit func(path string, set *token.FileSet, f *ast.File)) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	files := 0
	set := token.NewFileSet()
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		f, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files++
		path, err = filepath.Rel(root, path)
		visit(filepath.ToSlash(path), set, f)
		return err
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files below %s, error %v", files, root, err)
	}
}

// optional are the interfaces that an engine may offer, by name, and methods the
// methods of all of them.
func optional() (names, methods map[string]bool) {
	names, methods = map[string]bool{}, map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[backend.Capabilities]()) {
		if f.Type.Kind() == reflect.Interface {
			names[f.Type.Name()] = true
			for i := range f.Type.NumMethod() {
				methods[f.Type.Method(i).Name] = true
			}
		}
	}
	return names, methods
}

// TestOneDoor: nobody but backend.CapabilitiesOf asks an engine whether it offers
// something, by a type assertion or a type switch; and that asks for everything.
func TestOneDoor(t *testing.T) {
	names, methods := optional()
	asked := map[string]bool{}
	if len(names) < 9 {
		t.Fatalf("only %v can be offered", names)
	}
	sources(t, func(path string, set *token.FileSet, f *ast.File) {
		inside := strings.HasPrefix(path, "backend/") && strings.Count(path, "/") == 1
		check := func(typ ast.Expr) {
			name := ""
			switch x := typ.(type) {
			case *ast.SelectorExpr:
				if pkg, ok := x.X.(*ast.Ident); ok && pkg.Name == "backend" {
					name = x.Sel.Name
				}
			case *ast.Ident:
				if inside {
					name = x.Name
				}
			case *ast.InterfaceType:
				for _, m := range x.Methods.List {
					for _, n := range m.Names {
						if methods[n.Name] {
							t.Errorf("%v: a type assertion on an interface with %s; ask backend.CapabilitiesOf", set.Position(typ.Pos()), n.Name)
						}
					}
				}
			}
			switch {
			case !names[name]:
			case path == "backend/capabilities.go":
				asked[name] = true
			default:
				t.Errorf("%v: a type assertion on backend.%s; ask backend.CapabilitiesOf, or a tape", set.Position(typ.Pos()), name)
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.TypeAssertExpr:
				if n.Type != nil {
					check(n.Type)
				}
			case *ast.TypeSwitchStmt:
				for _, c := range n.Body.List {
					for _, typ := range c.(*ast.CaseClause).List {
						check(typ)
					}
				}
			}
			return true
		})
	})
	for name := range names {
		if !asked[name] {
			t.Errorf("backend.CapabilitiesOf does not ask for %s", name)
		}
	}
}

// TestTwoForms: an operator is a chain of operators, its definition, and at most one
// call that an engine offers. A VJP by hand over the primitives of an engine would
// be a third, so that
//
//   - in the packages above autodiff only files *_fused.go record operators of
//     their own (Tape.Record and RecordPair);
//   - a file NAME.go beside NAME_fused.go holds definitions and records none;
//   - in files *_fused.go a VJP calls the engine's fused form and no primitive but
//     Alloc and Free.
func TestTwoForms(t *testing.T) {
	type call struct{ path, position string }
	var records []call
	fused := map[string]int{}
	primitives := map[string]bool{}
	for typ, i := reflect.TypeFor[backend.Backend](), 0; i < typ.NumMethod(); i++ {
		if name := typ.Method(i).Name; name != "Alloc" && name != "Free" {
			primitives[name] = true
		}
	}
	sources(t, func(path string, set *token.FileSet, f *ast.File) {
		if strings.HasSuffix(path, "_test.go") || !under(path, []string{"autodiff", "gnn", "specmatch", "experiments"}) {
			return
		}
		isFused := strings.HasSuffix(path, "_fused.go")
		if isFused {
			fused[path] = 0
		}
		ast.Inspect(f, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			s, ok := c.Fun.(*ast.SelectorExpr)
			if !ok || s.Sel.Name != "Record" && s.Sel.Name != "RecordPair" {
				return true
			}
			records = append(records, call{path, set.Position(c.Pos()).String()})
			if isFused {
				fused[path]++
			}
			return true
		})
		if isFused {
			ast.Inspect(f, func(n ast.Node) bool {
				if c, ok := n.(*ast.CallExpr); ok {
					if s, ok := c.Fun.(*ast.SelectorExpr); ok && primitives[s.Sel.Name] && isEngine(s.X) {
						t.Errorf("%v: a fused form calls the primitive %s", set.Position(c.Pos()), s.Sel.Name)
					}
				}
				return true
			})
		}
	})
	for path, n := range fused {
		if n == 0 {
			t.Errorf("%s records no operator", path)
		}
	}
	if len(fused) < 3 {
		t.Errorf("only %v hold fused forms", fused)
	}
	for _, r := range records {
		_, beside := fused[strings.TrimSuffix(r.path, ".go")+"_fused.go"]
		switch {
		case strings.HasSuffix(r.path, "_fused.go"):
		case beside:
			t.Errorf("%s: an operator with a fused form records a VJP beside its definition", r.position)
		case !strings.HasPrefix(r.path, "autodiff/"):
			t.Errorf("%s: an operator of its own in a file that is not *_fused.go", r.position)
		}
	}
}

// isEngine reports whether an expression is, by its name, an engine.
func isEngine(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name == "be"
	case *ast.SelectorExpr:
		return x.Sel.Name == "be"
	case *ast.CallExpr:
		s, ok := x.Fun.(*ast.SelectorExpr)
		return ok && s.Sel.Name == "Backend"
	}
	return false
}

// TestEncodersWithoutSMILES: who encodes graphs does not link the parser of
// molecules.
func TestEncodersWithoutSMILES(t *testing.T) {
	for _, pkg := range []string{"gnn", "specmatch"} {
		out, err := exec.Command("go", "list", "-deps", module+pkg).CombinedOutput()
		if err != nil {
			t.Fatalf("go list: %v\n%s", err, out)
		}
		deps := strings.Fields(string(out))
		if len(deps) < 10 {
			t.Fatalf("%s has the dependencies %v", pkg, deps)
		}
		for _, dep := range deps {
			if dep == module+"gnn/molecule" {
				t.Errorf("package %s links %s", pkg, dep)
			}
		}
	}
}
