package specmatch

import (
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/specmatch/model"
)

// Trained is [model.Trained].
//
// Deprecated: use [model.Trained]. The next release drops this name.
type Trained = model.Trained

// Open is [model.Open].
//
// Deprecated: use [model.Open]. The next release drops this name.
func Open(path string, be backend.Backend) (*Trained, error) {
	return model.Open(path, be)
}
