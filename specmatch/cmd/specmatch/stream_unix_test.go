//go:build unix

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// TestStreams: standard input and pipes are read once, and a run is not resumed with other data from them.
func TestStreams(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(60))
	write(t, "other.csv", moleculeTable(50))
	if err := syscall.Mkfifo("pipe", 0o600); err != nil {
		t.Fatal(err)
	}
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	feed := func(input, file string) {
		t.Helper()
		var err error
		switch input {
		case "-":
			os.Stdin, err = os.Open(file)
		default:
			text := read(t, file)
			go os.WriteFile(input, []byte(text), 0) // it waits for a reader
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, input := range []string{"-", "pipe"} {
		for _, command := range []string{
			"finetune -target length -id name -epochs 1 -seeds 1 -out tuned" + input + few + tiny,
			"train -id name -epochs 1 -out encoder" + input + tiny,
		} {
			line := command + " -format csv -in " + input
			feed(input, "m.csv")
			must(t, line)
			feed(input, "m.csv")
			must(t, line)
			feed(input, "other.csv")
			want := "-in pipe is not the file that the run was started with"
			if input == stdio {
				want = "the data from standard input are not those that the run was started with"
			}
			if _, _, err := invoke(t.Context(), line); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s with other data: %v", line, err)
			}
		}
		write(t, "valid.csv", moleculeTable(20))
		line := "finetune -target length -id name -epochs 1 -seeds 1 -out valid" + input + few + tiny +
			" -format csv -valid valid.csv -in " + input
		feed(input, "m.csv")
		must(t, line)
		write(t, "valid.csv", moleculeTable(30))
		feed(input, "m.csv")
		if _, _, err := invoke(t.Context(), line); err == nil || !strings.Contains(err.Error(), "is not the file that") {
			t.Errorf("%s with another validation set: %v", line, err)
		}
		predict := "predict -format csv -id name -model tuned" + input + " -out p.csv -in " + input
		feed(input, "m.csv")
		must(t, predict)
		if n := strings.Count(read(t, "p.csv"), "\n"); n != 61 {
			t.Errorf("%s: %d lines, want 61", predict, n)
		}
		_, _, err := invoke(t.Context(), predict+" -explain why.jsonl")
		if err == nil || !strings.Contains(err.Error(), "can be read only once: write it to a file first") {
			t.Errorf("%s -explain why.jsonl: %v", predict, err)
		}
	}
	for _, flag := range []string{"valid", "test"} {
		line := "finetune -target length -format csv -in m.csv -out run" + flag + quick + " -" + flag + " pipe"
		feed("pipe", "m.csv")
		must(t, line)
		feed("pipe", "m.csv")
		must(t, line)
		feed("pipe", "other.csv")
		if _, _, err := invoke(t.Context(), line); err == nil || !strings.Contains(err.Error(), "is not the file that") {
			t.Errorf("%s with other data: %v", line, err)
		}
	}
}

// TestCollectFile: what hinders -collect from looking into a run is said.
func TestCollectFile(t *testing.T) {
	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(60))
	_, _, err := invoke(t.Context(), "finetune -out c -collect m.csv")
	if err == nil || !strings.Contains(err.Error(), "m.csv/config.json: not a directory") {
		t.Error(err)
	}
}
