//go:build emulate || cuda

package gnn_test

import (
	"github.com/specmatch/specmatch/backend/backendtest"
	_ "github.com/specmatch/specmatch/backend/cuda"
)

func init() { fusing = append(fusing, backendtest.Others("cuda-emulator", "cuda", "cuda-3xtf32")...) }
