// Command playground makes a page on which the engine runs, in the browser: step
// through a tape, break a VJP, see two views align.
//
//	go run ./experiments/playground            # serves it, on this machine only
//	go run ./experiments/playground -out DIR   # writes it; open DIR/index.html
//
// The page is static files without requests to anywhere else. See README.md.
package main

import (
	"context"
	"io"
	"net/http"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/report/webpage"
)

func main() { cli.Main(execute) }

func execute(ctx context.Context, args []string, stdout, _ io.Writer) error {
	const synopsis = "Serves a page that runs the engine in the browser, to this machine only."
	return webpage.Execute(ctx, "experiments/playground", synopsis, policy, build, args, stdout)
}

// policy is what a browser may load for the page: its own files and what they make, nothing else.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; " +
	"style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self' data: blob:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// handler serves the page's files.
func handler(parts webpage.Files) http.Handler { return parts.Handler(policy) }
