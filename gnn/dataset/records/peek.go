package records

import (
	"context"
	"errors"
)

// Peek calls look for the first records of a file until it returns true, and returns which columns or keys
// the file has. It ignores errors, which [Read] reports.
func Peek(ctx context.Context, path string, o Options, look func(*Record) bool) (columns Reading) {
	o.Reading = &columns
	errFound := errors.New("found")
	Read(ctx, path, o, func(r *Record) error {
		if look(r) {
			return errFound
		}
		return nil
	})
	return columns
}

// HoldsMolecules reports whether the first record of a file is a molecule.
func HoldsMolecules(ctx context.Context, path string, o Options) (molecules bool) {
	o.Want = Molecules
	Peek(ctx, path, o, func(*Record) bool {
		molecules = true
		return true
	})
	return molecules
}
