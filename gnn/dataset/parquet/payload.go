package parquet

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// spareValues is how many values a page may encode beyond those that it announces: runs of
// packed bits hold a multiple of eight.
const spareValues = 64

// oldDictionary is the encoding of indices, and of the dictionary itself, that older programs write.
const oldDictionary format.Encoding = 2

// checkPayload returns an error unless every length inside a page fits what the page has: the
// runs of levels and of indices into the dictionary, and the texts of the delta encodings. It
// returns the number of bytes that the decoded page takes.
func checkPayload(
	column *parquet.Column, header *format.PageHeader, packed []byte,
) (memory int64, err error) {
	codec := column.Compression().CompressionCodec()
	unpacked := int(header.UncompressedPageSize)
	switch header.Type {
	case format.DictionaryPage:
		data, err := unpack(packed, codec, unpacked)
		if err != nil {
			return 0, err
		}
		page := &header.DictionaryPageHeader.V
		encoding := page.Encoding
		if encoding == oldDictionary {
			encoding = format.Plain
		}
		return checkValues(column, encoding, int(page.NumValues), data)
	case format.DataPage:
		data, err := unpack(packed, codec, unpacked)
		if err != nil {
			return 0, err
		}
		page := &header.DataPageHeader.V
		values := int(page.NumValues)
		data, err = checkLevels(data, page.RepetitionLevelEncoding, column.MaxRepetitionLevel(), values)
		if err != nil {
			return 0, err
		}
		data, err = checkLevels(data, page.DefinitionLevelEncoding, column.MaxDefinitionLevel(), values)
		if err != nil {
			return 0, err
		}
		return checkValues(column, page.Encoding, values, data)
	case format.DataPageV2:
		page := &header.DataPageHeaderV2.V
		values := int(page.NumValues)
		repetitions := packed[:page.RepetitionLevelsByteLength]
		packed = packed[len(repetitions):]
		definitions := packed[:page.DefinitionLevelsByteLength]
		packed = packed[len(definitions):]
		if err := checkRuns(repetitions, levelBits(column.MaxRepetitionLevel()), values); err != nil {
			return 0, err
		}
		if err := checkRuns(definitions, levelBits(column.MaxDefinitionLevel()), values); err != nil {
			return 0, err
		}
		if !page.IsCompressed.Valid || page.IsCompressed.V {
			packed, err = unpack(packed, codec, unpacked-len(repetitions)-len(definitions))
			if err != nil {
				return 0, err
			}
		}
		return checkValues(column, page.Encoding, values, packed)
	}
	return 0, nil // the library refuses it
}

func levelBits(largest int) int { return bits.Len(uint(largest)) }

// checkLevels checks the levels at the start of a page of version 1, whose length stands in front
// of them, and returns the data behind them. A column whose levels are all 0 has none.
func checkLevels(
	data []byte, encoding format.Encoding, largest, values int,
) (remaining []byte, err error) {
	if largest == 0 {
		return data, nil
	}
	if len(data) < 4 {
		return nil, fmt.Errorf("levels in %d bytes: want at least 4", len(data))
	}
	length := int64(binary.LittleEndian.Uint32(data))
	data = data[4:]
	if length > int64(len(data)) {
		return nil, fmt.Errorf("levels of %d bytes where %d are left", length, len(data))
	}
	if encoding == format.RLE {
		err = checkRuns(data[:length], levelBits(largest), values)
	}
	return data[length:], err
}

// checkRuns returns an error unless runs of numbers of so many bits hold about as many values as
// the page announces, in the bytes that are there.
func checkRuns(data []byte, width, values int) error {
	if width > 32 {
		return fmt.Errorf("runs of numbers of %d bits", width)
	}
	total := uint64(0)
	for len(data) > 0 {
		head, n := binary.Uvarint(data)
		if n <= 0 {
			return errors.New("the length of a run does not end")
		}
		data = data[n:]
		// a value that is repeated
		count := head >> 1
		size := uint64(width+7) / 8
		if head&1 == 1 { // groups of eight values, packed
			if count > uint64(len(data)) && width > 0 {
				return fmt.Errorf("a run of %d packed groups where %d bytes are left", count, len(data))
			}
			size = count * uint64(width)
			count *= 8
		}
		if size > uint64(len(data)) {
			return fmt.Errorf("a run of %d bytes where %d are left", size, len(data))
		}
		data = data[size:]
		total += count
		if count > maxValues || total > uint64(values)+spareValues {
			return fmt.Errorf("runs of %d values in a page of %d", total, values)
		}
	}
	return nil
}

// checkValues returns an error unless the values of a page, at most so many, decode to a bounded
// number of bytes, which it returns.
func checkValues(
	column *parquet.Column, encoding format.Encoding, values int, data []byte,
) (memory int64, err error) {
	kind := column.Type().Kind()
	switch encoding {
	case oldDictionary, format.RLEDictionary:
		if len(data) == 0 {
			return 0, nil
		}
		return int64(4 * values), checkRuns(data[1:], int(data[0]), values)
	case format.RLE:
		if len(data) < 4 {
			return 0, nil // the library refuses it, unless there are no values
		}
		return int64(values), checkRuns(data[4:], 1, values)
	case format.DeltaBinaryPacked:
		width := 64
		if kind == parquet.Int32 {
			width = 32
		}
		_, _, _, err := sumDeltas(data, width, values)
		return int64(8 * values), err
	case format.DeltaLengthByteArray, format.DeltaByteArray:
		lengths := 1 // lists of lengths: of whole texts, or of prefixes and of what follows them
		if encoding == format.DeltaByteArray {
			lengths = 2
		}
		for range lengths {
			sum, smallest, remaining, err := sumDeltas(data, 32, values)
			if err != nil {
				return 0, err
			}
			if smallest < 0 || sum > maxPage {
				return 0, fmt.Errorf("texts of %d bytes, the shortest of %d, in a page: at most %d are read",
					sum, smallest, maxPage)
			}
			memory += sum
			data = remaining
		}
		return memory, nil
	}
	switch kind {
	case parquet.FixedLenByteArray:
		length := int64(column.Type().Length())
		if length < 0 || length > maxPage {
			return 0, fmt.Errorf("values of %d bytes each: at most %d are read", length, maxPage)
		}
		return length * int64(values), nil
	case parquet.ByteArray:
		return int64(len(data)), nil
	}
	return int64(12 * values), nil
}

// maxDeltaBlock is how many values a block of the delta encoding may have.
const maxDeltaBlock = 1 << 16

// sumDeltas walks through numbers of so many bits in the encoding DELTA_BINARY_PACKED and
// returns their sum, the smallest of them, and the data behind them. It returns an error if there are
// more than values, or if a block is not one.
func sumDeltas(data []byte, width, values int) (sum, smallest int64, remaining []byte, err error) {
	var head [4]uint64 // values in a block, miniblocks in a block, values in all, the first value
	for i := range head {
		v, n := binary.Uvarint(data)
		if n <= 0 {
			return 0, 0, nil, errors.New("the head of a list of differences does not end")
		}
		head[i] = v
		data = data[n:]
	}
	block := head[0]
	parts := head[1]
	count := head[2]
	switch {
	case block == 0 || block > maxDeltaBlock || block%128 != 0 || parts == 0 || block%parts != 0 ||
		block/parts%32 != 0:
		return 0, 0, nil, fmt.Errorf("differences in blocks of %d values in %d parts", block, parts)
	case count > uint64(values)+spareValues:
		return 0, 0, nil, fmt.Errorf("%d differences in a page of %d values", count, values)
	case count == 0:
		return 0, 0, data, nil
	}
	value := unzigzag(head[3])
	sum = value
	smallest = value
	for left := count - 1; left > 0; {
		least, n := binary.Uvarint(data)
		if n <= 0 || uint64(len(data)-n) < parts {
			return 0, 0, nil, fmt.Errorf("%d differences are missing", left)
		}
		widths := data[n : n+int(parts)]
		data = data[n+int(parts):]
		for _, w := range widths {
			if left == 0 {
				break
			}
			if int(w) > width {
				return 0, 0, nil, fmt.Errorf("differences of %d bits in numbers of %d", w, width)
			}
			size := int(block/parts) * int(w) / 8
			packed := data[:min(size, len(data))]
			data = data[len(packed):]
			for k := range min(left, block/parts) {
				value += unzigzag(least) + int64(bitsAt(packed, int(k)*int(w), int(w)))
				if width == 32 {
					value = int64(int32(value))
				}
				sum += value
				smallest = min(smallest, value)
			}
			left -= min(left, block/parts)
		}
	}
	return sum, smallest, data, nil
}

func unzigzag(v uint64) int64 { return int64(v>>1) ^ -int64(v&1) }

// bitsAt returns the number of so many bits that begins at a bit of data, the least significant
// bit first. Bits beyond the end are 0.
func bitsAt(data []byte, offset, width int) (v uint64) {
	for got := 0; got < width; {
		i := (offset + got) / 8
		if i >= len(data) {
			break
		}
		shift := (offset + got) % 8
		v |= uint64(data[i]>>shift) << got
		got += 8 - shift
	}
	if width < 64 {
		v &= 1<<width - 1
	}
	return v
}

// errTooLong is the error for a page that unpacks to more than it announces.
var errTooLong = errors.New("a page that unpacks to more bytes than it names")

// unpack returns the contents of a page, at most n bytes.
func unpack(packed []byte, codec format.CompressionCodec, n int) (data []byte, err error) {
	if n < 0 {
		return nil, errTooLong
	}
	var r io.Reader
	input := bytes.NewReader(packed)
	switch codec {
	case format.Uncompressed:
		return packed, nil
	case format.Snappy:
		length, err := snappy.DecodedLen(packed)
		if err == nil && length > n {
			return nil, errTooLong
		}
		return snappy.Decode(nil, packed)
	case format.Gzip:
		r, err = gzip.NewReader(input)
	case format.Brotli:
		r = brotli.NewReader(input)
	case format.Zstd:
		var d *zstd.Decoder
		d, err = zstd.NewReader(
			input, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxPage),
		)
		if err == nil {
			defer d.Close()
			r = d
		}
	default:
		// The library reads LZ4, but wrongly: it gives the contents of a page that it had to make room for
		// as zeros, or as those of an earlier page.
		return nil, fmt.Errorf("the compression %v is not read; write the file with zstd or snappy, "+
			`as by df.to_parquet(NAME, compression="zstd") in Python`, codec)
	}
	if err != nil {
		return nil, err
	}
	data, err = io.ReadAll(io.LimitReader(r, int64(n)+1))
	if len(data) > n {
		return nil, errTooLong
	}
	return data, err
}
