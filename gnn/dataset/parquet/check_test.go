package parquet

import (
	"bytes"
	"compress/gzip"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	library "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
)

// TestUnpack: a page that unpacks to more than it announces is refused for every codec, and so is a
// damaged one.
func TestUnpack(t *testing.T) {
	const n = 1 << 20
	data := make([]byte, n)
	through := func(open func(w io.Writer) io.WriteCloser) []byte {
		var b bytes.Buffer
		w := open(&b)
		w.Write(data)
		w.Close()
		return b.Bytes()
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
		format.Snappy: snappy.Encode(nil, data),
	} {
		for limit, fits := range map[int]bool{n: true, n + 1: true, n - 1: false, 10: false, -1: false} {
			got, err := unpack(packed, codec, limit)
			if (err == nil) != fits || fits && !bytes.Equal(got, data) {
				t.Errorf("%v: unpacked to at most %d: %d bytes, %v", codec, limit, len(got), err)
			}
		}
		if got, err := unpack(packed[:3], codec, n); err == nil {
			t.Errorf("%v: a damaged page has %d bytes", codec, len(got))
		}
	}
	if got, err := unpack(data[:9], format.Uncompressed, 1); err != nil || len(got) != 9 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	for _, codec := range []format.CompressionCodec{format.LZO, format.Lz4Raw} {
		if _, err := unpack(data, codec, n); err == nil || !strings.Contains(err.Error(), "with zstd or snappy") {
			t.Errorf("%v: %v", codec, err)
		}
	}
}

// TestSumDeltas: the walk through a list of differences ends where the library's does, with the same
// sum.
func TestSumDeltas(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		values := make([]int32, rng.IntN(400))
		want := int64(0)
		least := int64(0)
		for i := range values {
			values[i] = int32(rng.Uint32()) >> rng.IntN(32)
			want += int64(values[i])
			if i == 0 || int64(values[i]) < least {
				least = int64(values[i])
			}
		}
		data, err := new(delta.BinaryPackedEncoding).EncodeInt32(nil, values)
		if err != nil {
			t.Fatal(err)
		}
		sum, smallest, rest, err := sumDeltas(append(data, "rest"...), 32, len(values))
		if err != nil || sum != want || smallest != least || string(rest) != "rest" {
			t.Errorf("%d values: sum %d, smallest %d, rest %q, %v; want %d, %d",
				len(values), sum, smallest, rest, err, want, least)
		}
		if n := len(values); n > spareValues {
			if _, _, _, err := sumDeltas(data, 32, n-spareValues-1); err == nil {
				t.Errorf("%d values of %d announced", n, n-spareValues-1)
			}
		}
	}
}

// TestCheckRuns: runs that hold more than a page announces, or lie beyond it, are refused.
func TestCheckRuns(t *testing.T) {
	for _, c := range []struct {
		data          string
		width, values int
		want          string
	}{
		{"\x14\x01", 1, 10, ""},
		{"\x03\xff\x02\x01", 1, 9, ""},
		{"\x03", 0, 8, ""},
		{"\xfe\xff\xff\xff\x0f\x01", 1, 30, "runs of 2147483647 values in a page of 30"},
		{"\xff\xff\xff\xff\x0f", 0, 30, "runs of"},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", 8, 30, "packed groups where 1 bytes are left"},
		{"\x03\x00", 3, 16, "a run of 3 bytes where 1 are left"},
		{"\x14", 1, 10, "a run of 1 bytes where 0 are left"},
		{"\x15" + strings.Repeat("\xff", 10), 1, 8, "runs of 80 values in a page of 8"},
		{"\x80", 1, 10, "does not end"},
		{"\x02\x00", 33, 1, "runs of numbers of 33 bits"},
	} {
		err := checkRuns([]byte(c.data), c.width, c.values)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.data, err, c.want)
		}
	}
}

// TestLengths: lists of lengths of which one is negative, or that add up to too much, are refused.
func TestLengths(t *testing.T) {
	var b bytes.Buffer
	if err := library.Write(&b, []struct{ Text string }{{"C"}}); err != nil {
		t.Fatal(err)
	}
	f, err := library.OpenFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
	if err != nil {
		t.Fatal(err)
	}
	column := f.Root().Columns()[0]
	for _, c := range []struct {
		lengths []int32
		want    string
	}{
		{[]int32{3, 0, 4}, ""},
		{[]int32{-5, 10}, "the shortest of -5"},
		{[]int32{maxPage, 1}, "at most"},
	} {
		data, err := new(delta.BinaryPackedEncoding).EncodeInt32(nil, c.lengths)
		if err != nil {
			t.Fatal(err)
		}
		memory, err := checkValues(column, format.DeltaLengthByteArray, len(c.lengths), data)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v; want %q", c.lengths, err, c.want)
		}
		if err == nil && memory != 7 {
			t.Errorf("%d bytes, want 7", memory)
		}
	}
}
