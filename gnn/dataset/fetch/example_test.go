package fetch_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/specmatch/specmatch/gnn/dataset/fetch"
)

// A set comes from a mirror, and is verified against the sum that was recorded then.
func ExampleDataset() {
	mirror := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, "smiles,activity,HIV_active\nCCO,CI,0\n")
	}))
	defer mirror.Close()
	dir, err := os.MkdirTemp("", "")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	if err := fetch.Dataset(ctx, dir, "hiv", fetch.Options{BaseURL: mirror.URL}); err != nil {
		fmt.Println(err)
		return
	}
	v, err := fetch.Verify(ctx, dir, "hiv")
	fmt.Println(filepath.Base(v.Path), v.Source, err)
	// Output:
	// hiv.csv recorded <nil>
}
