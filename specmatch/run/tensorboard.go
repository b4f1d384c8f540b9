package run

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/specmatch/specmatch/specmatch/train/tensorboard"
	"github.com/specmatch/specmatch/tensor/files"
)

// board writes TensorBoard event files for the units in metrics.csv, or for one of them.
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
			events[row.Unit] = tensorboard.Header(time.Now())
		}
		events[row.Unit] = append(events[row.Unit], d.metrics.event(row)...)
	}
	for unit, data := range events {
		path := d.events(unit)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := files.Write(path, func(w io.Writer) error {
			_, err := w.Write(data)
			return err
		}); err != nil {
			return fmt.Errorf("unit %q: %w", unit, err)
		}
	}
	return nil
}

func (d *Dir) boardRow(row Epoch) error {
	f, err := os.OpenFile(d.events(row.Unit), os.O_WRONLY|os.O_APPEND, 0)
	if os.IsNotExist(err) {
		return d.board(row.Unit)
	}
	if err != nil {
		return err
	}
	return errors.Join(appendWhole(f, d.metrics.event(row)), f.Close())
}

// events returns the path of a unit's event file. TensorBoard shows folders as runs, and recognises
// the files by "tfevents".
func (d *Dir) events(unit string) string {
	return d.Join("tensorboard", filepath.FromSlash(strings.Map(plain, unit)),
		"events.out.tfevents.0.specmatch")
}

// plain replaces characters that some systems forbid in file names. It keeps slashes.
func plain(r rune) rune {
	if strings.ContainsRune(`\:*?"<>| `, r) {
		return '_'
	}
	return r
}

func (m *metrics) event(row Epoch) []byte {
	var scalars []tensorboard.Scalar
	for _, name := range m.columns {
		if x, err := strconv.ParseFloat(row.Values[name], 64); err == nil && name != "seed" &&
			name != "fold" {
			scalars = append(scalars, tensorboard.Scalar{Name: name, Value: x})
		}
	}
	return tensorboard.Event(time.Now(), row.Epoch, scalars...)
}
