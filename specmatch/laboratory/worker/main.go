//go:build js && wasm

// Command worker is what the laboratory's page runs in web workers: it answers laboratory(method, request, data) by
// package laboratory.
package main

import (
	"runtime/debug"
	"syscall/js"

	"github.com/specmatch/specmatch/specmatch/laboratory"
)

func main() {
	// Memory of WebAssembly is never given back, and every worker has its own.
	debug.SetGCPercent(20)
	debug.SetMemoryLimit(92 << 20)
	s := laboratory.Session{Progress: func(share float64) { js.Global().Call("progress", share) }}
	js.Global().Set("laboratory", js.FuncOf(func(_ js.Value, args []js.Value) any {
		var data []byte
		if len(args) > 2 && !args[2].IsUndefined() {
			data = make([]byte, args[2].Length())
			js.CopyBytesToGo(data, args[2])
		}
		return s.Call(args[0].String(), args[1].String(), data)
	}))
	js.Global().Call("ready")
	select {}
}
