package cli_test

import (
	"encoding/json"
	"io"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/specmatch/cli"
	"github.com/specmatch/specmatch/specmatch/setting"
)

// shortened returns a flag with two short forms, and its value.
func shortened() (f *cli.FlagSet, scale *string) {
	f = cli.NewFlagSet("x", "Tests.", "-scale log")
	scale = new(string)
	*scale = "auto"
	cli.Var(f, scale, "scale", setting.Text, "`scale`")
	f.Short("log", "scale", "log")
	f.Short("range", "scale", "")
	f.Earlier("scale", "plain")
	return f, scale
}

// TestShort: short forms set the flag, two at once are a mistake, and runs that had them have the flag.
func TestShort(t *testing.T) {
	for args, want := range map[string]string{
		"":              "auto",
		"-log":          "log",
		"-log=false":    "auto",
		"-range 0,1":    "0,1",
		"-scale plain":  "plain",
		"-log -scale x": "-log and -scale both set -scale",
		"-log -range 1": "-log and -range both set -scale",
		"-log=perhaps":  "invalid",
	} {
		f, scale := shortened()
		got := ""
		if err := f.Parse(strings.Fields(args), io.Discard); err != nil {
			got = err.Error()
		} else {
			got = *scale
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
		if args == "-log" && !f.Given("scale") {
			t.Error("-scale is not given by -log")
		}
	}
	for flags, want := range map[string]string{
		`{"log":true,"range":""}`:     "log",
		`{"log":false,"range":"0,1"}`: "0,1",
		`{"log":false,"range":""}`:    "plain",
		`{"scale":"auto"}`:            "auto",
		`null`:                        "plain",
	} {
		f, scale := shortened()
		var previous map[string]json.RawMessage
		if err := json.Unmarshal([]byte(flags), &previous); err != nil {
			t.Fatal(err)
		}
		if err := f.Merge("run", previous, map[string]bool{}, false); err != nil || *scale != want {
			t.Errorf("%s: %s, want %s, error %v", flags, *scale, want, err)
		}
		if err := f.Compare(previous); err != nil {
			t.Errorf("%s: %v", flags, err)
		}
	}
}
