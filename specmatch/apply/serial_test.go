package apply

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/gnn/dataset/records"
)

// BenchmarkSerial measures what embed does on one goroutine however many cores there are: it cuts the lines
// of a table; and it gives vectors of 1,920 numbers their places in the file, sums them, and notes them. The
// workers write them.
//
//	go test -run '^$' -bench Serial ./specmatch/apply
func BenchmarkSerial(b *testing.B) {
	const molecules = 250_000
	perMolecule := func(b *testing.B, count int) {
		microseconds := float64(b.Elapsed().Microseconds()) / float64(b.N)
		b.ReportMetric(microseconds/float64(count), "µs/molecule")
		b.ReportMetric(0, "ns/op")
	}
	b.Run("cut", func(b *testing.B) {
		var table strings.Builder
		table.WriteString("smiles,name\n")
		for i := range molecules {
			fmt.Fprintf(&table, "C[C@@H]1CC(Nc2cncc(-c3nncn3C)c2)C[C@@H](C)C1,m%d\n", i)
		}
		for b.Loop() {
			options := records.Options{
				Input: strings.NewReader(table.String()),
				ID:    "name",
				Skip:  molecules, // cut, and not built
			}
			if err := records.Read(b.Context(), "m.csv", options, nil); err != nil {
				b.Fatal(err)
			}
		}
		perMolecule(b, molecules)
	})
	b.Run("place", func(b *testing.B) {
		const width = 1920
		job := &Job{Model: Model{Columns: make([]string, width)}}
		batch := Batch{
			narrow: make([]float32, batchRecords*width),
			width:  width,
			text:   new([]byte),
		}
		for i := range batchRecords {
			batch.Records = append(batch.Records, &records.Record{ID: fmt.Sprint("m", i)})
			for k := range width {
				batch.narrow[i*width+k] = float32(i-k) / 3
			}
		}
		const batches = molecules / batchRecords
		for b.Loop() {
			path := filepath.Join(b.TempDir(), "v.npy")
			p := partialFiles{names: partsOf(npyFormat{}, path)}
			if err := p.open(); err != nil {
				b.Fatal(err)
			}
			w := writer{
				job:     job,
				format:  npyFormat{},
				outputs: p.writers(),
				note:    p.note,
			}
			if err := w.begin(false); err != nil {
				b.Fatal(err)
			}
			if err := w.prepare(&batch); err != nil {
				b.Fatal(err)
			}
			texts := batch.texts
			for range batches {
				batch.texts = texts
				w.place(&batch)
				if err := w.write(batch); err != nil {
					b.Fatal(err)
				}
			}
			p.close()
		}
		perMolecule(b, batches*batchRecords)
	})
}
