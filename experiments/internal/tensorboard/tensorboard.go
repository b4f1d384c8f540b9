// Package tensorboard writes curves as TensorBoard reads them: files of records, each
// an Event of TensorFlow's protocol buffers.
//
// A record is its length (8 bytes, little-endian), the length's checksum, the data and
// their checksum; a checksum is CRC-32C, rotated and shifted so that a checksum of data
// that hold checksums is no fixed point. An event has a time, a step, and scalars by
// tag, as float32.
//
// Reference: tensorflow/tsl, lib/io/record_writer.h; tensorflow/core/util/event.proto
// and framework/summary.proto.
package tensorboard

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"time"
)

// Name is that of an event file; TensorBoard knows them by "tfevents".
const Name = "events.out.tfevents.0.specmatch"

// Scalar is a value of a curve.
type Scalar struct {
	Tag   string
	Value float64
}

// Header returns the bytes with which a file begins.
func Header(at time.Time) []byte {
	return record(field(wallTime(at), 3, []byte("brain.Event:2")))
}

// Event returns the bytes of the scalars of a step.
func Event(at time.Time, step int, scalars []Scalar) []byte {
	var summary []byte
	for _, s := range scalars {
		value := field(nil, 1, []byte(s.Tag))
		value = append(value, 2<<3|fixed32)
		value = binary.LittleEndian.AppendUint32(value, math.Float32bits(float32(s.Value)))
		summary = field(summary, 1, value)
	}
	event := append(wallTime(at), 2<<3|varint)
	event = binary.AppendUvarint(event, uint64(step))
	return record(field(event, 5, summary))
}

// The types of protocol buffers' fields.
const (
	varint  = 0
	fixed64 = 1
	bytes   = 2
	fixed32 = 5
)

// wallTime is an event's first field, seconds since 1970.
func wallTime(at time.Time) []byte {
	return binary.LittleEndian.AppendUint64([]byte{1<<3 | fixed64}, math.Float64bits(float64(at.UnixNano())/1e9))
}

// field appends a field of bytes with a number below 16.
func field(b []byte, number byte, data []byte) []byte {
	b = binary.AppendUvarint(append(b, number<<3|bytes), uint64(len(data)))
	return append(b, data...)
}

func record(data []byte) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(data)))
	b = binary.LittleEndian.AppendUint32(b, masked(b))
	b = append(b, data...)
	return binary.LittleEndian.AppendUint32(b, masked(data))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func masked(data []byte) uint32 {
	c := crc32.Checksum(data, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
