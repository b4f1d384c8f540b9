package main

import (
	"bufio"
	"context"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/experiments/playground/play"
	"github.com/specmatch/specmatch/specmatch/report/webpage"
)

// command is for the tests of the page.
var command = webpage.Output

var testContext = context.Background()

// TestOperators: every operator of the examples has a comment, a formula and a place.
func TestOperators(t *testing.T) {
	all, err := operatorsOf("../../autodiff")
	if err != nil {
		t.Fatal(err)
	}
	ops := map[string]bool{"SubRow": true, "MulScalar": true}
	for _, e := range play.Examples {
		tr, err := play.Tape{Text: e.Text, X: e.X, W: e.W, B: e.B}.Trace()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range tr.Steps {
			ops[tr.Nodes[s.Node].Op] = true
		}
	}
	for op := range ops {
		if o := all[op]; o.VJP == "" || o.Line == 0 || o.Source == "" || o.Doc == "" {
			t.Errorf("%s: %+v", op, o)
		}
	}
	if v := all["MatMul"].VJP; v != "dx = dy·wᵀ, dw = xᵀ·dy." {
		t.Errorf("the VJP of MatMul: %q", v)
	}
}

// TestRequests: raw requests, as no browser sends them too, get an answer and no panic.
func TestRequests(t *testing.T) {
	parts := map[string][]byte{"index.html": []byte("<p>page"), "app.js": []byte("let x")}
	var log strings.Builder
	server := httptest.NewUnstartedServer(handler(parts))
	server.Config.ErrorLog = stdlog.New(&log, "", 0)
	server.Start()
	defer server.Close()
	const local = "Host: 127.0.0.1\r\n"
	for request, want := range map[string]int{
		"GET / HTTP/1.1\r\n" + local:                            200,
		"GET /index.html HTTP/1.1\r\n" + local:                  200,
		"GET /app.js HTTP/1.1\r\n" + local:                      200,
		"GET /app.js?x=1 HTTP/1.1\r\n" + local:                  200,
		"HEAD / HTTP/1.1\r\n" + local:                           200,
		"GET / HTTP/1.1\r\nHost: localhost:8080\r\n":            200,
		"GET / HTTP/1.1\r\nHost: [::1]:8080\r\n":                200,
		"GET / HTTP/1.1\r\nHost: [::1]\r\n":                     200,
		"GET http://127.0.0.1 HTTP/1.1\r\n" + local:             200,
		"GET http://127.0.0.1/app.js HTTP/1.1\r\n" + local:      200,
		"GET /none HTTP/1.1\r\n" + local:                        404,
		"GET //app.js HTTP/1.1\r\n" + local:                     404,
		"GET /../main.go HTTP/1.1\r\n" + local:                  404,
		"GET /%2e%2e/main.go HTTP/1.1\r\n" + local:              404,
		"GET /app.js/ HTTP/1.1\r\n" + local:                     404,
		"GET /APP.JS HTTP/1.1\r\n" + local:                      404,
		"GET /%00 HTTP/1.1\r\n" + local:                         404,
		"GET mailto:a@b HTTP/1.1\r\n" + local:                   200,
		"GET * HTTP/1.1\r\n" + local:                            404,
		"OPTIONS * HTTP/1.1\r\nContent-Length: 0\r\n" + local:   200,
		"POST / HTTP/1.1\r\nContent-Length: 0\r\n" + local:      405,
		"PUT /app.js HTTP/1.1\r\nContent-Length: 0\r\n" + local: 405,
		"DELETE /app.js HTTP/1.1\r\n" + local:                   405,
		"OPTIONS / HTTP/1.1\r\n" + local:                        405,
		"TRACE / HTTP/1.1\r\n" + local:                          405,
		"CONNECT 127.0.0.1:80 HTTP/1.1\r\n" + local:             405,
		"BREW / HTTP/1.1\r\n" + local:                           405,
		"GET / HTTP/1.1\r\nHost: evil.example\r\n":              421,
		"GET http://evil.example/ HTTP/1.1\r\n" + local:         421,
		"GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n":    421,
		"GET / HTTP/1.1\r\nHost:\r\n":                           421,
		"GET / HTTP/1.1\r\n":                                    400,
		"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n":              400,
		"GET /app.js HTTP/1.1\r\nRange: bytes=0-2\r\n" + local:  206,
		"GET /app.js HTTP/1.1\r\nRange: bytes=99-\r\n" + local:  416,
		"GET /\xff HTTP/1.1\r\n" + local:                        404,
		"nonsense\r\n":                                          400,
	} {
		c, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, request+"Connection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		method, _, _ := strings.Cut(request, " ")
		answer, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
		c.Close()
		if err != nil || answer.StatusCode != want {
			t.Errorf("%q: %v, %v; want status %d", request, answer, err, want)
			continue
		}
		if want == 200 && method != "OPTIONS" && (answer.Header.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(answer.Header.Get("Content-Security-Policy"), "default-src 'none'")) {
			t.Errorf("%q: headers %v", request, answer.Header)
		}
	}
	server.Close()
	if log.Len() > 0 {
		t.Errorf("the server's log: %s", log.String())
	}
}
