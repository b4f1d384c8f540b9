package dataset

import (
	"context"
	"io/fs"
)

// LoadFS is LoadTU for files at the root of a file system.
func LoadFS(ctx context.Context, fsys fs.FS, name string, opts Options) (*Dataset, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	s := newSource(ctx, ".", name, opts)
	if err := s.addFolder(fsys); err != nil {
		return nil, err
	}
	return readTU(s, opts)
}
