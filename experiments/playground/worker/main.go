//go:build js && wasm

// Command worker is what the playground's page runs in a web worker: it answers
// playground(method, request) by package play.
package main

import (
	"syscall/js"

	"github.com/specmatch/specmatch/experiments/playground/play"
)

func main() {
	var s play.Session
	js.Global().Set("playground", js.FuncOf(func(_ js.Value, args []js.Value) any {
		return s.Call(args[0].String(), args[1].String())
	}))
	js.Global().Call("ready")
	select {}
}
