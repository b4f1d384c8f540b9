package main

import (
	"context"
	"encoding/base64"
	"os"
	"strings"
	"testing"
)

var testContext = context.Background()

func encode(content []byte) string { return base64.StdEncoding.EncodeToString(content) }

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
