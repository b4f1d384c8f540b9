package parquet

import (
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"
)

// What a file may ask for. The library takes what a file says of itself at its word, and
// neither a failed allocation nor an overflow of the stack can be caught.
const (
	maxFooter  = 16 << 20  // bytes
	maxMeta    = 128 << 20 // bytes of memory of what a footer or a page's header becomes
	maxPage    = 64 << 20  // bytes of a page, uncompressed
	maxValues  = 8 << 20   // of a page
	maxGroup   = 512 << 20 // bytes of memory of the largest pages of all columns together
	maxNesting = 32        // of values in Thrift's encoding, and of columns
)

// checkFooter returns an error unless the footer of a file of size bytes is whole, and what
// it describes within bounds.
func checkFooter(r io.ReaderAt, size int64) error {
	tail := make([]byte, 8)
	if size < 12 {
		return fmt.Errorf("a Parquet file of %d bytes: want at least 12", size)
	}
	if _, err := r.ReadAt(tail, size-8); err != nil {
		return err
	}
	n := int64(binary.LittleEndian.Uint32(tail))
	switch {
	case string(tail[4:]) != "PAR1":
		return errors.New("not a Parquet file, or an encrypted one, or its end is missing")
	case n > size-12:
		return fmt.Errorf("its footer of %d bytes is longer than the file", n)
	case n > maxFooter:
		return fmt.Errorf("its footer has %d bytes: at most %d are read", n, maxFooter)
	}
	t := thrift{in: make([]byte, n)}
	if _, err := r.ReadAt(t.in, size-8-n); err != nil {
		return err
	}
	var children []int64 // of the elements of the schema
	groups, chunks := 0, 0
	t.begin = func(path uint64) {
		switch path {
		case pathSchema:
			children = append(children, 0)
		case pathGroups:
			groups++
		case pathChunks:
			chunks++
		}
	}
	t.number = func(path uint64, v int64) {
		if path == pathChildren && len(children) > 0 {
			children[len(children)-1] = v
		}
	}
	if t.structure(0, 0); t.err != nil {
		return fmt.Errorf("its footer: %w", t.err)
	}
	var open []int64 // groups of columns: how many of each are still to come
	leaves := 0
	for _, n := range children {
		if n > 0 {
			if open = append(open, n); len(open) > maxNesting {
				return fmt.Errorf("its columns are nested deeper than %d", maxNesting)
			}
			continue
		}
		leaves++
		for len(open) > 0 {
			if open[len(open)-1]--; open[len(open)-1] > 0 {
				break
			}
			open = open[:len(open)-1]
		}
	}
	if leaves*groups > chunks {
		return fmt.Errorf("its footer: %d groups of rows with %d columns, but %d chunks of columns", groups, leaves, chunks)
	}
	return nil
}

// checkPages returns an error unless the headers of all pages are whole, and the pages lie
// within the file and within bounds.
func checkPages(r io.ReaderAt, size int64, meta *format.FileMetaData) error {
	left := size
	for g, group := range meta.RowGroups {
		memory := int64(0)
		for c, chunk := range group.Columns {
			m := &chunk.MetaData
			at, n := m.DataPageOffset, m.TotalCompressedSize
			if m.DictionaryPageOffset != 0 {
				at = m.DictionaryPageOffset
			}
			if at < 0 || n < 0 || at > size || n > size-at || n > left {
				return fmt.Errorf("column %d of group %d of its rows lies beyond the file, or in another", c, g)
			}
			left -= n
			largest, err := checkChunk(io.NewSectionReader(r, at, n), m.Codec)
			if err != nil {
				return fmt.Errorf("column %d of group %d of its rows: %w", c, g, err)
			}
			if memory += largest; memory > maxGroup {
				return fmt.Errorf("pages of group %d of its rows take more than %d bytes of memory together", g, maxGroup)
			}
		}
	}
	return nil
}

// checkChunk checks the pages of a column in a group of rows, and returns about how many
// bytes of memory the largest takes.
func checkChunk(r *io.SectionReader, codec format.CompressionCodec) (largest int64, err error) {
	buffer := make([]byte, 0, 4096)
	for at := int64(0); at < r.Size(); {
		var t thrift
		var compressed, bytes, values, levels int64
		for size := int64(4096); ; size *= 16 { // statistics make some headers long
			size = min(size, r.Size()-at)
			buffer = append(buffer[:0], make([]byte, size)...)
			if _, err := r.ReadAt(buffer, at); err != nil {
				return 0, err
			}
			levels = 0
			t = thrift{in: buffer, number: func(path uint64, v int64) {
				switch path {
				case 2:
					bytes = v
				case 3:
					compressed = v
				case 0x0501, 0x0701, 0x0801:
					values = max(values, v)
				case 0x0805, 0x0806: // of a page of version 2, before its data and never compressed
					levels += v
				}
			}}
			if t.structure(0, 0); t.err == nil || size == r.Size()-at || size > maxFooter {
				break
			}
		}
		at += int64(len(buffer) - len(t.in))
		switch {
		case t.err != nil:
			return 0, fmt.Errorf("the header of a page: %w", t.err)
		case compressed < 0 || compressed > r.Size()-at:
			return 0, fmt.Errorf("a page of %d bytes, of which %d are there", compressed, r.Size()-at)
		case bytes < 0 || bytes > maxPage || compressed > maxPage:
			return 0, fmt.Errorf("a page of %d bytes: at most %d are read", max(bytes, compressed), maxPage)
		case levels < 0 || levels > min(bytes, compressed):
			return 0, fmt.Errorf("levels of %d bytes in a page of %d", levels, bytes)
		case values > maxValues:
			return 0, fmt.Errorf("a page of %d values: at most %d are read", values, maxValues)
		}
		if codec == format.Snappy { // whose data has a length of its own, which is believed
			head := make([]byte, min(binary.MaxVarintLen64, compressed))
			if _, err := r.ReadAt(head, at); err != nil {
				return 0, err
			}
			if n, _ := binary.Uvarint(head); n > maxPage {
				return 0, fmt.Errorf("a page of %d bytes: at most %d are read", n, maxPage)
			}
		}
		if !unpacksTo(io.NewSectionReader(r, at+levels, compressed-levels), codec, bytes-levels) {
			return 0, fmt.Errorf("a page that unpacks to more than the %d bytes that it names", bytes)
		}
		at += compressed
		largest = max(largest, bytes+compressed+8*values)
	}
	return largest, nil
}

// unpacksTo reports whether data unpack to at most n bytes, which the library does not ask. Damaged
// ones do: the library finds out.
func unpacksTo(r io.Reader, codec format.CompressionCodec, n int64) bool {
	var err error
	switch codec {
	case format.Gzip:
		r, err = gzip.NewReader(r)
	case format.Brotli:
		r = brotli.NewReader(r)
	case format.Zstd:
		var d *zstd.Decoder
		if d, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxPage)); err == nil {
			defer d.Close()
			r = d
		}
	case format.Lz4Raw:
		packed, err := io.ReadAll(r)
		if err != nil {
			return true
		}
		_, err = lz4.UncompressBlock(packed, make([]byte, n))
		return !errors.Is(err, lz4.ErrInvalidSourceShortBuffer)
	default:
		return true
	}
	if err != nil {
		return true
	}
	got, _ := io.Copy(io.Discard, io.LimitReader(r, n+1))
	return got <= n
}

// Places in a file's metadata: the numbers of the fields on the way, one byte each.
const (
	pathSchema   = 0x02
	pathChildren = 0x0205
	pathGroups   = 0x04
	pathChunks   = 0x0401
)

// thrift walks through a structure in Thrift's compact encoding, of which it makes nothing,
// up to the first error. See
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
type thrift struct {
	in     []byte
	memory int64                      // bytes that a reader of it takes, about
	begin  func(path uint64)          // if set, called for every structure in a list
	number func(path uint64, v int64) // if set, called for every integer
	err    error
}

func (t *thrift) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

func (t *thrift) skip(n uint64) []byte {
	if n > uint64(len(t.in)) {
		t.fail("a length of %d where %d bytes are left", n, len(t.in))
		return nil
	}
	b := t.in[:n]
	t.in = t.in[n:]
	return b
}

func (t *thrift) byte() byte {
	if b := t.skip(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (t *thrift) uvarint() uint64 {
	v, n := binary.Uvarint(t.in)
	if n <= 0 {
		t.fail("a number that does not end")
		return 0
	}
	t.in = t.in[n:]
	return v
}

func (t *thrift) varint() int64 {
	v := t.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (t *thrift) structure(path uint64, depth int) {
	for id := int64(0); t.err == nil; {
		b := t.byte()
		if b == 0 {
			return
		}
		if id += int64(b >> 4); b>>4 == 0 {
			id = t.varint()
		}
		kind := b & 15
		if kind == 1 || kind == 2 { // truth values, which have no bytes as fields
			continue
		}
		if id < 0 || id > 255 {
			id = 255 // of nobody
		}
		t.value(kind, path<<8|uint64(id), depth+1)
	}
}

func (t *thrift) value(kind byte, path uint64, depth int) {
	if depth > maxNesting {
		t.fail("values are nested deeper than %d", maxNesting)
		return
	}
	switch kind {
	case 1, 2, 3: // truth values in a list, and bytes
		t.byte()
	case 4, 5, 6: // integers
		if v := t.varint(); t.number != nil {
			t.number(path, v)
		}
	case 7: // a float
		t.skip(8)
	case 8: // text
		t.skip(t.uvarint())
	case 9, 10: // lists and sets
		head := t.byte()
		n := uint64(head >> 4)
		if n == 15 {
			n = t.uvarint()
		}
		t.elements(n, 1, path)
		for ; n > 0 && t.err == nil; n-- {
			if head&15 == 12 && t.begin != nil {
				t.begin(path)
			}
			t.value(head&15, path, depth+1)
		}
	case 11: // maps
		n := t.uvarint()
		if n == 0 {
			return
		}
		kinds := t.byte()
		t.elements(n, 2, path)
		for ; n > 0 && t.err == nil; n-- {
			t.value(kinds>>4, path<<8|255, depth+1)
			t.value(kinds&15, path<<8|255, depth+1)
		}
	case 12:
		t.structure(path, depth)
	default:
		t.fail("a value of type %d", kind)
	}
}

// elements checks that n elements of so many bytes at least are there, and that they fit
// into memory.
func (t *thrift) elements(n, bytes uint64, path uint64) {
	if n > uint64(len(t.in))/bytes {
		t.fail("a list of %d where %d bytes are left", n, len(t.in))
		return
	}
	each := int64(64)
	switch path {
	case pathSchema:
		each = 8 << 10 // a column that is read has buffers
	case pathGroups:
		each = int64(unsafe.Sizeof(format.RowGroup{}))
	case pathChunks:
		each = int64(unsafe.Sizeof(format.ColumnChunk{}) + unsafe.Sizeof(parquet.FileColumnChunk{}))
	}
	if t.memory += int64(n) * each; t.memory > maxMeta {
		t.fail("it describes more than fits into %d bytes of memory", maxMeta)
	}
}
