package records

import (
	"context"
	"io"

	"github.com/specmatch/specmatch/gnn/dataset/internal/textfile"
)

// Decode returns the text of a file as [Read] has it: unpacked, in UTF-8, without a byte-order mark, and with lines
// that end in LF where they ended in CR alone. If input is set, it is read in place of the file, whose name then only
// appears in errors.
func Decode(ctx context.Context, path string, input io.Reader) (io.ReadCloser, error) {
	text, err := textfile.Open(ctx, path, input)
	if err != nil {
		return nil, err
	}
	return text, nil
}

// LineEnds returns the number of the last line of each record of a file of molecules, and that of the header of a
// table, which is 0 for other formats. It divides the file as [Read] does, but builds no graphs. The end of the file
// may count as one more line.
//
// So a file can be read in parts, each with the lines behind one record up to the end of another. Records with the same
// last line stay in one part: the first of them is a row that is rejected, and how the others are read depends on it.
// In a part of a table, the lines up to that of the header stand before them. [Read] gives the records of a part the
// numbers that they have in the file if Options.First counts those before it.
func LineEnds(ctx context.Context, path string, o Options) (header int, ends []int, err error) {
	o.Want = Molecules
	r, next, err := open(ctx, path, o)
	if err != nil {
		return 0, nil, err
	}
	defer r.close()
	_, header = r.text.Position()
	settled := 0 // records whose end is known
	for {
		if _, err := next(); err == io.EOF {
			return header, ends, nil
		} else if err != nil {
			return 0, nil, err
		}
		end, _ := r.text.Position()
		ends = append(ends, end)
		for i := settled; i < len(ends); i++ {
			ends[i] = end
		}
		if r.text.IsSettled() {
			settled = len(ends)
		}
	}
}
