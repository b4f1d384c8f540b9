// Package play is what the playground's page asks the engine for: a tape to step
// through, views of a graph, and training step by step. It knows nothing of browsers: a
// [Session] takes and returns JSON, and is tested on the desktop. The program that is
// compiled to WebAssembly (../worker) only hands the messages over.
package play
