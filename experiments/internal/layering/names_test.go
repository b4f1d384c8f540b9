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

// use is a name of the module that a file uses and another file declares.
type use struct {
	name, user, declarer string // files by their paths from the root
}

// usesOf returns what the listed files of the module use of other files: functions, methods,
// types, constants and variables, but not fields. declared holds the names of these kinds
// that the listed files declare.
func usesOf(t *testing.T, root string, listed []string) (uses []use, declared map[string]bool) {
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	packages, imports := compiled(t, root, listed)
	files := token.NewFileSet()
	config := types.Config{Importer: importer.ForCompiler(files, "gc", imports)}
	// fileOf returns the file of a position, "" if it is not of the module.
	fileOf := func(p token.Pos) string {
		path, inside := strings.CutPrefix(files.Position(p).Filename, root+string(filepath.Separator))
		if !inside {
			return ""
		}
		return filepath.ToSlash(path)
	}
	declared = map[string]bool{}
	for _, p := range packages {
		var trees []*ast.File
		for _, name := range p.GoFiles {
			tree, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			trees = append(trees, tree)
		}
		info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
		if _, err := config.Check(p.ImportPath, files, trees, info); err != nil {
			t.Fatal(err)
		}
		for identifier, object := range info.Uses {
			u := use{object.Name(), fileOf(identifier.Pos()), fileOf(object.Pos())}
			if counts(object) && slices.Contains(listed, u.user) && u.declarer != "" && u.declarer != u.user {
				uses = append(uses, u)
			}
		}
		for identifier, object := range info.Defs {
			if object != nil && counts(object) && slices.Contains(listed, fileOf(identifier.Pos())) {
				declared[object.Name()] = true
			}
		}
	}
	return uses, declared
}

// counts reports whether an object is a method or is declared at the top level of a package.
func counts(object types.Object) bool {
	if object.Pkg() == nil {
		return false
	}
	_, function := object.(*types.Func)
	return function || object.Pkg().Scope().Lookup(object.Name()) == object
}

// goPackage is a package as go list prints it.
type goPackage struct {
	Dir, ImportPath, Export string
	GoFiles                 []string
	DepOnly                 bool
}

// compiled returns the packages of files, and a function that opens the compiled form of
// each package that they import.
func compiled(t *testing.T, root string, listed []string) ([]goPackage, importer.Lookup) {
	command := exec.Command("go", "list", "-export", "-deps", "-json=Dir,ImportPath,Export,GoFiles,DepOnly")
	for _, file := range listed {
		if folder := "./" + filepath.ToSlash(filepath.Dir(file)); !slices.Contains(command.Args, folder) {
			command.Args = append(command.Args, folder)
		}
	}
	command.Dir = root
	command.Stderr = os.Stderr
	output, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	var packages []goPackage
	exports := map[string]string{}
	for decoder := json.NewDecoder(strings.NewReader(string(output))); ; {
		var p goPackage
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if !p.DepOnly {
			packages = append(packages, p)
		}
	}
	return packages, func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) }
}
