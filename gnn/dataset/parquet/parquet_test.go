package parquet_test

import (
	"bytes"
	"io"
	"os"
	"strings"
	"testing"

	parquetgo "github.com/parquet-go/parquet-go"

	"github.com/specmatch/specmatch/gnn/dataset/parquet"
)

// TestDamagedParquet: whichever byte of a file is wrong, the reader neither panics nor
// goes on for ever.
func TestDamagedParquet(t *testing.T) {
	t.Chdir(t.TempDir())
	var b bytes.Buffer
	if err := parquetgo.Write(&b, []struct {
		SMILES string `parquet:"smiles"`
		Y      *int32 `parquet:"y,optional"`
	}{{"C", nil}, {"CC", new(int32)}}); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range b.Len() {
		data := bytes.Clone(b.Bytes())
		data[i] ^= 0xff
		if err := os.WriteFile("f.parquet", data, 0o644); err != nil {
			t.Fatal(err)
		}
		x, err := parquet.Open("f.parquet")
		if err == nil {
			_, err = io.Copy(io.Discard, x)
			x.Close()
		}
		if err != nil {
			if refused++; !strings.HasPrefix(err.Error(), "f.parquet: ") {
				t.Errorf("byte %d: %v", i, err)
			}
		}
	}
	if refused < b.Len()/4 {
		t.Errorf("%d of %d damaged files are refused", refused, b.Len())
	}
}
