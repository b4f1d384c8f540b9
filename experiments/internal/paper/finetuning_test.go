package paper

import (
	"io"
	"testing"

	"github.com/specmatch/specmatch/specmatch/cli"
)

// TestFinetuning: flags reach their fields, batches of fine-tuning have a flag where they are
// not those of pre-training, and -pretrained leaves no pre-training to do.
func TestFinetuning(t *testing.T) {
	for _, batch := range []int{0, 32} {
		r := Finetuning{Epochs: 100, Batch: batch, LR: 0.001}
		f := cli.NewFlagSet("x", "", "")
		f.Add(&r)
		if !r.PretrainsHere("graphcl") || r.PretrainsHere(None) || r.PretrainsHere(Augmentation) {
			t.Error("what pre-trains is not what package method has")
		}
		if err := f.Parse([]string{"-finetune-epochs", "3", "-finetune-lr", "0.5", "-pretrained", "RUN"}, io.Discard); err != nil {
			t.Fatal(err)
		}
		if r != (Finetuning{Epochs: 3, Batch: batch, LR: 0.5, Pretrained: "RUN"}) || r.PretrainsHere("graphcl") {
			t.Errorf("%+v", r)
		}
		if has := f.Lookup("finetune-batch") != nil; has != (batch > 0) {
			t.Errorf("-finetune-batch with %d: %v", batch, has)
		}
	}
	for name, want := range map[string]string{None: "no pre-training", Augmentation: "augmentation only", "graphcl": "GraphCL"} {
		if got := Title(name); got != want {
			t.Errorf("%s is titled %q, want %q", name, got, want)
		}
	}
}
