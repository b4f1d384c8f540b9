package tensorboard_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/specmatch/specmatch/specmatch/train/tensorboard"
)

// The bytes are those of testdata/tensorboard.py, which TensorBoard's own reader and writer
// check.
func TestGolden(t *testing.T) {
	at := time.Unix(1_700_000_000, 500_000_000)
	scalars := []tensorboard.Scalar{{Name: "loss", Value: 0.25}, {Name: "std", Value: -1.5e-3}}
	got := hex.EncodeToString(append(tensorboard.Header(at), tensorboard.Event(at, 300, scalars...)...))
	if got != golden {
		t.Errorf("got\n%s\nwant\n%s", got, golden)
	}
}

const golden = "1800000000000000a37f4b220900002040fc54d9411a0d627261696e2e4576656e743a322b3531102700000000000000bbe1b1460900002040fc54d94110ac022a190a0b0a046c6f7373150000803e0a0a0a0373746415a69bc4ba198bf60e"

// The file of a run of two epochs.
func Example() {
	var file bytes.Buffer // os.Create("runs/a/events.out.tfevents.0")
	file.Write(tensorboard.Header(time.Now()))
	for epoch, loss := range []float64{0.7, 0.5} {
		file.Write(tensorboard.Event(time.Now(), epoch+1, tensorboard.Scalar{Name: "train/loss", Value: loss}))
	}
	fmt.Println(file.Len(), "bytes")
	// Output: 136 bytes
}
