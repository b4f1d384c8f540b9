// Command doctor is specmatch doctor by itself.
//
//	go run ./experiments/doctor
//	go run -tags cuda ./experiments/doctor -backend cuda
package main

import (
	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/cmd/specmatch/doctor"
)

func main() { cli.Main(doctor.Run) }
