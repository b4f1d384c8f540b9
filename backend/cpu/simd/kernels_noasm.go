//go:build !amd64 || noasm

package simd

// noAsm is the panic of what is never called in builds without assembly.
const noAsm = "simd: no assembly in this build"

func strips() *stripSet { panic(noAsm) }

var maskTable [16]uint32

func smoLanes() int        { return 0 }
func smoUpdate(p *smoArgs) { panic(noAsm) }
func smoGain(p *smoArgs)   { panic(noAsm) }
