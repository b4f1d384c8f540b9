package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
)

// TestRequests: a command that answers requests gives each the bytes and the messages of a run of its own.
func TestRequests(t *testing.T) {
	t.Chdir(t.TempDir())
	texts := []string{"row,smiles\n0,CCO\n1,c1ccccc1\n", "row,smiles\n0,C1CC\n1,CC\n", "row,smiles\n0,C1CC\n", "row,smiles\n0,CCO\n1,c1ccccc1\n"}
	var requests bytes.Buffer
	for _, text := range texts {
		fmt.Fprintf(&requests, "%d\n%s", len(text), text)
	}
	stdin := os.Stdin
	defer func() { os.Stdin = stdin }()
	converse := func(flags string) ([]byte, error) {
		write(t, "requests", requests.String())
		var err error
		if os.Stdin, err = os.Open("requests"); err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		err = execute(t.Context(), strings.Fields("embed -in - -format csv -id row -out - "+flags), &out, io.Discard)
		return out.Bytes(), err
	}
	out, err := converse("-out-format requests -workers 1 -features descriptors")
	if err != nil {
		t.Fatal(err)
	}
	answers := bufio.NewReader(bytes.NewReader(out))
	for i, text := range texts {
		line, _ := answers.ReadString('\n')
		var head response
		if err := json.Unmarshal([]byte(line), &head); err != nil {
			t.Fatalf("request %d: %q: %v", i, line, err)
		}
		got := make([]byte, head.Bytes)
		if _, err := io.ReadFull(answers, got); err != nil {
			t.Fatal(err)
		}
		write(t, "m.csv", text)
		want, _, err := invoke(t.Context(), "embed -in m.csv -id row -features descriptors -out - -out-format npy")
		if string(got) != want || (err == nil) != (head.Error == "") {
			t.Errorf("request %d: %d bytes, %q; want %d, %v", i, len(got), head.Error, len(want), err)
		}
		if bad := strings.Contains(text, "C1CC"); bad != strings.Contains(head.Messages, "ring 1 is not closed") {
			t.Errorf("request %d: messages %q", i, head.Messages)
		}
	}
	requests.Reset()
	requests.WriteString("many\n")
	if _, err := converse("-out-format requests"); err == nil || !strings.Contains(err.Error(), "want a line with the bytes of a request") {
		t.Errorf("a wrong request: %v", err)
	}
	requests.Reset()
	requests.WriteString("9\nrow")
	if _, err := converse("-out-format requests"); err == nil || !strings.Contains(err.Error(), "a request of 9 bytes: unexpected EOF") {
		t.Errorf("half a request: %v", err)
	}
	if _, _, err := invoke(t.Context(), "embed -in m.csv -out - -out-format requests"); err == nil || !strings.Contains(err.Error(), "-out-format requests needs -in - and -out -") {
		t.Errorf("requests of a file: %v", err)
	}
}
