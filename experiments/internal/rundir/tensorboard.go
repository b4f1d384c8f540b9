package rundir

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/specmatch/specmatch/experiments/internal/tensorboard"
	"github.com/specmatch/specmatch/internal/files"
)

// board writes the event files, which TensorBoard reads, of units whose rows
// metrics.csv has: of all, or of one.
func (d *Dir) board(only string) error {
	rows, err := d.metrics.read()
	if err != nil {
		return err
	}
	events := map[string]*bytes.Buffer{}
	for _, row := range rows {
		unit := row[0]
		if only != "" && unit != only {
			continue
		}
		if events[unit] == nil {
			events[unit] = bytes.NewBuffer(tensorboard.Header(time.Now()))
		}
		events[unit].Write(d.metrics.event(row))
	}
	for unit, b := range events {
		path := d.events(unit)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return err
		}
		if err := files.Write(path, func(w io.Writer) error { _, err := w.Write(b.Bytes()); return err }); err != nil {
			return fmt.Errorf("unit %q: %w", unit, err)
		}
	}
	return nil
}

// boardRow appends a row to the event file of its unit.
func (d *Dir) boardRow(row []string) error {
	f, err := os.OpenFile(d.events(row[0]), os.O_WRONLY|os.O_APPEND, 0)
	if os.IsNotExist(err) {
		return d.board(row[0])
	}
	if err != nil {
		return err
	}
	return errors.Join(appendWhole(f, d.metrics.event(row)), f.Close())
}

// event returns the figures of a row of metrics.csv.
func (m *metrics) event(row []string) []byte {
	var scalars []tensorboard.Scalar
	for i, cell := range row[2:] {
		if x, err := strconv.ParseFloat(cell, 64); err == nil && !slices.Contains([]string{"seed", "fold"}, m.header[i+2]) {
			scalars = append(scalars, tensorboard.Scalar{Tag: m.header[i+2], Value: x})
		}
	}
	epoch, _ := strconv.Atoi(row[1]) // open has checked the numbers
	return tensorboard.Event(time.Now(), epoch, scalars)
}

// events is the path of a unit's event file: TensorBoard shows folders as runs.
func (d *Dir) events(unit string) string {
	return d.Join("tensorboard", filepath.FromSlash(strings.Map(plain, unit)), tensorboard.Name)
}

// plain replaces what names of files cannot have everywhere; a slash may stay.
func plain(r rune) rune {
	if strings.ContainsRune(`\:*?"<>| `, r) {
		return '_'
	}
	return r
}
