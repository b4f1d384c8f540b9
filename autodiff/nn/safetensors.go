package nn

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/tensor"
)

// The format is that of https://github.com/huggingface/safetensors: the length
// of a JSON header as 8 little-endian bytes; the header, which says for every
// name its type, shape and place; the numbers.

// formatKey is the key of the format version in a file's metadata. Files
// without it are refused: a square weight of PyTorch's would load, transposed.
const (
	formatKey     = "specmatch_format"
	formatVersion = "1"
)

// maxHeader bounds the header that is read, in bytes: a thousand times what the
// models of this module need.
const maxHeader = 1 << 24

// Save writes the parameters and buffers of m to w in the safetensors format,
// in the precision of their engine, with meta as the file's metadata. Equal
// weights give equal bytes.
//
// Shapes are [rows, cols] as this package holds them: the weight of a [Linear]
// is [in, out], where PyTorch's is [out, in], and a bias is [1, out]. Transpose
// and flatten when exchanging weights.
func Save(w io.Writer, m Module, meta map[string]string) error {
	if err := save(w, m, meta); err != nil {
		return fmt.Errorf("nn: save: %w", err)
	}
	return nil
}

// SaveFile is [Save] to a file, which appears whole or not at all.
func SaveFile(path string, m Module, meta map[string]string) error {
	err := writeFile(path, func(w io.Writer) error { return save(w, m, meta) })
	if err != nil {
		return fmt.Errorf("nn: save %s: %w", path, err)
	}
	return nil
}

// Load reads what [Save] wrote into the parameters and buffers of m, converting
// to the precision of their engine. Names and shapes must be exactly m's; the
// error lists all that differ. On an error m is unchanged.
func Load(r io.Reader, m Module) error {
	if err := load(r, m); err != nil {
		return fmt.Errorf("nn: load: %w", err)
	}
	return nil
}

// LoadFile is [Load] from a file.
func LoadFile(path string, m Module) error {
	f, err := os.Open(path)
	if err == nil {
		defer f.Close()
		err = load(f, m)
	}
	if err != nil {
		return fmt.Errorf("nn: load %s: %w", path, err)
	}
	return nil
}

// ReadMetadata returns the metadata of a safetensors file.
func ReadMetadata(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("nn: metadata of %s: %w", path, err)
	}
	defer f.Close()
	_, meta, err := readHeader(f)
	if err != nil {
		return nil, fmt.Errorf("nn: metadata of %s: %w", path, err)
	}
	return meta, nil
}

// entry is a parameter or a buffer of a module.
type entry struct {
	name  string
	value *tensor.Tensor
	be    backend.Backend
}

// entries returns the parameters and buffers of m, sorted by name.
func entries(m Module) ([]entry, error) {
	var es []entry
	for _, p := range m.Parameters() {
		es = append(es, entry{p.Name, p.Value, p.Backend()})
	}
	for _, b := range m.Buffers() {
		es = append(es, entry{b.Name, b.Value, b.be})
	}
	slices.SortFunc(es, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	for i, e := range es {
		switch {
		case i > 0 && es[i-1].name == e.name:
			return nil, fmt.Errorf("the model has two tensors named %q", e.name)
		case e.be == nil:
			return nil, fmt.Errorf("%q was made by neither autodiff.NewParam nor NewBuffer", e.name)
		case e.name == "" || e.name == metadataName || !utf8.ValidString(e.name):
			return nil, fmt.Errorf("%q cannot be the name of a tensor", e.name)
		}
	}
	return es, nil
}

// metadataName is the reserved name in the header.
const metadataName = "__metadata__"

// info is what the header says of a tensor.
type info struct {
	DType   string  `json:"dtype"`
	Shape   []int64 `json:"shape"`
	Offsets []int64 `json:"data_offsets"` // begin and end in the data
	name    string
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
	if _, err := w.Write(header); err != nil {
		return err
	}
	var raw []byte
	for _, e := range es {
		values := make([]float64, e.value.Len())
		e.be.Download(values, e.value)
		raw = raw[:0]
		for _, v := range values {
			if e.be.Precision() == tensor.Float64 {
				raw = binary.LittleEndian.AppendUint64(raw, math.Float64bits(v))
			} else {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
			}
		}
		if _, err := w.Write(raw); err != nil {
			return err
		}
	}
	return nil
}

// encodeHeader returns the bytes in front of the numbers: the header's length
// and the header, padded with blanks so that the numbers are aligned.
func encodeHeader(es []entry, meta map[string]string) ([]byte, error) {
	all := map[string]string{formatKey: formatVersion}
	for k, v := range meta {
		if k == formatKey || !utf8.ValidString(k) || !utf8.ValidString(v) {
			return nil, fmt.Errorf("%q: %q cannot be metadata", k, v)
		}
		all[k] = v
	}
	var header bytes.Buffer
	field := func(name string, value any) {
		sep := ","
		if header.Len() == 0 {
			sep = "{"
		}
		// Strings, integers and maps of them always marshal, maps sorted.
		k, _ := json.Marshal(name)
		v, _ := json.Marshal(value)
		fmt.Fprintf(&header, "%s%s:%s", sep, k, v)
	}
	field(metadataName, all)
	end := int64(0)
	for _, e := range es {
		begin := end
		end += int64(e.value.Len()) * int64(e.be.Precision().Bytes())
		field(e.name, info{DType: dtype(e.be.Precision()), Shape: []int64{int64(e.value.Rows), int64(e.value.Cols)}, Offsets: []int64{begin, end}})
	}
	header.WriteByte('}')
	for header.Len()%8 != 0 {
		header.WriteByte(' ')
	}
	if header.Len() > maxHeader {
		return nil, fmt.Errorf("a header of %d bytes; the limit is %d", header.Len(), maxHeader)
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(header.Len())), header.Bytes()...), nil
}

func load(r io.Reader, m Module) error {
	es, err := entries(m)
	if err != nil {
		return err
	}
	infos, meta, err := readHeader(r)
	if err != nil {
		return err
	}
	switch v := meta[formatKey]; v {
	case formatVersion:
	case "":
		return fmt.Errorf("the metadata has no %s: not a file of this module, and PyTorch stores a linear layer's weight transposed", formatKey)
	default:
		return fmt.Errorf("%s is %q; this version of the module reads %q", formatKey, v, formatVersion)
	}
	if err := compare(es, infos); err != nil {
		return err
	}

	// Every size is now the model's own. Nothing is uploaded before all is read.
	values := make(map[string][]float64, len(es))
	for _, in := range infos {
		raw := make([]byte, in.Offsets[1]-in.Offsets[0])
		if _, err := io.ReadFull(r, raw); err != nil {
			return fmt.Errorf("truncated in %q: %w", in.name, err)
		}
		values[in.name] = decode(in.DType, raw)
	}
	if n, err := r.Read(make([]byte, 1)); n > 0 {
		return errors.New("there are bytes after the last tensor")
	} else if err != nil && err != io.EOF {
		return err
	}
	for _, e := range es {
		e.be.Upload(e.value, values[e.name])
	}
	return nil
}

func decode(dtype string, raw []byte) []float64 {
	if dtype == "F64" {
		v := make([]float64, len(raw)/8)
		for i := range v {
			v[i] = math.Float64frombits(binary.LittleEndian.Uint64(raw[8*i:]))
		}
		return v
	}
	v := make([]float64, len(raw)/4)
	for i := range v {
		v[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:])))
	}
	return v
}

// compare returns an error that lists every difference between the names and
// shapes of the model and of the file.
func compare(es []entry, infos []info) error {
	inFile := make(map[string]info, len(infos))
	for _, in := range infos {
		inFile[in.name] = in
	}
	var missing, unexpected, shapes []string
	for _, e := range es {
		in, ok := inFile[e.name]
		delete(inFile, e.name)
		size := map[string]int64{"F32": 4, "F64": 8}[in.DType]
		switch {
		case !ok:
			missing = append(missing, e.name)
		case !slices.Equal(in.Shape, []int64{int64(e.value.Rows), int64(e.value.Cols)}):
			shapes = append(shapes, fmt.Sprintf("%s is %s, want %v", e.name, strings.ReplaceAll(fmt.Sprint(in.Shape), " ", "×"), e.value))
		case size == 0:
			shapes = append(shapes, fmt.Sprintf("%s has dtype %q, want F32 or F64", e.name, in.DType))
		case in.Offsets[1]-in.Offsets[0] != size*int64(e.value.Len()):
			shapes = append(shapes, fmt.Sprintf("%s has %d bytes for %v of %s", e.name, in.Offsets[1]-in.Offsets[0], e.value, in.DType))
		}
	}
	for _, in := range infos {
		if _, left := inFile[in.name]; left {
			unexpected = append(unexpected, in.name)
		}
	}
	slices.Sort(unexpected)
	var diffs []string
	for _, d := range []struct {
		what  string
		names []string
	}{{"missing", missing}, {"unexpected", unexpected}, {"different", shapes}} {
		if len(d.names) > 0 {
			diffs = append(diffs, d.what+": "+strings.Join(d.names, ", "))
		}
	}
	if diffs == nil {
		return nil
	}
	return fmt.Errorf("the file does not fit the model: %s", strings.Join(diffs, "; "))
}

// readHeader reads the header and leaves r at the numbers. The tensors come in
// the order of their places, which cover the data without gap or overlap.
func readHeader(r io.Reader) ([]info, map[string]string, error) {
	bad := func(format string, args ...any) ([]info, map[string]string, error) {
		return nil, nil, fmt.Errorf("not a safetensors file: "+format, args...)
	}
	var length [8]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return bad("no header: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return bad("a header of %d bytes; the limit is %d", n, maxHeader)
	}
	// Reading grows the buffer with what is there, not with what is claimed.
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
	var meta map[string]string
	var infos []info
	for name, field := range fields {
		if name == metadataName {
			if err := json.Unmarshal(field, &meta); err != nil {
				return bad("metadata: %w", err)
			}
			continue
		}
		in := info{name: name}
		if err := json.Unmarshal(field, &in); err != nil {
			return bad("%q: %w", name, err)
		}
		if len(in.Offsets) != 2 {
			return bad("%q: data_offsets %v", name, in.Offsets)
		}
		infos = append(infos, in)
	}
	slices.SortFunc(infos, func(a, b info) int {
		return cmp.Or(slices.Compare(a.Offsets, b.Offsets), cmp.Compare(a.name, b.name))
	})
	end := int64(0)
	for _, in := range infos {
		if in.Offsets[0] != end || in.Offsets[1] < end {
			return bad("%q lies at %v; the tensor before it ends at %d", in.name, in.Offsets, end)
		}
		end = in.Offsets[1]
	}
	return infos, meta, nil
}

// writeFile writes a file that appears whole or not at all: to a temporary file
// beside it, flushed to the disk, then renamed.
func writeFile(path string, write func(w io.Writer) error) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			f.Close() // a second Close does no harm
			os.Remove(f.Name())
		}
	}()
	if err := write(f); err != nil {
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
