package forest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"math/bits"
)

// MarshalJSON encodes the forest as a text of base64. Its bytes are the numbers of columns, outputs and trees,
// and the nodes of each tree from the root, a left branch before the right one: for a split, its column plus
// one and its threshold; for a leaf, 0 and its values. All are varints; of a float32 the bits are reversed, so
// that counts take a byte or two.
func (f *Forest) MarshalJSON() ([]byte, error) {
	var b []byte
	for _, n := range []int{f.dim, f.outputs, len(f.trees)} {
		b = binary.AppendUvarint(b, uint64(n))
	}
	for i := range f.trees {
		t := &f.trees[i]
		stack := []int32{0}
		for len(stack) > 0 {
			n := t.nodes[stack[len(stack)-1]]
			stack = stack[:len(stack)-1]
			b = binary.AppendUvarint(b, uint64(n.column+1))
			if n.column >= 0 {
				b = appendFloat(b, n.threshold)
				stack = append(stack, n.left+1, n.left)
				continue
			}
			start := int(n.left) * f.outputs
			for _, v := range t.values[start : start+f.outputs] {
				b = appendFloat(b, float32(v))
			}
		}
	}
	return json.Marshal(b)
}

func appendFloat(b []byte, v float32) []byte {
	return binary.AppendUvarint(b, uint64(bits.Reverse32(math.Float32bits(v))))
}

var errForest = errors.New("forest: the encoded forest is damaged")

// UnmarshalJSON decodes what [Forest.MarshalJSON] returns. It uses memory in proportion to the text.
func (f *Forest) UnmarshalJSON(text []byte) error {
	d := new(decoder)
	if err := json.Unmarshal(text, &d.b); err != nil {
		return err
	}
	f.dim = d.count()
	f.outputs = d.count()
	trees := d.count()
	if d.failed || f.dim < 1 || f.outputs < 1 || trees < 1 {
		return errForest
	}
	f.trees = nil
	for range trees {
		t := d.tree(f.dim, f.outputs)
		if d.failed {
			return errForest
		}
		f.trees = append(f.trees, t)
	}
	if len(d.b) > 0 {
		return errForest
	}
	return nil
}

// decoder reads numbers from bytes, until it fails.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) uint32() uint32 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 || v > math.MaxUint32 {
		d.failed = true
		return 0
	}
	d.b = d.b[n:]
	return uint32(v)
}

// count reads a number that an int32 can hold.
func (d *decoder) count() int {
	v := d.uint32()
	d.failed = d.failed || v > math.MaxInt32
	return int(v)
}

func (d *decoder) float() float32 {
	v := math.Float32frombits(bits.Reverse32(d.uint32()))
	d.failed = d.failed || math.IsNaN(float64(v)) || math.IsInf(float64(v), 0)
	return v
}

// tree reads a tree, with its nodes in the order in which a tree grows.
func (d *decoder) tree(dim, outputs int) tree {
	t := tree{nodes: make([]node, 1)}
	stack := []int32{0}
	for len(stack) > 0 && !d.failed {
		place := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		column := d.count()
		switch {
		case column == 0:
			t.nodes[place] = node{column: -1, left: int32(len(t.values) / outputs)}
			for k := 0; k < outputs && !d.failed; k++ {
				t.values = append(t.values, float64(d.float()))
			}
		case column > dim:
			d.failed = true
		default:
			left := int32(len(t.nodes))
			t.nodes[place] = node{column: int32(column - 1), threshold: d.float(), left: left}
			t.nodes = append(t.nodes, node{}, node{})
			stack = append(stack, left+1, left)
		}
	}
	return t
}
