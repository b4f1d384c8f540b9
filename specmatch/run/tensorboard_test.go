package run_test

import (
	"encoding/binary"
	"hash/crc32"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
)

// events returns what an event file of a unit holds after its header, as a test reads
// the format: the checksums of every record hold, and each event's data end with one
// scalar, whose value they end with.
func events(t *testing.T, path string) (values []float32) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := func(b []byte) uint32 {
		c := crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))
		return (c>>15 | c<<17) + 0xa282ead8
	}
	for first := true; len(data) > 0; first = false {
		n := binary.LittleEndian.Uint64(data)
		event := data[12 : 12+n]
		if binary.LittleEndian.Uint32(data[8:]) != sum(data[:8]) || binary.LittleEndian.Uint32(data[12+n:]) != sum(event) {
			t.Fatalf("%s: a checksum is wrong", path)
		}
		if !first {
			values = append(values, math.Float32frombits(binary.LittleEndian.Uint32(event[n-4:])))
		}
		data = data[16+n:]
	}
	return values
}

// TestTensorBoardIsKept: a run that is resumed goes on writing event files without the flag, and stops when
// it is told to.
func TestTensorBoardIsKept(t *testing.T) {
	dir := started(t, "-tensorboard")
	for _, c := range []struct {
		args []string
		want bool
	}{
		{[]string{"-out", dir}, true},
		{[]string{"-out", dir, "-tensorboard=false"}, false},
		{[]string{"-out", started(t)}, false},
		{[]string{"-out", started(t), "-tensorboard"}, true},
	} {
		got, _, err := parseSet(c.args...)
		if err != nil || got.Output.TensorBoard != c.want {
			t.Errorf("%q: %v, %v", c.args, got.Output.TensorBoard, err)
		}
	}
}

// With -tensorboard, event files hold what metrics.csv holds, also of a unit that
// repeats epochs, and of what ran without the flag.
func TestTensorBoard(t *testing.T) {
	dir := t.TempDir()
	write := func(request bool, epoch int, loss float64) {
		t.Helper()
		o := options(t, dir)
		d := open(t, o)
		d.Output.TensorBoard = request
		if err := d.Metrics("a:b/seed=1", epoch, slog.String("method", "x"), slog.Int("seed", 1), slog.Float64("loss", loss)); err != nil {
			t.Fatal(err)
		}
		d.Close()
	}
	file := filepath.Join(dir, "tensorboard", "a_b", "seed=1", "events.out.tfevents.0.specmatch")
	write(false, 1, 4)
	if _, err := os.Stat(file); err == nil {
		t.Error("written without request")
	}
	for _, step := range []struct {
		epoch int
		loss  float64
		want  []float32
	}{
		{2, 3, []float32{4, 3}}, {3, 2, []float32{4, 3, 2}}, {2, 1, []float32{4, 1}},
	} {
		write(true, step.epoch, step.loss)
		got := events(t, file)
		if len(got) != len(step.want) {
			t.Fatalf("after epoch %d: %v, want %v", step.epoch, got, step.want)
		}
		for i := range got {
			if got[i] != step.want[i] {
				t.Errorf("after epoch %d: %v, want %v", step.epoch, got, step.want)
			}
		}
	}
}
