// Command playground makes a page on which the engine runs, in the browser: step
// through a tape, break a VJP, see two views align.
//
//	go run ./experiments/playground            # serves it, on this machine only
//	go run ./experiments/playground -out DIR   # writes it; open DIR/index.html
//
// The page is static files without requests to anywhere else. See README.md.
package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/tensor/files"
)

func main() { cli.Main(execute) }

func execute(ctx context.Context, args []string, stdout, _ io.Writer) error {
	flags := cli.NewFlagSet(
		"playground",
		"Serves a page that runs the engine in the browser, to this machine only.",
		"",
		"-out DIR")
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
		return write(*out, parts, stdout)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "http://%s/\n", l.Addr())
	server := &http.Server{Handler: handler(parts), ReadHeaderTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { server.Close() })
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return ctx.Err()
}

func write(dir string, parts map[string][]byte, stdout io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(parts)) {
		err := files.Write(filepath.Join(dir, name), func(w io.Writer) error {
			_, err := w.Write(parts[name])
			return err
		})
		if err != nil {
			return err
		}
	}
	fmt.Fprintln(stdout, filepath.Join(dir, "index.html"))
	return nil
}

// policy is what a browser may load for the page: its own files and what they make, nothing else.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; " +
	"style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self' data: blob:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// handler serves the page's files, to GET and HEAD, under a name of this machine. Another Host
// would be a page of the network that reaches the server through a name of its own.
func handler(parts map[string][]byte) http.Handler {
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
		part, ok := parts[name]
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
