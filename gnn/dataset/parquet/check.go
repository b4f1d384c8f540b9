package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unsafe"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// Bounds of what a file may ask for. The library believes what a file says of itself, and
// neither a failed allocation nor an overflow of the stack can be caught.
const (
	maxFooter  = 16 << 20  // bytes
	maxMeta    = 128 << 20 // bytes of memory that a decoded footer or page header takes
	maxPage    = 64 << 20  // bytes of a page, uncompressed
	maxValues  = 8 << 20   // values of a page
	maxGroup   = 512 << 20 // bytes of memory that the largest pages of all columns take together
	maxNesting = 32        // depth of values in Thrift's encoding, and of columns
)

// checkFooter returns an error unless the footer of a file of size bytes is complete and
// describes nothing beyond the bounds.
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
	footer := make([]byte, n)
	if _, err := r.ReadAt(footer, size-8-n); err != nil {
		return err
	}
	if err := checkMetadata(footer); err != nil {
		return fmt.Errorf("its footer: %w", err)
	}
	return nil
}

// checkMetadata returns an error unless a footer is well-formed, and has as many chunks of columns as
// its row groups need.
func checkMetadata(footer []byte) error {
	t := thriftWalk{in: footer}
	var children []int64 // how many each element of the schema has
	var groups, chunks int
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
	t.structure(0, 0)
	if t.err != nil {
		return t.err
	}
	// The schema lists a tree in depth-first order.
	var open []int64 // how many children of each group of columns are still to come
	leaves := 0
	for _, n := range children {
		if n > 0 {
			open = append(open, n)
			if len(open) > maxNesting {
				return fmt.Errorf("columns are nested deeper than %d", maxNesting)
			}
			continue
		}
		leaves++
		for len(open) > 0 {
			open[len(open)-1]--
			if open[len(open)-1] > 0 {
				break
			}
			open = open[:len(open)-1]
		}
	}
	if leaves*groups > chunks {
		return fmt.Errorf("%d row groups with %d columns, but %d chunks of columns",
			groups, leaves, chunks)
	}
	return nil
}

// checkPages returns an error unless all pages lie within the file and within bounds, and their
// contents are what their headers say.
func checkPages(r io.ReaderAt, size int64, file *parquet.File) error {
	columns := leaves(nil, file.Root())
	unread := size
	for g, group := range file.Metadata().RowGroups {
		memory := int64(0)
		for c, chunk := range group.Columns {
			meta := &chunk.MetaData
			start := meta.DataPageOffset
			length := meta.TotalCompressedSize
			if meta.DictionaryPageOffset != 0 {
				start = meta.DictionaryPageOffset
			}
			if start < 0 || length < 0 || start > size || length > size-start || length > unread {
				return fmt.Errorf("column %d of row group %d lies beyond the file, or in another", c, g)
			}
			if c >= len(columns) {
				return fmt.Errorf("row group %d has %d columns: the schema has %d",
					g, len(group.Columns), len(columns))
			}
			unread -= length
			largest, err := checkChunk(io.NewSectionReader(r, start, length), columns[c], meta.DataPageOffset-start)
			if err != nil {
				return fmt.Errorf("column %d of row group %d: %w", c, g, err)
			}
			memory += largest
			if memory > maxGroup {
				return fmt.Errorf("the pages of row group %d take more than %d bytes of memory together",
					g, maxGroup)
			}
		}
	}
	return nil
}

// leaves appends the columns with values below a column, in the order of the file.
func leaves(columns []*parquet.Column, c *parquet.Column) []*parquet.Column {
	if c.Leaf() {
		return append(columns, c)
	}
	for _, child := range c.Columns() {
		columns = leaves(columns, child)
	}
	return columns
}

// checkChunk checks the pages of a column in a row group, and returns about how many bytes of
// memory the largest takes. A page must begin at the offset first, where the library begins to read.
func checkChunk(r *io.SectionReader, column *parquet.Column, first int64) (largest int64, err error) {
	found := false
	for offset := int64(0); offset < r.Size(); {
		found = found || offset == first
		header, length, err := readHeader(r, offset)
		if err != nil {
			return 0, fmt.Errorf("the header of a page: %w", err)
		}
		offset += length
		if err := checkHeader(header, r.Size()-offset); err != nil {
			return 0, err
		}
		packed := make([]byte, header.CompressedPageSize)
		if _, err := r.ReadAt(packed, offset); err != nil {
			return 0, err
		}
		offset += int64(len(packed))
		decoded, err := checkPayload(column, header, packed)
		if err != nil {
			return 0, err
		}
		raw := int64(header.UncompressedPageSize) + int64(header.CompressedPageSize)
		largest = max(largest, raw+decoded+8*announced(header))
	}
	// Outside, as in a file without rows, there is nothing to read.
	if !found && first >= 0 && first < r.Size() {
		return 0, errors.New("its first page of data is not where the footer says")
	}
	return largest, nil
}

// readHeader returns the header of the page that begins at an offset, and its length.
func readHeader(r *io.SectionReader, offset int64) (header *format.PageHeader, length int64, err error) {
	for size := int64(4096); ; size *= 16 { // statistics make some headers long
		size = min(size, r.Size()-offset)
		buffer := make([]byte, size)
		if _, err := r.ReadAt(buffer, offset); err != nil {
			return nil, 0, err
		}
		t := thriftWalk{in: buffer}
		t.structure(0, 0)
		if t.err == nil {
			length = size - int64(len(t.in))
			header = new(format.PageHeader)
			err = thrift.Unmarshal(new(thrift.CompactProtocol), buffer[:length], header)
			return header, length, err
		}
		if size == r.Size()-offset || size > maxFooter {
			return nil, 0, t.err
		}
	}
}

// checkHeader returns an error unless a page is within bounds, and in the bytes that are left.
func checkHeader(header *format.PageHeader, left int64) error {
	compressed := int64(header.CompressedPageSize)
	size := int64(header.UncompressedPageSize)
	values := announced(header)
	v2 := &header.DataPageHeaderV2.V
	levels := int64(v2.RepetitionLevelsByteLength) + int64(v2.DefinitionLevelsByteLength)
	switch {
	case compressed < 0 || compressed > left:
		return fmt.Errorf("a page of %d bytes, of which %d are there", compressed, left)
	case size < 0 || size > maxPage || compressed > maxPage:
		return fmt.Errorf("a page of %d bytes: at most %d are read", max(size, compressed), maxPage)
	case v2.RepetitionLevelsByteLength < 0 || v2.DefinitionLevelsByteLength < 0 ||
		levels > min(size, compressed):
		return fmt.Errorf("levels of %d bytes in a page of %d", levels, size)
	case values < 0 || values > maxValues:
		return fmt.Errorf("a page of %d values: at most %d are read", values, maxValues)
	}
	return nil
}

// announced returns how many values a page has by its header.
func announced(header *format.PageHeader) int64 {
	switch header.Type {
	case format.DictionaryPage:
		return int64(header.DictionaryPageHeader.V.NumValues)
	case format.DataPage:
		return int64(header.DataPageHeader.V.NumValues)
	case format.DataPageV2:
		return int64(header.DataPageHeaderV2.V.NumValues)
	}
	return 0
}

// Paths in a file's metadata: the numbers of the fields on the path, one byte each.
const (
	pathSchema   = 0x02
	pathChildren = 0x0205
	pathGroups   = 0x04
	pathChunks   = 0x0401
)

// thriftWalk walks through a structure in Thrift's compact encoding up to the first error,
// without decoding it. See
// https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md.
type thriftWalk struct {
	in     []byte
	memory int64                      // estimate of the bytes that the decoded structure takes
	begin  func(path uint64)          // if set, called for every structure in a list
	number func(path uint64, v int64) // if set, called for every integer
	err    error
}

func (t *thriftWalk) fail(format string, args ...any) {
	if t.err == nil {
		t.err = fmt.Errorf(format, args...)
	}
}

func (t *thriftWalk) skip(n uint64) []byte {
	if n > uint64(len(t.in)) {
		t.fail("a length of %d where %d bytes are left", n, len(t.in))
		return nil
	}
	b := t.in[:n]
	t.in = t.in[n:]
	return b
}

func (t *thriftWalk) byte() byte {
	if b := t.skip(1); len(b) == 1 {
		return b[0]
	}
	return 0
}

func (t *thriftWalk) uvarint() uint64 {
	v, n := binary.Uvarint(t.in)
	if n <= 0 {
		t.fail("a number that does not end")
		return 0
	}
	t.in = t.in[n:]
	return v
}

func (t *thriftWalk) varint() int64 {
	v := t.uvarint()
	return int64(v>>1) ^ -int64(v&1)
}

func (t *thriftWalk) structure(path uint64, depth int) {
	for id := int64(0); t.err == nil; {
		b := t.byte()
		if b == 0 {
			return
		}
		id += int64(b >> 4)
		if b>>4 == 0 {
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

func (t *thriftWalk) value(kind byte, path uint64, depth int) {
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

// elements fails unless n elements of at least so many bytes are there and fit into memory.
func (t *thriftWalk) elements(n, bytes uint64, path uint64) {
	if n > uint64(len(t.in))/bytes {
		t.fail("a list of %d where %d bytes are left", n, len(t.in))
		return
	}
	size := int64(64)
	switch path {
	case pathSchema:
		size = 8 << 10 // a column that is read has buffers
	case pathGroups:
		size = int64(unsafe.Sizeof(format.RowGroup{}))
	case pathChunks:
		size = int64(unsafe.Sizeof(format.ColumnChunk{}) + unsafe.Sizeof(parquet.FileColumnChunk{}))
	}
	t.memory += int64(n) * size
	if t.memory > maxMeta {
		t.fail("it describes more than fits into %d bytes of memory", maxMeta)
	}
}
