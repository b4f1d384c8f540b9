package main

import (
	"errors"
	"flag"
	"slices"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/backend/cpu"
	"github.com/specmatch/specmatch/specmatch/method"
	"github.com/specmatch/specmatch/specmatch/model"
	"github.com/specmatch/specmatch/specmatch/setting"
	"github.com/specmatch/specmatch/tensor"
)

// TestOneSetting: a setting that is added to the list of a method, and nowhere else, is a flag, is
// explained by -h, is recorded in config.json and in the model file, is taken over by a resumed
// run, and is in the table that the package for Python reads.
func TestOneSetting(t *testing.T) {
	m, err := method.Get("simgrace")
	if err != nil {
		t.Fatal(err)
	}
	declared := m.Settings
	t.Cleanup(func() { m.Settings = declared })
	strength := setting.New("test-strength", "`strength` of a test", setting.Positive, 2.).Formerly("test-power")
	m.Settings = append(slices.Clip(declared), strength)

	t.Chdir(t.TempDir())
	write(t, "m.csv", moleculeTable(12))
	explain := func(topic string) string {
		help, _, err := invoke(t.Context(), "train -h"+topic)
		if !errors.Is(err, flag.ErrHelp) {
			t.Fatal(err)
		}
		return help
	}
	for _, topic := range []string{" all", " simgrace"} {
		if help := explain(topic); !strings.Contains(help, "-test-strength strength\n\tstrength of a test\n\tdefault: 2\n") {
			t.Errorf("train -h%s:\n%s", topic, help)
		}
	}
	if help := explain(" joao"); strings.Contains(help, "-test-strength") {
		t.Errorf("train -h joao:\n%s", help)
	}
	want := `{"name":"test-strength","old":"test-power","type":"float","default":2,"usage":"strength of a test","group":"method"}`
	if table := must(t, "flags train"); !strings.Contains(table, want) {
		t.Errorf("flags train:\n%s", table)
	}
	for line, want := range map[string]string{
		"train -in m.csv -method infonce -test-strength 3 -out a":  "-test-strength has no effect on infonce",
		"train -in m.csv -method simgrace -test-strength 0 -out a": `invalid value "0" for flag -test-strength: want a number above 0`,
	} {
		if _, _, err := invoke(t.Context(), line); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
	}

	must(t, "train -in m.csv -method simgrace -test-power 3 -epochs 0 -out run"+tiny)
	if config := read(t, "run/config.json"); !strings.Contains(config, `"test-strength": 3`) || strings.Contains(config, "test-power") {
		t.Errorf("config.json:\n%s", config)
	}
	// The run of an earlier version has the old name.
	write(t, "run/config.json", strings.Replace(read(t, "run/config.json"), "test-strength", "test-power", 1))
	must(t, "train -out run")
	if config := read(t, "run/config.json"); !strings.Contains(config, `"test-strength": 3`) {
		t.Errorf("config.json of the resumed run:\n%s", config)
	}
	if _, _, err := invoke(t.Context(), "train -test-strength 4 -out run"); err == nil || !strings.Contains(err.Error(), "-test-strength was 3, now it is 4") {
		t.Errorf("another value: %v", err)
	}
	trained, err := model.Open("run/model.safetensors", cpu.New(tensor.Float32))
	if err != nil || trained.Card.Provenance.Options["test-strength"] != "3" {
		t.Errorf("the model file: %+v, %v", trained, err)
	}
}
