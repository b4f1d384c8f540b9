package parquet

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// TestUnpacksTo: a page that unpacks to more than it says is found out by every codec that would
// otherwise fill the memory; one that is damaged is left to the library.
func TestUnpacksTo(t *testing.T) {
	const n = 1 << 20
	data := make([]byte, n)
	through := func(open func(w io.Writer) io.WriteCloser) []byte {
		var b bytes.Buffer
		w := open(&b)
		w.Write(data)
		w.Close()
		return b.Bytes()
	}
	block := make([]byte, lz4.CompressBlockBound(n))
	size, err := lz4.CompressBlock(data, block, nil)
	if err != nil {
		t.Fatal(err)
	}
	for codec, packed := range map[format.CompressionCodec][]byte{
		format.Gzip:   through(func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) }),
		format.Brotli: through(func(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }),
		format.Zstd: through(func(w io.Writer) io.WriteCloser {
			e, err := zstd.NewWriter(w)
			if err != nil {
				t.Fatal(err)
			}
			return e
		}),
		format.Lz4Raw: block[:size],
	} {
		for want, right := range map[int64]bool{n: true, n + 1: true, n - 1: false, 10: false} {
			if got := unpacksTo(bytes.NewReader(packed), codec, want); got != right {
				t.Errorf("%v: unpacks to %d: %v", codec, want, got)
			}
		}
		if codec != format.Lz4Raw && !unpacksTo(bytes.NewReader(packed[:3]), codec, n) { // LZ4 does not tell the two apart
			t.Errorf("%v: a damaged page is said to be too long", codec)
		}
	}
}
