package nn

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn/internal/pytorch"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
	"github.com/specmatch/specmatch/tensor/files"
)

// The format is that of https://github.com/huggingface/safetensors: the length
// of a JSON header as 8 little-endian bytes; the header, which says for every
// name its type, shape and place; the numbers.

// Save sets these keys of the metadata. In version 1 of the format, every tensor had the
// shape that it has in memory, [rows, cols]. A file without a version is assumed to come
// from PyTorch, whose layout is that of version 2.
//
// The checksum is the CRC-32C of everything after the length of the header, computed with
// zeros as its own digits.
const (
	formatKey     = "specmatch_format"
	formatVersion = "2"
	checksumKey   = "specmatch_checksum"
	noChecksum    = "00000000"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxHeader is the longest header that is read, in bytes. It is a thousand times what the
// models of this module need.
const maxHeader = 1 << 24

// Save writes the parameters and buffers of m to w in the safetensors format, in
// the precision of their engine, with meta as the file's metadata. Equal weights
// give equal bytes.
//
// Names and shapes are PyTorch's: the weight of a [Linear] is [out, in], biases,
// norms and running statistics are vectors [n], tables are [rows, width]. There is
// no num_batches_tracked: PyTorch's BatchNorm1d reads a missing one as 0, even with
// strict=True, and this package ignores it. The state of an optimizer has no counterpart in
// PyTorch and is written in its own shapes.
func Save(w io.Writer, m Module, meta map[string]string) error {
	if err := save(w, m, meta); err != nil {
		return fmt.Errorf("nn: save: %w", err)
	}
	return nil
}

// SaveFile saves to a file, see [Save]. The file is complete or does not appear at all.
func SaveFile(path string, m Module, meta map[string]string) error {
	err := files.Write(path, func(w io.Writer) error {
		return save(w, m, meta)
	})
	if err != nil {
		return fmt.Errorf("nn: save %s: %w", path, err)
	}
	return nil
}

// LoadFile loads a file, as [ReadFile] reads it, into the parameters and buffers of m: see
// [File.Load].
func LoadFile(path string, m Module) error {
	f, err := ReadFile(path)
	if err != nil {
		return err
	}
	if err := f.Load(m); err != nil {
		return fmt.Errorf("nn: load %s: %w", path, err)
	}
	return nil
}

// File is a safetensors file in memory, its checksum verified.
type File struct {
	Metadata map[string]string
	tensors  []info
	end      int64 // bytes of data
	data     []byte
}

// ReadFile reads a safetensors file or a state_dict written by PyTorch's torch.save, in the
// present format or that before 1.6. It never runs code of such a file: anything beyond a
// state_dict is an error. It allocates in proportion to the size of the file, whatever the
// header claims.
func ReadFile(path string) (*File, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("nn: load %s: %w", path, err)
	}
	defer r.Close()
	var head [4]byte
	n, _ := r.ReadAt(head[:], 0) // the error is that of reading, below
	var f *File
	if pytorch.Begins(head[:n]) {
		f, err = readPyTorch(r)
	} else {
		f, err = read(r)
	}
	if err != nil {
		return nil, fmt.Errorf("nn: load %s: %w", path, err)
	}
	return f, nil
}

// Read reads a safetensors file. One whose checksum is wrong is refused; those of other
// programs have none.
func Read(r io.Reader) (*File, error) {
	f, err := read(r)
	if err != nil {
		return nil, fmt.Errorf("nn: load: %w", err)
	}
	return f, nil
}

func readPyTorch(r *os.File) (*File, error) {
	stat, err := r.Stat()
	if err != nil {
		return nil, err
	}
	tensors, err := pytorch.Read(r, stat.Size())
	if err != nil {
		return nil, err
	}
	f := new(File)
	for _, t := range tensors {
		if strings.HasSuffix(t.Name, counter) {
			continue
		}
		f.data = append(f.data, t.Data...)
		end := f.end + int64(len(t.Data))
		f.tensors = append(f.tensors, info{
			name:    t.Name,
			DType:   t.DType,
			Shape:   t.Shape,
			Offsets: []int64{f.end, end},
		})
		f.end = end
	}
	return f, nil
}

// ReadMetadata returns the metadata of a safetensors file. It reads no further, and
// does not verify the checksum.
func ReadMetadata(path string) (map[string]string, error) {
	r, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("nn: metadata of %s: %w", path, err)
	}
	defer r.Close()
	_, f, err := readHeader(r)
	if err != nil {
		return nil, fmt.Errorf("nn: metadata of %s: %w", path, err)
	}
	return f.Metadata, nil
}

// Names returns the names of the tensors, in the order of the file.
func (f *File) Names() []string {
	names := make([]string, len(f.tensors))
	for i, stored := range f.tensors {
		names[i] = stored.name
	}
	return names
}

func (f *File) find(name string) *info {
	i := slices.IndexFunc(f.tensors, func(stored info) bool {
		return stored.name == name
	})
	if i < 0 {
		return nil
	}
	return &f.tensors[i]
}

// Shape returns the shape of a tensor, and whether the file has it.
func (f *File) Shape(name string) ([]int64, bool) {
	if stored := f.find(name); stored != nil {
		return stored.Shape, true
	}
	return nil, false
}

// Values returns the number of values of all tensors.
func (f *File) Values() int {
	n := int64(0)
	for _, stored := range f.tensors {
		if size := stored.size(); size > 0 {
			n += stored.bytes() / size
		}
	}
	return int(n)
}

// Without returns the file without the tensors whose names begin with the prefix.
func (f *File) Without(prefix string) *File {
	g := *f
	g.tensors = slices.DeleteFunc(slices.Clone(f.tensors),
		func(stored info) bool {
			return strings.HasPrefix(stored.name, prefix)
		})
	return &g
}

// Rename returns m with every name replaced by what f makes of it, to be saved and
// loaded under these names. The tensors are m's own.
func Rename(m Module, f func(name string) string) Module {
	return renamed{m, f}
}

type renamed struct {
	Module
	name func(string) string
}

func (r renamed) Parameters() []*autodiff.Param {
	ps := slices.Clone(r.Module.Parameters())
	for i, p := range ps {
		q := *p
		q.Name = r.name(p.Name)
		ps[i] = &q
	}
	return ps
}

func (r renamed) Buffers() []*Buffer {
	bs := slices.Clone(r.Module.Buffers())
	for i, b := range bs {
		c := *b
		c.Name = r.name(b.Name)
		bs[i] = &c
	}
	return bs
}

type entry struct {
	name   string
	value  *tensor.Tensor
	layout autodiff.Layout
	be     backend.Backend
	loaded func([]float64) // or nil
}

func (e *entry) shape() []int64 {
	rows, cols := int64(e.value.Rows), int64(e.value.Cols)
	switch e.layout {
	case autodiff.Vector:
		return []int64{cols}
	case autodiff.Transposed:
		return []int64{cols, rows}
	}
	return []int64{rows, cols}
}

func entries(m Module) ([]entry, error) {
	var es []entry
	for _, p := range m.Parameters() {
		es = append(es, entry{
			p.Name, p.Value, p.Layout, p.Backend(), nil,
		})
	}
	for _, b := range m.Buffers() {
		es = append(es, entry{b.Name, b.Value, b.Layout, b.be, b.Loaded})
	}
	slices.SortFunc(es, func(a, b entry) int {
		return cmp.Compare(a.name, b.name)
	})
	for i, e := range es {
		switch {
		case i > 0 && es[i-1].name == e.name:
			return nil, fmt.Errorf("the model has two tensors named %q",
				e.name)
		case e.be == nil:
			return nil, fmt.Errorf(
				"%q was made by neither autodiff.NewParam nor NewBuffer",
				e.name,
			)
		case e.name == "" || e.name == metadataName ||
			!utf8.ValidString(e.name):
			return nil, fmt.Errorf("%q cannot be the name of a tensor",
				e.name)
		}
	}
	return es, nil
}

// metadataName is the reserved name in the header.
const metadataName = "__metadata__"

type info struct {
	DType   string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"` // begin and end in the data
	name    string
}

func (stored *info) bytes() int64 {
	return stored.Offsets[1] - stored.Offsets[0]
}

// size returns the bytes of a value, 0 for types that no model of ours has.
func (stored *info) size() int64 {
	switch stored.DType {
	case "F32":
		return 4
	case "F64":
		return 8
	}
	return 0
}

func dtype(p tensor.Precision) string {
	if p == tensor.Float64 {
		return "F64"
	}
	return "F32"
}

func save(w io.Writer, m Module, meta map[string]string) error {
	es, err := entries(m)
	if err != nil {
		return err
	}
	header, err := encodeHeader(es, meta)
	if err != nil {
		return err
	}
	size := 0
	for _, e := range es {
		size += e.value.Len() * e.be.Precision().Bytes()
	}
	data := make([]byte, 0, size)
	for _, e := range es {
		values := make([]float64, e.value.Len())
		e.be.Download(values, e.value)
		if e.layout == autodiff.Transposed {
			values = transpose(values, e.value.Rows, e.value.Cols)
		}
		for _, v := range values {
			if e.be.Precision() == tensor.Float64 {
				data = binary.LittleEndian.AppendUint64(
					data, math.Float64bits(v),
				)
			} else {
				data = binary.LittleEndian.AppendUint32(
					data, math.Float32bits(float32(v)),
				)
			}
		}
	}
	setChecksum(header, noChecksum, checksum(header, data))
	prefix := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	if _, err := w.Write(append(prefix, header...)); err != nil {
		return err
	}
	_, err = w.Write(data)
	return err
}

// checksum returns the checksum of data and its header, which contains noChecksum.
func checksum(header, data []byte) string {
	return fmt.Sprintf("%08x", crc32.Update(
		crc32.Checksum(header, castagnoli), castagnoli, data,
	))
}

// setChecksum replaces the digits of the checksum in a header. It reports whether
// they are there.
func setChecksum(header []byte, old, replacement string) bool {
	// Inside a string of JSON the quotes would be escaped.
	field := []byte(`"` + checksumKey + `":"`)
	i := bytes.Index(header, append(field, old+`"`...))
	if i < 0 || len(old) != len(replacement) {
		return false
	}
	copy(header[i+len(field):], replacement)
	return true
}

// transpose returns the transpose of a row-major matrix [rows×cols].
func transpose(x []float64, rows, cols int) []float64 {
	y := make([]float64, len(x))
	for i := range rows {
		for j := range cols {
			y[j*rows+i] = x[i*cols+j]
		}
	}
	return y
}

// encodeHeader returns the header, padded with blanks so that the numbers are
// aligned, without its checksum.
func encodeHeader(es []entry, meta map[string]string) ([]byte, error) {
	metadata := map[string]string{
		formatKey:   formatVersion,
		checksumKey: noChecksum,
	}
	for k, v := range meta {
		if k == formatKey || k == checksumKey || !utf8.ValidString(k) ||
			!utf8.ValidString(v) {
			return nil, fmt.Errorf("%q: %q cannot be metadata", k, v)
		}
		metadata[k] = v
	}
	fields := map[string]any{metadataName: metadata}
	end := int64(0)
	for _, e := range es {
		begin := end
		end += int64(e.value.Len()) * int64(e.be.Precision().Bytes())
		fields[e.name] = info{
			DType:   dtype(e.be.Precision()),
			Shape:   e.shape(),
			Offsets: []int64{begin, end},
		}
	}
	text, err := json.Marshal(fields) // sorted by name
	if err != nil {
		return nil, err
	}
	header := bytes.NewBuffer(text)
	for header.Len()%8 != 0 {
		header.WriteByte(' ')
	}
	if header.Len() > maxHeader {
		return nil, fmt.Errorf("a header of %d bytes; the limit is %d",
			header.Len(), maxHeader)
	}
	return header.Bytes(), nil
}

// Load copies the tensors into the parameters and buffers of m and converts them to the
// precision of their engine. The file may be from [Save] or be the state_dict of a PyTorch
// module. Names and shapes must be exactly those of m; the error lists all differences.
// After an error m is unchanged.
func (f *File) Load(m Module) error {
	es, err := entries(m)
	if err != nil {
		return err
	}
	if f.Metadata[formatKey] == "1" {
		for i := range es {
			es[i].layout = autodiff.Matrix
		}
	}
	if err := f.compare(es); err != nil {
		return err
	}
	for _, e := range es {
		stored := f.find(e.name)
		raw := f.data[stored.Offsets[0]:stored.Offsets[1]]
		values := make([]float64, e.value.Len())
		for i := range values {
			if stored.DType == "F64" {
				values[i] = math.Float64frombits(
					binary.LittleEndian.Uint64(raw[8*i:]),
				)
			} else {
				values[i] = float64(math.Float32frombits(
					binary.LittleEndian.Uint32(raw[4*i:]),
				))
			}
		}
		if e.layout == autodiff.Transposed {
			values = transpose(values, e.value.Cols, e.value.Rows)
		}
		e.be.Upload(e.value, values)
		if e.loaded != nil {
			e.loaded(values)
		}
	}
	return nil
}

// compare returns an error that lists every difference between the names and
// shapes of the model and of the file.
func (f *File) compare(es []entry) error {
	differences := map[string][]string{}
	differ := func(kind, format string, args ...any) {
		differences[kind] = append(
			differences[kind], fmt.Sprintf(format, args...),
		)
	}
	wanted := map[string]bool{}
	for _, e := range es {
		wanted[e.name] = true
		stored := f.find(e.name)
		switch {
		case stored == nil:
			differ("missing", "%s", e.name)
		case !slices.Equal(stored.Shape, e.shape()):
			differ("different", "%s is %s, want %s",
				e.name, sizes(stored.Shape), sizes(e.shape()))
		case stored.size() == 0:
			differ("different", "%s has dtype %q, want F32 or F64",
				e.name, stored.DType)
		case stored.bytes() != stored.size()*int64(e.value.Len()):
			differ("different", "%s has %d bytes for %s of %s",
				e.name, stored.bytes(), sizes(stored.Shape), stored.DType)
		}
	}
	names := f.Names()
	slices.Sort(names)
	for _, name := range names {
		if !wanted[name] {
			differ("unexpected", "%s", name)
		}
	}
	var parts []string
	for _, kind := range []string{"missing", "unexpected", "different"} {
		if d := differences[kind]; d != nil {
			parts = append(parts, kind+": "+strings.Join(d, ", "))
		}
	}
	if parts == nil {
		return nil
	}
	return fmt.Errorf("the file does not fit the model: %s",
		strings.Join(parts, "; "))
}

func sizes(shape []int64) string {
	return strings.ReplaceAll(fmt.Sprint(shape), " ", "×")
}

// read reads a file and verifies its checksum.
func read(r io.Reader) (*File, error) {
	header, f, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	version := f.Metadata[formatKey]
	sum := f.Metadata[checksumKey]
	switch {
	case version != "" && version != "1" && version != formatVersion:
		return nil, fmt.Errorf(
			"%s is %q; this version of the module reads %q and older",
			formatKey,
			version,
			formatVersion,
		)
	case version == formatVersion && sum == "":
		return nil, fmt.Errorf("the metadata has no %s", checksumKey)
	}
	// Reading grows the buffer with what is there, not with what is claimed.
	f.data, err = io.ReadAll(io.LimitReader(r, f.end))
	if err != nil {
		return nil, err
	}
	if int64(len(f.data)) < f.end {
		return nil, fmt.Errorf("truncated: %d of %d bytes of numbers: %w",
			len(f.data), f.end, io.ErrUnexpectedEOF)
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 {
		return nil, errors.New("there are bytes after the last tensor")
	} else if err != nil && err != io.EOF {
		return nil, err
	}
	if sum != "" {
		if !setChecksum(header, sum, noChecksum) ||
			checksum(header, f.data) != sum {
			return nil, fmt.Errorf(
				"the checksum is wrong: the file is damaged, or another program changed it and left %s and "+
					"%s as they were",
				formatKey,
				checksumKey,
			)
		}
	}
	return f, nil
}

// counter is the last part of the name of a counter that PyTorch's BatchNorm1d
// keeps and uses only without a momentum.
const counter = ".num_batches_tracked"

// readHeader reads the header and leaves r at the numbers. The tensors come in
// the order of their offsets, which cover the data without gap or overlap.
func readHeader(r io.Reader) (header []byte, f *File, err error) {
	bad := func(format string, args ...any) ([]byte, *File, error) {
		err := fmt.Errorf("not a safetensors file: "+format, args...)
		return nil, nil, err
	}
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return bad("no header: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return bad("a header of %d bytes; the limit is %d", n, maxHeader)
	}
	raw, err := io.ReadAll(io.LimitReader(r, int64(n)))
	if err != nil {
		return nil, nil, err
	}
	if uint64(len(raw)) < n {
		return bad("the header has %d of %d bytes", len(raw), n)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return bad("header: %w", err)
	}
	f = new(File)
	for name, field := range fields {
		if name == metadataName {
			if err := json.Unmarshal(field, &f.Metadata); err != nil {
				return bad("metadata: %w", err)
			}
			continue
		}
		stored := info{name: name}
		if err := json.Unmarshal(field, &stored); err != nil {
			return bad("%q: %w", name, err)
		}
		if len(stored.Offsets) != 2 {
			return bad("%q: data_offsets %v", name, stored.Offsets)
		}
		f.tensors = append(f.tensors, stored)
	}
	slices.SortFunc(f.tensors, func(a, b info) int {
		return cmp.Or(
			slices.Compare(a.Offsets, b.Offsets),
			cmp.Compare(a.name, b.name),
		)
	})
	for _, stored := range f.tensors {
		if stored.Offsets[0] != f.end || stored.Offsets[1] < f.end {
			return bad("%q lies at %v; the tensor before it ends at %d",
				stored.name, stored.Offsets, f.end)
		}
		f.end = stored.Offsets[1]
	}
	f.tensors = slices.DeleteFunc(f.tensors, func(stored info) bool {
		return strings.HasSuffix(stored.name, counter)
	})
	return raw, f, nil
}
