package finetune_test

import (
	"testing"

	"github.com/specmatch/specmatch/specmatch/finetune"
	"github.com/specmatch/specmatch/specmatch/train"
)

// A result without epochs, such as one of another version, is not one to report.
func TestCheck(t *testing.T) {
	if err := (&finetune.Result{Seconds: 1}).Check(); err == nil {
		t.Error("no epochs were accepted")
	}
	if err := (&finetune.Result{Epochs: []train.Metrics{{"loss": 1}}}).Check(); err != nil {
		t.Error(err)
	}
}
