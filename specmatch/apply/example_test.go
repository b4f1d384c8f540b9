package apply_test

import (
	"context"
	"fmt"
	"log"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/specmatch/apply"
	"github.com/specmatch/specmatch/specmatch/pretrained"
	"github.com/specmatch/specmatch/tensor"
)

const molecules = `name,smiles
ethanol,CCO
wrong,C1CC
benzene,c1ccccc1
cyclohexane,C1CCCCC1
propanol,CCCO
`

// A table of molecules becomes a table of vectors, by the encoder that is part of this
// module. What cannot be read is listed beside it.
func ExampleJob_WriteFile() {
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	in, out := filepath.Join(dir, "molecules.csv"), filepath.Join(dir, "vectors.csv")
	if err := os.WriteFile(in, []byte(molecules), 0o666); err != nil {
		log.Fatal(err)
	}

	encoder, err := pretrained.Open(cpu.New(tensor.Float32))
	if err != nil {
		log.Fatal(err)
	}
	model, err := apply.Embedder(encoder)
	if err != nil {
		log.Fatal(err)
	}
	job := apply.Job{Path: in, Model: model}
	job.Records.ID = "name"
	result, err := job.WriteFile(context.Background(), out)
	if err != nil {
		log.Fatal(err)
	}

	fmt.Printf("%d of %d records cannot be used\n", result.Rejected, result.Records)
	for _, name := range []string{out, out + apply.Rejected} {
		text, err := os.ReadFile(name)
		if err != nil {
			log.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			id, rest, _ := strings.Cut(strings.TrimSpace(line), ",")
			fmt.Println(id, strings.Count(rest, ",")+1)
		}
	}
	// Output:
	// 1 of 5 records cannot be used
	// id 1920
	// ethanol 1920
	// benzene 1920
	// cyclohexane 1920
	// propanol 1920
	// line 3
	// 3 3
}

// Rows can go anywhere: here, to the nearest of all molecules to ethanol.
func ExampleJob_Stream() {
	encoder, err := pretrained.Open(cpu.New(tensor.Float32))
	if err != nil {
		log.Fatal(err)
	}
	model, err := apply.Embedder(encoder)
	if err != nil {
		log.Fatal(err)
	}
	job := apply.Job{Path: "molecules.csv", Model: model}
	job.Records.ID, job.Records.Input = "name", strings.NewReader(molecules)

	var ethanol []float64
	nearest, least := "", math.Inf(1)
	err = job.Stream(context.Background(), func(b apply.Batch) error {
		for record, row := range b.Rows() {
			if record.ID == "ethanol" {
				ethanol = append(ethanol, row...)
				continue
			}
			distance := 0.0
			for k, v := range row {
				distance += (v - ethanol[k]) * (v - ethanol[k])
			}
			if distance < least {
				nearest, least = record.ID, distance
			}
		}
		return nil
	})
	fmt.Println(nearest, err)
	// Output: propanol <nil>
}
