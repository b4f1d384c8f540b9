package rundir

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/specmatch/specmatch/autodiff/nn/files"
)

// board writes the event files, which TensorBoard reads, of units whose rows
// metrics.csv has: of all, or of one.
func (d *Dir) board(only string) error {
	_, rows, err := readMetrics(d.metrics.path)
	if err != nil {
		return err
	}
	events := map[string][]byte{}
	for _, row := range rows {
		if only != "" && row.Unit != only {
			continue
		}
		if events[row.Unit] == nil {
			events[row.Unit] = boardHeader(time.Now())
		}
		events[row.Unit] = append(events[row.Unit], d.metrics.event(time.Now(), row)...)
	}
	for unit, data := range events {
		path := d.events(unit)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := files.Write(path, func(w io.Writer) error { _, err := w.Write(data); return err }); err != nil {
			return fmt.Errorf("unit %q: %w", unit, err)
		}
	}
	return nil
}

// boardRow appends a row to the event file of its unit.
func (d *Dir) boardRow(row Epoch) error {
	f, err := os.OpenFile(d.events(row.Unit), os.O_WRONLY|os.O_APPEND, 0)
	if os.IsNotExist(err) {
		return d.board(row.Unit)
	}
	if err != nil {
		return err
	}
	return errors.Join(appendWhole(f, d.metrics.event(time.Now(), row)), f.Close())
}

// events is the path of a unit's event file: TensorBoard shows folders as runs, and knows
// the files by "tfevents".
func (d *Dir) events(unit string) string {
	return d.Join("tensorboard", filepath.FromSlash(strings.Map(plain, unit)), "events.out.tfevents.0.specmatch")
}

// plain replaces what names of files cannot have everywhere; a slash may stay.
func plain(r rune) rune {
	if strings.ContainsRune(`\:*?"<>| `, r) {
		return '_'
	}
	return r
}

// An event file is records, each an Event of TensorFlow's protocol buffers: a time in seconds
// since 1970 (field 1), and the version of the format (3), or a step (2) and a summary (5) of
// values (1) with tag (1) and float32 (2).
//
// Reference: tensorflow/core/util/event.proto and framework/summary.proto.

// boardHeader returns the bytes with which a file begins.
func boardHeader(at time.Time) []byte { return record(field(wallTime(at), 3, []byte("brain.Event:2"))) }

// event returns the bytes of the figures of a row of metrics.csv.
func (m *metrics) event(at time.Time, row Epoch) []byte {
	var summary []byte
	for _, name := range m.columns {
		if x, err := strconv.ParseFloat(row.Values[name], 64); err == nil && name != "seed" && name != "fold" {
			value := protowire.AppendTag(field(nil, 1, []byte(name)), 2, protowire.Fixed32Type)
			summary = field(summary, 1, protowire.AppendFixed32(value, math.Float32bits(float32(x))))
		}
	}
	step := protowire.AppendVarint(protowire.AppendTag(wallTime(at), 2, protowire.VarintType), uint64(row.Epoch))
	return record(field(step, 5, summary))
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
