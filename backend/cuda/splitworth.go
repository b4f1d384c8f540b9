//go:build (cuda && linux && amd64 && cgo) || emulate

package cuda

// worthSplitting are the products that gain by estimates for an H200: smaller ones wait for the two
// launches that split the operands, narrower ones for their bytes.
var worthSplitting = &splitting{flops: 1 << 28, width: 300}
