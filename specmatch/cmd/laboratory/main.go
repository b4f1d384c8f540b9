// Command laboratory makes a page that predicts for molecules, searches and maps them, and fits models, in a tab of a
// browser: nothing that is dropped on it leaves the tab.
//
//	go run ./specmatch/cmd/laboratory            # serves it, on this machine only
//	go run ./specmatch/cmd/laboratory -out DIR   # writes it; open DIR/index.html, or put DIR on any static host
//
// The page is static files. See README.md.
package main

import (
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/report/webpage"
)

func main() { cli.Main(execute) }

func execute(ctx context.Context, args []string, stdout, _ io.Writer) error {
	const synopsis = "Serves a page that predicts for molecules in the browser, to this machine only."
	return webpage.Execute(ctx, "specmatch/cmd/laboratory", synopsis, policy, build, args, stdout)
}

// policy is what the server lets a browser load. The page has a stricter one of its own, which any host and a file keep:
// its scripts cannot connect to anything. Only the service worker, which keeps the page's files, may fetch these.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self' blob:; " +
	"style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

//go:embed page
var page embed.FS

// build returns the page's files. It compiles the engine, with the go command, from the module's source; equal sources
// give equal bytes.
func build(ctx context.Context) (webpage.Files, error) {
	source, err := webpage.Source(ctx)
	if err != nil {
		return nil, err
	}
	glue, err := webpage.Glue(ctx)
	if err != nil {
		return nil, err
	}
	wasm, err := webpage.Compile(ctx, source, "specmatch/laboratory/worker")
	if err != nil {
		return nil, err
	}
	parts := webpage.Files{"offline.js": webpage.Offline}
	entries, err := page.ReadDir("page")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		parts[e.Name()], err = page.ReadFile("page/" + e.Name())
		if err != nil {
			return nil, err
		}
	}
	// One script has all that a worker needs, because a page from a file may neither fetch nor start a worker from
	// another file.
	engine, err := json.Marshal(map[string]any{
		"worker": string(glue) + "\n" + string(parts["worker.js"]),
		"wasm":   wasm,
	})
	delete(parts, "worker.js")
	parts["engine.js"] = fmt.Appendf(nil, "engineLoaded(%s);\n", engine)
	return parts, err
}
