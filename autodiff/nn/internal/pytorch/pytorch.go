// Package pytorch reads weights written by PyTorch's torch.save.
//
// Such a file is a pickle: a program for a stack machine that can name any function of
// Python and call it. A state_dict needs only a few instructions and the few names below.
// Anything else is an error, and nothing is ever called. Since PyTorch 1.6, the file is a
// zip archive with the pickle in data.pkl and the numbers of each storage in a file of its
// own. Before, it was several pickles followed by the numbers. Both forms are read.
package pytorch

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"
)

// Tensor is a tensor of a state_dict.
type Tensor struct {
	Name  string
	DType string // as safetensors names it: F32
	Shape []int64
	Data  []byte // row-major, little-endian
}

// PyTorch's files begin with one of these: a zip archive, or in the older form the pickles of
// a magic number and of the version.
const (
	zipMagic    = "PK\x03\x04"
	legacyMagic = "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.\x80\x02M\xe9\x03."
)

// storages are the types of PyTorch's storages, as safetensors names them, and the
// bytes of a value.
var storages = map[string]struct {
	dtype string
	size  int64
}{
	"FloatStorage":    {"F32", 4},
	"DoubleStorage":   {"F64", 8},
	"HalfStorage":     {"F16", 2},
	"BFloat16Storage": {"BF16", 2},
	"LongStorage":     {"I64", 8},
	"IntStorage":      {"I32", 4},
	"ShortStorage":    {"I16", 2},
	"CharStorage":     {"I8", 1},
	"ByteStorage":     {"U8", 1},
	"BoolStorage":     {"BOOL", 1},
}

// Begins reports whether a file that begins so is one of PyTorch's.
func Begins(head []byte) bool {
	return bytes.HasPrefix(head, []byte(zipMagic)) ||
		bytes.HasPrefix(head, []byte(legacyMagic[:4]))
}

// Read reads the tensors of a state_dict from a file of size bytes, in their order. It
// takes memory for what is there, whatever the file says of itself.
func Read(r io.ReaderAt, size int64) ([]Tensor, error) {
	tensors, err := read(r, size)
	if err != nil {
		return nil, fmt.Errorf("not a state_dict of PyTorch: %w", err)
	}
	return tensors, nil
}

func read(r io.ReaderAt, size int64) ([]Tensor, error) {
	head := make([]byte, min(size, int64(len(zipMagic))))
	if _, err := r.ReadAt(head, 0); err != nil {
		return nil, err
	}
	if string(head) == zipMagic {
		return readZip(r, size)
	}
	data, err := io.ReadAll(io.NewSectionReader(r, 0, size))
	if err != nil {
		return nil, err
	}
	return readLegacy(data)
}

// The values of a pickle, besides texts, numbers and truth values.
type (
	global  string // a function or class, as module.name
	storage struct {
		dtype  string
		size   int64 // of a value
		key    string
		values int64
	}
	view struct { // of a storage; in values
		*storage
		offset         int64
		shape, strides []int64
	}
	tuple []any
	list  struct{ items []any }
	dict  struct {
		keys   []any
		values []any
	}
	mark struct{}
)

const (
	orderedDict      = global("collections.OrderedDict")
	rebuildTensor    = global("torch._utils._rebuild_tensor_v2")
	rebuildParameter = global("torch._utils._rebuild_parameter")
)

func readZip(r io.ReaderAt, size int64) ([]Tensor, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, err
	}
	files := map[string]*zip.File{}
	dir := ""
	for _, f := range z.File {
		if f.Method != zip.Store { // which also bounds what is read by what is there
			return nil, fmt.Errorf(
				"%.80q is compressed, which torch.save never does",
				f.Name,
			)
		}
		files[f.Name] = f
		if path.Base(f.Name) == "data.pkl" {
			dir = path.Dir(f.Name)
		}
	}
	read := func(name string) ([]byte, error) {
		f := files[path.Join(dir, name)]
		if f == nil {
			return nil, fmt.Errorf("the archive has no %.80q",
				path.Join(dir, name))
		}
		file, err := f.Open()
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return io.ReadAll(file)
	}
	if files[path.Join(dir, "constants.pkl")] != nil {
		return nil, errors.New(
			"it is a TorchScript module; save the state_dict",
		)
	}
	if files[path.Join(dir, "byteorder")] != nil {
		if order, err := read("byteorder"); err != nil ||
			string(order) != "little" {
			return nil, fmt.Errorf(
				"its numbers are %.80q-endian (%v); want little",
				order, err,
			)
		}
	}
	p, err := read("data.pkl")
	if err != nil {
		return nil, err
	}
	top, trailing, err := unpickle(p)
	if err == nil && len(trailing) > 0 {
		err = errors.New("there are bytes after the pickle")
	}
	if err != nil {
		return nil, err
	}
	return stateDict(top, size, func(s *storage) ([]byte, error) {
		return read("data/" + s.key)
	})
}

func readLegacy(data []byte) ([]Tensor, error) {
	size := int64(len(data))
	data, ok := bytes.CutPrefix(data, []byte(legacyMagic))
	if !ok {
		return nil, errors.New("it begins otherwise")
	}
	var parts [3]any // about the system, the state_dict, the keys of the storages
	var err error
	for i := range parts {
		parts[i], data, err = unpickle(data)
		if err != nil {
			return nil, err
		}
	}
	if system, ok := parts[0].(*dict); !ok ||
		system.get("little_endian") != true {
		return nil, errors.New("its numbers are not little-endian")
	}
	keys, ok := parts[2].(*list)
	if !ok {
		return nil, errors.New("it has no list of storages")
	}
	contents := map[string][]byte{} // begins with the number of values
	storages := storagesOf(parts[1])
	for _, k := range keys.items {
		key, _ := k.(string)
		s := storages[key]
		if s == nil {
			return nil, fmt.Errorf("no tensor uses the storage of %s",
				describe(k))
		}
		if len(data) < 8 {
			return nil, fmt.Errorf("storage %.80q: %w",
				key, io.ErrUnexpectedEOF)
		}
		n := binary.LittleEndian.Uint64(data)
		data = data[8:]
		if n > uint64(len(data))/uint64(s.size) {
			return nil, fmt.Errorf("storage %.80q: %w",
				key, io.ErrUnexpectedEOF)
		}
		contents[key] = data[:n*uint64(s.size)]
		data = data[n*uint64(s.size):]
	}
	if len(data) > 0 {
		return nil, errors.New("there are bytes after the last storage")
	}
	return stateDict(parts[1], size, func(s *storage) ([]byte, error) {
		if b, ok := contents[s.key]; ok {
			return b, nil
		}
		return nil, fmt.Errorf("storage %.80q is missing", s.key)
	})
}

// storagesOf returns the storages of the tensors of a state_dict, by key.
func storagesOf(top any) map[string]*storage {
	storages := map[string]*storage{}
	if d, ok := top.(*dict); ok {
		for _, v := range d.values {
			if v, ok := v.(*view); ok {
				storages[v.key] = v.storage
			}
		}
	}
	return storages
}

// stateDict returns the tensors of a state_dict from a file of the given size in bytes.
func stateDict(
	top any, size int64, data func(*storage) ([]byte, error),
) ([]Tensor, error) {
	d, ok := top.(*dict)
	if !ok {
		return nil, fmt.Errorf(
			"it holds %s; want a dictionary of tensors",
			describe(top),
		)
	}
	var tensors []Tensor
	// storages in an archive may overlap
	read := map[string][]byte{}
	left := size
	for i, k := range d.keys {
		name, ok := k.(string)
		if !ok {
			return nil, fmt.Errorf(
				"its key %d is %s; want the name of a tensor",
				i, describe(k),
			)
		}
		v, ok := d.values[i].(*view)
		if !ok {
			return nil, fmt.Errorf(
				"%.80q is %s; want a tensor: save the state_dict alone",
				name,
				describe(d.values[i]),
			)
		}
		if _, ok := read[v.key]; !ok {
			b, err := data(v.storage)
			if err != nil {
				return nil, fmt.Errorf("%.80q: %w", name, err)
			}
			left -= int64(len(b))
			if left < 0 {
				return nil, fmt.Errorf(
					"%.80q: its storages are larger than the file",
					name,
				)
			}
			read[v.key] = b
		}
		values, err := v.gather(read[v.key], size)
		if err != nil {
			return nil, fmt.Errorf("%.80q: %w", name, err)
		}
		size -= int64(len(values))
		tensors = append(tensors, Tensor{
			Name:  name,
			DType: v.dtype,
			Shape: v.shape,
			Data:  values,
		})
	}
	return tensors, nil
}

// gather returns the bytes of a tensor, row-major; more than limit are an error.
func (v *view) gather(data []byte, limit int64) ([]byte, error) {
	if int64(len(data)) != v.values*v.size {
		return nil, fmt.Errorf(
			"its storage %.80q has %d bytes for %d values of %s",
			v.key,
			len(data),
			v.values,
			v.dtype,
		)
	}
	if slices.Contains(v.shape, 0) {
		return nil, nil
	}
	// number of values, and the place of the last
	n := int64(1)
	largest := v.offset
	for k, s := range v.shape {
		if n > limit/v.size/s {
			return nil, fmt.Errorf("shape %v is more than the file has",
				v.shape)
		}
		if stride := v.strides[k]; stride > 0 &&
			s-1 > (v.values-1-largest)/stride {
			largest = v.values
			break
		}
		n *= s
		largest += (s - 1) * v.strides[k]
	}
	if largest >= v.values {
		return nil, fmt.Errorf(
			"shape %v with strides %v from %d on reaches beyond its storage of %d values",
			v.shape,
			v.strides,
			v.offset,
			v.values,
		)
	}
	out := make([]byte, 0, n*v.size)
	index := make([]int64, len(v.shape))
	for range n {
		position := v.offset
		for k, i := range index {
			position += i * v.strides[k]
		}
		out = append(out, data[position*v.size:(position+1)*v.size]...)
		for k := len(index) - 1; k >= 0; k-- {
			index[k]++
			if index[k] < v.shape[k] {
				break
			}
			index[k] = 0
		}
	}
	return out, nil
}

// describe names in a few words what a pickle holds where something else is wanted. It does
// not look into tuples, which may share their parts so often that printing never ends.
func describe(x any) string {
	switch x := x.(type) {
	case *dict:
		return "a dictionary"
	case *list, tuple:
		return "a list"
	case *view:
		return "a tensor"
	case *storage:
		return "a storage"
	case global:
		return string(x)
	case string:
		return fmt.Sprintf("the text %.80q", x)
	}
	return fmt.Sprint(x) // a number, a truth value, or nothing
}

func (d *dict) get(key string) any {
	if i := slices.Index(d.keys, any(key)); i >= 0 {
		return d.values[i]
	}
	return nil
}

// machine runs a pickle, up to the first error; what it does after one is of no use.
type machine struct {
	in    []byte
	stack []any
	memo  map[uint32]any
	err   error
}

// maxInstructions bounds a pickle, because each of its bytes may make a value of about 60
// bytes. A tensor takes about 40 instructions.
const maxInstructions = 1 << 20

func unpickle(in []byte) (value any, rest []byte, err error) {
	m := &machine{in: in, memo: map[uint32]any{}}
	for range maxInstructions {
		op := byte(m.number(1))
		if op == '.' {
			v := m.pop()
			return v, m.in, m.err
		}
		if m.err == nil {
			m.do(op)
		}
		if m.err != nil {
			return nil, nil, m.err
		}
	}
	err = fmt.Errorf("the pickle has more than %d instructions", maxInstructions)
	return nil, nil, err
}

func (m *machine) fail(format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf(format, args...)
	}
}

func (m *machine) bytes(n uint64) []byte {
	if n > uint64(len(m.in)) {
		m.fail("the pickle ends too early")
		return nil
	}
	b := m.in[:n]
	m.in = m.in[n:]
	return b
}

// number reads an unsigned number of n bytes.
func (m *machine) number(n int) (x uint64) {
	for i, v := range m.bytes(uint64(n)) {
		x |= uint64(v) << (8 * i)
	}
	return x
}

func (m *machine) line() string {
	line := m.bytes(uint64(bytes.IndexByte(m.in, '\n') + 1))
	if len(line) == 0 {
		m.fail("the pickle ends too early")
	}
	return strings.TrimSuffix(string(line), "\n")
}

func (m *machine) push(v any) {
	m.stack = append(m.stack, v)
}

func (m *machine) pop() any {
	return m.popTuple(1)[0]
}

func (m *machine) popTuple(n int) tuple {
	t := make(tuple, n)
	for i := n - 1; i >= 0 && m.err == nil; i-- {
		if len(m.stack) == 0 {
			m.fail("the pickle takes from an empty stack")
			break
		}
		t[i] = m.top()
		m.stack = m.stack[:len(m.stack)-1]
		if _, ok := t[i].(mark); ok {
			m.fail("the pickle takes a mark for a value")
		}
	}
	return t
}

func (m *machine) popMark() tuple {
	for i := len(m.stack) - 1; i >= 0; i-- {
		if _, ok := m.stack[i].(mark); ok {
			items := tuple(slices.Clone(m.stack[i+1:]))
			m.stack = m.stack[:i]
			return items
		}
	}
	m.fail("the pickle has no mark")
	return nil
}

// top returns what lies on the stack.
func (m *machine) top() any {
	if len(m.stack) == 0 {
		return nil
	}
	return m.stack[len(m.stack)-1]
}

// do does one instruction. Those that are missing here torch.save does not write.
func (m *machine) do(op byte) {
	switch op {
	case 0x80: // PROTO
		if n := m.number(1); n != 2 {
			m.fail("a pickle of protocol %d; torch.save writes 2", n)
		}
	case '(':
		m.push(mark{})
	case 'N':
		m.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		m.push(op == 0x88)
	case '}':
		m.push(new(dict))
	case ']':
		m.push(new(list))
	case ')':
		m.push(tuple{})
	case 0x85, 0x86, 0x87: // TUPLE1 to TUPLE3
		m.push(m.popTuple(int(op) - 0x84))
	case 't':
		m.push(m.popMark())
	case 'q': // put into the memo, and get
		m.memo[uint32(m.number(1))] = m.top()
	case 'r':
		m.memo[uint32(m.number(4))] = m.top()
	case 'h':
		m.get(m.number(1))
	case 'j':
		m.get(m.number(4))
	case 'a': // APPEND and SETITEM, of one and several
		m.add(op, m.popTuple(1))
	case 's':
		m.add(op, m.popTuple(2))
	case 'e', 'u':
		m.add(op, m.popMark())
	case 'c':
		m.global()
	case 'Q':
		m.persistent()
	case 'R':
		m.reduce()
	case 'b': // BUILD: a state_dict has attributes of its own, which hold no weights
		m.pop()
		if _, ok := m.top().(*dict); !ok {
			m.fail("%s with attributes", describe(m.top()))
		}
	default:
		m.literal(op)
	}
}

// literal pushes the number or the text of an instruction that carries one.
func (m *machine) literal(op byte) {
	switch op {
	case 'K': // numbers of 1 and 2 bytes, and with a sign of 4
		m.push(int64(m.number(1)))
	case 'M':
		m.push(int64(m.number(2)))
	case 'J':
		m.push(int64(int32(m.number(4))))
	case 0x8a: // LONG1
		n := m.number(1)
		if n > 8 {
			m.fail("a number of %d bytes", n)
			return
		}
		m.push(int64(m.number(int(n))<<(64-8*n)) >> (64 - 8*n))
	case 'G':
		if b := m.bytes(8); b != nil {
			m.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
		}
	case 'X', 'T': // texts
		m.push(string(m.bytes(m.number(4))))
	case 'U':
		m.push(string(m.bytes(m.number(1))))
	default:
		m.fail(
			"the pickle has the instruction %#02x, which no state_dict needs",
			op,
		)
	}
}

func (m *machine) get(n uint64) {
	v, ok := m.memo[uint32(n)]
	if !ok {
		m.fail("the pickle's memo has no %d", n)
	}
	m.push(v)
}

// add does the instructions that fill lists and dictionaries.
func (m *machine) add(op byte, items tuple) {
	switch container := m.top().(type) {
	case *list:
		if op == 'a' || op == 'e' {
			container.items = append(container.items, items...)
			return
		}
	case *dict:
		if op == 's' || op == 'u' {
			m.set(container, items)
			return
		}
	}
	m.fail("the pickle adds to %s", describe(m.top()))
}

func (m *machine) set(d *dict, items []any) {
	if len(items)%2 != 0 {
		m.fail("a key without a value")
		return
	}
	for ; len(items) > 0; items = items[2:] {
		switch items[0].(type) {
		case string, int64, bool, nil, float64:
		default:
			m.fail("%s as a key", describe(items[0]))
			return
		}
		d.keys = append(d.keys, items[0])
		d.values = append(d.values, items[1])
	}
}

// global does GLOBAL: it pushes one of the known names.
func (m *machine) global() {
	module := m.line()
	name := m.line()
	g := global(module + "." + name)
	_, isStorage := storages[name]
	if g != orderedDict && g != rebuildTensor && g != rebuildParameter &&
		!(module == "torch" && isStorage) {
		m.fail(
			"it wants %.80q, which no state_dict needs and which is not run; save the "+
				"state_dict, not the module",
			string(g),
		)
	}
	m.push(g)
}

// persistent does BINPERSID: it makes a storage of
//
//	("storage", class, key, device, number of values[, None])
func (m *machine) persistent() {
	t, _ := m.pop().(tuple)
	if len(t) == 6 && t[5] == nil { // the older form; a storage in another one is no longer written
		t = t[:5]
	}
	if len(t) == 5 && t[0] == "storage" {
		class, _ := t[1].(global)
		kind, ok := storages[strings.TrimPrefix(string(class), "torch.")]
		key, okKey := t[2].(string)
		n, okN := t[4].(int64)
		if ok && okKey && okN && n >= 0 && n <= math.MaxInt64/16 {
			m.push(&storage{kind.dtype, kind.size, key, n})
			return
		}
	}
	m.fail("what the pickle says of a storage is not understood")
}

// reduce does REDUCE: it makes a dictionary or a tensor.
func (m *machine) reduce() {
	call := m.popTuple(2)
	args, _ := call[1].(tuple)
	switch {
	case call[0] == orderedDict && len(args) == 0:
		m.push(new(dict))
		return
	case call[0] == rebuildParameter && len(args) == 3:
		if v, ok := args[0].(*view); ok {
			m.push(v)
			return
		}
	case call[0] == rebuildTensor && len(args) >= 6: // storage, offset, shape, strides, …
		v := new(view)
		var okS, okO, okShape, okStrides bool
		v.storage, okS = args[0].(*storage)
		v.offset, okO = args[1].(int64)
		v.shape, okShape = naturals(args[2])
		v.strides, okStrides = naturals(args[3])
		if okS && okO && okShape && okStrides && v.offset >= 0 &&
			v.offset <= v.values && len(v.shape) == len(v.strides) {
			m.push(v)
			return
		}
	}
	m.fail("a call of %s that is not understood", describe(call[0]))
}

// naturals returns a shape, of 8 numbers at most.
func naturals(x any) ([]int64, bool) {
	t, ok := x.(tuple)
	if len(t) > 8 {
		return nil, false
	}
	numbers := make([]int64, len(t))
	for i, v := range t {
		n, isInt := v.(int64)
		numbers[i] = n
		if !isInt || n < 0 {
			return nil, false
		}
	}
	return numbers, ok
}
