package word2vec

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkSkipGram learns vectors of 128 numbers with five negative samples, from walks
// on so many words that a core's cache holds their vectors, or hardly any of them.
func BenchmarkSkipGram(b *testing.B) {
	for _, words := range []int{1000, 200000} {
		b.Run(fmt.Sprint(words, " words"), func(b *testing.B) {
			const docs, length = 2000, 20
			c := Corpus{Docs: docs, Words: words, Doc: func(i int, buf []int32) []int32 {
				for k := range length { // 30 words in common with no other document but its like
					buf = append(buf, int32((i*30+k*7%30)%words))
				}
				return buf
			}}
			cfg := Config{Dim: 128, Window: 10, Negative: 5, MinCount: 0, Rate: 0.025, LastRate: 1e-4, Epochs: 1, Seed: 1}
			t, err := newTrainer(b.Context(), c, cfg, skipGram)
			if err != nil {
				b.Fatal(err)
			}
			t.start(rand.New(rand.NewPCG(1, 1)))
			for b.Loop() {
				if err := t.epoch(b.Context(), 0, randomDraws{rand.New(rand.NewPCG(1, 1))}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.N)*docs*length*11*6/b.Elapsed().Seconds()/1e6, "Mupdates/s")
		})
	}
}
