package layering

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// foreignNames returns the names that the given files of the module use and other files of
// it declare: functions, methods, types, constants and variables, but not fields. Each comes
// as PACKAGE.NAME or PACKAGE.TYPE.NAME.
func foreignNames(t *testing.T, root string, listed []string) (names []string) {
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	reading := map[string]bool{} // absolute names of the files
	var folders []string
	for _, file := range listed {
		path := filepath.Join(root, file)
		reading[path] = true
		if folder := "./" + filepath.ToSlash(filepath.Dir(file)); !slices.Contains(folders, folder) {
			folders = append(folders, folder)
		}
	}

	// The compiled packages say what is declared where.
	type goPackage struct {
		Dir, ImportPath, Export string
		GoFiles                 []string
		DepOnly                 bool
	}
	command := exec.Command("go", append([]string{"list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly"}, folders...)...)
	command.Dir = root
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var packages []goPackage
	compiled := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p goPackage
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		compiled[p.ImportPath] = p.Export
		if !p.DepOnly {
			packages = append(packages, p)
		}
	}
	files := token.NewFileSet()
	imported := importer.ForCompiler(files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(compiled[path]) })

	for _, p := range packages {
		var trees []*ast.File
		for _, name := range p.GoFiles {
			tree, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			trees = append(trees, tree)
		}
		uses := &types.Info{Uses: map[*ast.Ident]types.Object{}}
		config := types.Config{Importer: imported}
		if _, err := config.Check(p.ImportPath, files, trees, uses); err != nil {
			t.Fatal(err)
		}
		for identifier, object := range uses.Uses {
			if name := foreignName(files, root, reading, identifier, object); name != "" {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// foreignName returns the name of an object that is used in a file that is read and declared
// in another file of the module; "" for other objects.
func foreignName(files *token.FileSet, root string, reading map[string]bool, use *ast.Ident, object types.Object) string {
	declared := files.Position(object.Pos()).Filename
	if object.Pkg() == nil || !reading[files.Position(use.Pos()).Filename] || reading[declared] || !strings.HasPrefix(declared, root+string(filepath.Separator)) {
		return ""
	}
	name := object.Pkg().Name() + "."
	switch o := object.(type) {
	case *types.PkgName:
		return ""
	case *types.Var:
		if o.IsField() && os.Getenv("FIELDS") == "" {
			return ""
		}
	case *types.Func:
		receiver := o.Signature().Recv()
		if receiver == nil {
			break
		}
		kind := receiver.Type()
		if pointer, ok := kind.(*types.Pointer); ok {
			kind = pointer.Elem()
		}
		if named, ok := kind.(*types.Named); ok {
			name += named.Obj().Name() + "."
		}
	}
	return name + object.Name()
}

func TestZZNames(t *testing.T) {
	files := strings.Fields(os.Getenv("LIST"))
	names := foreignNames(t, "../../..", files)
	t.Log(len(names), strings.Join(names, " "))
}
