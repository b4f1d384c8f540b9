// Command datasets is specmatch datasets by itself.
//
//	go run ./experiments/datasets list
package main

import (
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/cmd/specmatch/datasets"
)

func main() { cli.Main(datasets.Run) }
