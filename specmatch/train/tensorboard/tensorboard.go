// Package tensorboard encodes the event files that TensorBoard shows as curves: those of a
// run in a file of any folder, whose name has "tfevents" in it.
//
// A file is a [Header] and an [Event] for each step. It may grow while TensorBoard reads it.
//
// It is records, each an Event of TensorFlow's protocol buffers: a time in seconds since 1970
// (field 1), and the version of the format (3), or a step (2) and a summary (5) of values (1)
// with tag (1) and float32 (2).
//
// Reference: tensorflow/core/util/event.proto and framework/summary.proto.
package tensorboard

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Scalar is a figure of a step. Of a name with slashes what comes before the first is the
// section of the page.
type Scalar struct {
	Name  string
	Value float64 // is rounded to float32
}

// Header returns the bytes with which a file begins.
func Header(at time.Time) []byte {
	return record(field(wallTime(at), 3, []byte("brain.Event:2")))
}

// Event returns the bytes of a step.
func Event(at time.Time, step int, scalars ...Scalar) []byte {
	var summary []byte
	for _, s := range scalars {
		value := protowire.AppendTag(field(nil, 1, []byte(s.Name)), 2, protowire.Fixed32Type)
		summary = field(summary, 1, protowire.AppendFixed32(value, math.Float32bits(float32(s.Value))))
	}
	event := protowire.AppendVarint(protowire.AppendTag(wallTime(at), 2, protowire.VarintType), uint64(step))
	return record(field(event, 5, summary))
}

func wallTime(at time.Time) []byte {
	tag := protowire.AppendTag(nil, 1, protowire.Fixed64Type)
	return protowire.AppendFixed64(tag, math.Float64bits(float64(at.UnixNano())/1e9))
}

func field(b []byte, number protowire.Number, data []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), data)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// record returns data after their length and its checksum, and before their own. A checksum
// is CRC-32C, rotated and shifted so that one of data that hold checksums is no fixed point.
//
// Reference: tensorflow/tsl, lib/io/record_writer.h.
func record(data []byte) []byte {
	masked := func(data []byte) uint32 {
		c := crc32.Checksum(data, castagnoli)
		return (c>>15 | c<<17) + 0xa282ead8
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = append(binary.LittleEndian.AppendUint32(b, masked(b)), data...)
	return binary.LittleEndian.AppendUint32(b, masked(data))
}
