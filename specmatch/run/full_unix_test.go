//go:build darwin || linux

package run_test

import (
	"log/slog"
	"math"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/specmatch/specmatch/specmatch/run"
)

// TestFull: a line of which the disk has room for a part leaves nothing behind, so
// that lines that fit again do not continue it. The limit of this process on the
// size of a file stands for the end of the disk.
func TestFull(t *testing.T) {
	o := options(t, t.TempDir())
	d := open(t, o)
	unit := func(name string, result string) error {
		err := d.Metrics(name, 1, slog.String("note", result))
		if err != nil {
			return err
		}
		_, err = run.Do(d, name, func() (string, error) { return result, nil })
		return err
	}
	if err := unit("a", "short"); err != nil {
		t.Fatal(err)
	}
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Skip(err)
	}
	for _, name := range []string{"metrics.csv", "done.jsonl"} {
		info, err := os.Stat(d.Join(name))
		if err != nil {
			t.Fatal(err)
		}
		limit := was
		limit.Cur = uint64(info.Size()) + 20
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Skip(err)
		}
		if name == "metrics.csv" {
			err = d.Metrics("b", 1, slog.String("note", strings.Repeat("x", 100)))
		} else {
			_, err = run.Do(d, "b", func() (float64, error) { return math.Pi, nil })
		}
		if e := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); e != nil {
			t.Fatal(e)
		}
		if err == nil {
			t.Fatalf("%s: nothing failed", name)
		}
	}
	if err := unit("c", "there is room again"); err != nil {
		t.Fatal(err)
	}
	d.Close()
	d = open(t, o)
	if d.Done("b") || !d.Done("a") || !d.Done("c") {
		t.Error("the journal does not have what was finished")
	}
	if want := "unit,epoch,note\na,1,short\nc,1,there is room again\n"; read(t, d, "metrics.csv") != want {
		t.Errorf("metrics %q, want %q", read(t, d, "metrics.csv"), want)
	}
}
