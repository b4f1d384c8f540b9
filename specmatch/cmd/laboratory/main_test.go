package main

import (
	"context"
	"encoding/base64"
	"errors"
	"flag"
	"io"
	"os"
	"strings"
	"testing"
)

var testContext = context.Background()

func encode(content []byte) string { return base64.StdEncoding.EncodeToString(content) }

// TestUsage: the help text names the folder that the program is run from.
func TestUsage(t *testing.T) {
	var stdout strings.Builder
	if err := execute(testContext, []string{"-h"}, &stdout, io.Discard); !errors.Is(err, flag.ErrHelp) && err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(stdout.String(), "Usage: go run ./specmatch/cmd/laboratory [flags]\n") {
		t.Error(stdout.String())
	}
}

// TestPolicy: the page has a policy of its own, by which its scripts cannot connect to anything, and its scripts and
// styles are files of the page.
func TestPolicy(t *testing.T) {
	text, err := os.ReadFile("page/index.html")
	if err != nil {
		t.Fatal(err)
	}
	html := string(text)
	if !strings.Contains(html, `http-equiv="Content-Security-Policy" content="default-src 'none';`) ||
		!strings.Contains(html, "connect-src 'none'") {
		t.Error("the page may connect")
	}
	for _, wrong := range []string{"http:", "https:", "src=\"//", "<script>"} {
		if strings.Contains(html, wrong) {
			t.Errorf("the page has %s", wrong)
		}
	}
}
