package method

import (
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// statistics are the buffers of a module, the running statistics of its norms, with
// room to keep them while passes that are not to move them run.
type statistics struct {
	be      backend.Backend
	buffers []*nn.Buffer
	kept    []*tensor.Tensor
}

func newStatistics(be backend.Backend, m nn.Module) *statistics {
	s := &statistics{be: be, buffers: m.Buffers()}
	for _, b := range s.buffers {
		s.kept = append(s.kept, be.Alloc(b.Value.Rows, b.Value.Cols))
	}
	return s
}

// keep notes the values.
func (s *statistics) keep() {
	for i, b := range s.buffers {
		s.be.CopyBlock(s.kept[i], 0, 0, b.Value, 0, 0, b.Value.Rows, b.Value.Cols)
	}
}

// restore puts the noted values back.
func (s *statistics) restore() {
	for i, b := range s.buffers {
		s.be.CopyBlock(b.Value, 0, 0, s.kept[i], 0, 0, b.Value.Rows, b.Value.Cols)
	}
}

// close gives the room back.
func (s *statistics) close() {
	for _, x := range s.kept {
		s.be.Free(x)
	}
	s.kept = nil
}
