// Package webpage makes pages on which this module's code runs in the browser: it compiles a program to WebAssembly,
// and serves or writes the files of a page.
package webpage

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/tensor/files"
)

const module = "github.com/specmatch/specmatch"

// Offline is a service worker, which keeps a page's files for a reload without a network.
//
//go:embed offline.js
var Offline []byte

// Files are the files of a page by their names.
type Files map[string][]byte

// Source returns the folder of this module's source, by the go command. It is an error outside of that.
func Source(ctx context.Context) (string, error) {
	folder, err := Output(ctx, "go", "list", "-f", "{{.Module.Dir}}", module+"/autodiff")
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.Is(err, exec.ErrNotFound):
		return "", errors.New("the page is compiled by the go command, which is not in the PATH: install Go")
	case err != nil: // what the go command says would not help
		return "", fmt.Errorf("the page is compiled from the source of %s: change to a folder of a clone of it, "+
			"and repeat the command there", module)
	}
	return folder, nil
}

// Glue returns Go's script wasm_exec.js, which starts a program in a browser.
func Glue(ctx context.Context) ([]byte, error) {
	goroot, err := Output(ctx, "go", "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(goroot, "lib", "wasm", "wasm_exec.js"))
}

// Compile returns a program of this module, named by its folder in the source, as WebAssembly: compressed by gzip, in
// base 64. Equal sources give equal texts.
func Compile(ctx context.Context, source, folder string) (string, error) {
	dir, err := os.MkdirTemp("", "webpage")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "engine.wasm")
	c := exec.CommandContext(
		ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", path, module+"/"+folder,
	)
	c.Dir = source
	c.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%v: %w\n%s", c, err, out)
	}
	wasm, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = z.Write(wasm)
	}
	if err == nil {
		err = z.Close()
	}
	return base64.StdEncoding.EncodeToString(packed.Bytes()), err
}

// Output runs a command, and returns its standard output without blanks around it.
func Output(ctx context.Context, name string, args ...string) (string, error) {
	c := exec.CommandContext(ctx, name, args...)
	out, err := c.Output()
	if e, ok := err.(*exec.ExitError); ok {
		err = fmt.Errorf("%v: %w: %s", c, err, bytes.TrimSpace(e.Stderr))
	}
	return strings.TrimSpace(string(out)), err
}

// Execute is the program of a page: it builds the page, and serves it with a content security policy, or writes it with
// -out. The folder of the program in the module and the synopsis are for its usage text.
func Execute(
	ctx context.Context, folder, synopsis, policy string, build func(context.Context) (Files, error),
	args []string, stdout io.Writer,
) error {
	flags := cli.NewFlagSet(path.Base(folder), synopsis, "", "-out DIR")
	flags.RunFrom(folder)
	out := flags.String("out", "", "write the page to this `folder` instead of serving it")
	port := flags.Int("port", 0, "port `number`; 0 is any free port")
	if err := flags.Parse(args, stdout); err != nil {
		return err
	}
	parts, err := build(ctx)
	if err != nil {
		return err
	}
	if *out != "" {
		return parts.Write(*out, stdout)
	}
	return parts.Serve(ctx, *port, policy, stdout)
}

// Write writes a page to a folder, and prints the name of its index.html.
func (f Files) Write(dir string, stdout io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		err := files.Write(filepath.Join(dir, name), func(w io.Writer) error {
			_, err := w.Write(f[name])
			return err
		})
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(stdout, filepath.Join(dir, "index.html"))
	return nil
}

// Serve serves a page on a port of this machine, 0 for any free one, until ctx is cancelled. It prints the address.
func (f Files) Serve(ctx context.Context, port int, policy string, stdout io.Writer) error {
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "http://%s/\n", l.Addr())
	server := &http.Server{Handler: f.Handler(policy), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

// Handler serves a page with a content security policy, to GET and HEAD, under a name of this machine. Another Host
// would be a page of the network that reaches the server through a name of its own.
func (f Files) Handler(policy string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cache-Control", "no-cache")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			header.Set("Allow", "GET, HEAD")
			http.Error(w, "this server answers GET and HEAD only", http.StatusMethodNotAllowed)
			return
		}
		if !isLocal(r.Host) {
			http.Error(w, "this server answers as localhost only", http.StatusMisdirectedRequest)
			return
		}
		name := cmp.Or(strings.TrimPrefix(r.URL.Path, "/"), "index.html")
		part, ok := f[name]
		if !ok {
			http.NotFound(w, r)
			return
		}
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(part))
	})
}

// isLocal reports whether the Host of a request, with or without a port, is this machine's own.
func isLocal(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return host == "localhost" || host == "127.0.0.1" || host == "::1" || host == "[::1]"
}
