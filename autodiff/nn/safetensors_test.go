package nn_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/specmatch/specmatch/autodiff"
	"github.com/specmatch/specmatch/autodiff/nn"
	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/ref"
)

// bag is a module of any parameters and buffers.
type bag struct {
	params  []*autodiff.Param
	buffers []*nn.Buffer
}

// load reads a file into m.
func load(r io.Reader, m nn.Module) error {
	f, err := nn.Read(r)
	if err != nil {
		return err
	}
	return f.Load(m)
}

func (b bag) Parameters() []*autodiff.Param { return b.params }
func (b bag) Buffers() []*nn.Buffer         { return b.buffers }

// values returns the parameters.
func (b bag) values() map[string][]float64 {
	m := map[string][]float64{}
	for _, p := range b.params {
		m[p.Name] = values(p)
	}
	return m
}

// model has all kinds of tensors, with values from seed.
func model(be backend.Backend, seed uint64) bag {
	rng := newRand(seed)
	norm := nn.NewBatchNorm(be, "norm", 3)
	be.Upload(norm.RunningMean.Value, normal(rng, 3))
	return bag{
		append(nn.NewLinear(be, "lin", 2, 3, nn.XavierUniform, rng).Parameters(), norm.Parameters()...),
		norm.Buffers(),
	}
}

func checkSame(t *testing.T, be backend.Backend, got, want bag) {
	t.Helper()
	for i, p := range want.params {
		checkClose(t, p.Name, values(got.params[i]), values(p), 0)
	}
	for i, b := range want.buffers {
		checkClose(t, b.Name, bufferValues(be, got.buffers[i]), bufferValues(be, b), 0)
	}
}

func saved(t testing.TB, m nn.Module, meta map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := nn.Save(&b, m, meta); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSaveLoad(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend, _ float64) {
		m := model(be, 1)
		data := saved(t, m, map[string]string{"dataset": "MUTAG"})
		if !bytes.Equal(data, saved(t, model(be, 1), map[string]string{"dataset": "MUTAG"})) {
			t.Error("equal weights give different bytes")
		}
		if bytes.Equal(data, saved(t, model(be, 2), map[string]string{"dataset": "MUTAG"})) {
			t.Error("different weights give equal bytes")
		}
		got := model(be, 3)
		if err := load(bytes.NewReader(data), got); err != nil {
			t.Fatal(err)
		}
		checkSame(t, be, got, m)

		path := filepath.Join(t.TempDir(), "weights.safetensors")
		if err := nn.SaveFile(path, m, map[string]string{"dataset": "MUTAG"}); err != nil {
			t.Fatal(err)
		}
		if onDisk, err := os.ReadFile(path); err != nil || !bytes.Equal(onDisk, data) {
			t.Errorf("SaveFile and Save write different bytes (%v)", err)
		}
		// Others may read it, unlike a temporary file.
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("a file %v (%v), want mode 0644", info, err)
		}
		got = model(be, 4)
		if err := nn.LoadFile(path, got); err != nil {
			t.Fatal(err)
		}
		checkSame(t, be, got, m)
		meta, err := nn.ReadMetadata(path)
		if err != nil || len(meta) != 3 || meta["dataset"] != "MUTAG" || meta["specmatch_format"] != "2" || len(meta["specmatch_checksum"]) != 8 {
			t.Errorf("metadata %v, %v", meta, err)
		}
	})
}

// TestLoadConverts: what one precision saves, every other loads.
func TestLoadConverts(t *testing.T) {
	for _, from := range engines {
		for _, to := range engines {
			be, other := from.open(), to.open()
			m, got := model(be, 1), model(other, 2)
			if err := load(bytes.NewReader(saved(t, m, nil)), got); err != nil {
				t.Fatalf("%s to %s: %v", from.name, to.name, err)
			}
			for i, p := range m.params {
				want := values(p)
				if other.Precision().Bytes() < be.Precision().Bytes() {
					for k, v := range want {
						want[k] = float64(float32(v))
					}
				}
				checkClose(t, fmt.Sprintf("%s to %s: %s", from.name, to.name, p.Name), values(got.params[i]), want, 0)
			}
		}
	}
}

// TestSafetensorsBytes pins the format, byte by byte.
func TestSafetensorsBytes(t *testing.T) {
	be := ref.New()
	m := bag{params: []*autodiff.Param{
		autodiff.NewParam(be, "w", 2, 1, []float64{1, -2}),
		autodiff.NewParam(be, "b", 1, 1, []float64{math.Inf(1)}),
	}, buffers: []*nn.Buffer{nn.NewBuffer(be, "empty", 0, 4, 0)}}
	header := `{"__metadata__":{"a\"":"ö","specmatch_checksum":"19218f1b","specmatch_format":"2"},` +
		`"b":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]},` +
		`"empty":{"dtype":"F64","shape":[0,4],"data_offsets":[8,8]},` +
		`"w":{"dtype":"F64","shape":[2,1],"data_offsets":[8,24]}}`
	header += strings.Repeat(" ", -len(header)&7)
	want := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	want = append(want, header...)
	for _, v := range []float64{math.Inf(1), 1, -2} {
		want = binary.LittleEndian.AppendUint64(want, math.Float64bits(v))
	}
	if got := saved(t, m, map[string]string{`a"`: "ö"}); !bytes.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
	// Whatever its length, the header ends where numbers are aligned.
	for k := range 8 {
		if n := binary.LittleEndian.Uint64(saved(t, m, map[string]string{"a": strings.Repeat("x", k)})); n%8 != 0 {
			t.Errorf("a header of %d bytes", n)
		}
	}
}

func TestSaveRefuses(t *testing.T) {
	be := ref.New()
	p := func(name string) *autodiff.Param { return autodiff.NewParam(be, name, 1, 1, []float64{1}) }
	for _, c := range []struct {
		name string
		m    bag
		meta map[string]string
		want string
	}{
		{"two of one name", bag{params: []*autodiff.Param{p("x"), p("x")}}, nil, `two tensors named "x"`},
		{"parameter and buffer of one name", bag{[]*autodiff.Param{p("x")}, []*nn.Buffer{nn.NewBuffer(be, "x", 1, 1, 0)}}, nil, `two tensors named "x"`},
		{"no name", bag{params: []*autodiff.Param{p("")}}, nil, "cannot be the name"},
		{"the reserved name", bag{params: []*autodiff.Param{p("__metadata__")}}, nil, "cannot be the name"},
		{"a name that is not UTF-8", bag{params: []*autodiff.Param{p("\xff")}}, nil, "cannot be the name"},
		{"a buffer without engine", bag{buffers: []*nn.Buffer{{Name: "x"}}}, nil, "NewBuffer"},
		{"the format version", bag{}, map[string]string{"specmatch_format": "2"}, "cannot be metadata"},
		{"the checksum", bag{}, map[string]string{"specmatch_checksum": "0"}, "cannot be metadata"},
		{"metadata that is not UTF-8", bag{}, map[string]string{"a": "\xff"}, "cannot be metadata"},
		{"too much metadata", bag{}, map[string]string{"a": strings.Repeat("x", 1<<24)}, "the limit is 16777216"},
	} {
		if err := nn.Save(io.Discard, c.m, c.meta); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.name, err, c.want)
		}
	}
}

// file makes a safetensors file of a header and data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

// TestLayout: files hold PyTorch's shapes and names, whoever wrote them, and those
// of version 1 of the format are read as what they were.
func TestLayout(t *testing.T) {
	onEngines(t, func(t *testing.T, be backend.Backend, _ float64) {
		m := model(be, 1)
		be.Upload(m.params[0].Value, []float64{1, 2, 3, 4, 5, 6}) // [2×3]
		path := filepath.Join(t.TempDir(), "weights.safetensors")
		if err := nn.SaveFile(path, m, nil); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{`"lin.weight":{`, `"shape":[3,2]`, `"lin.bias":{`, `"shape":[3],`, `"norm.running_var":{`} {
			if !bytes.Contains(data, []byte(want)) {
				t.Errorf("no %s in %q", want, data[:bytes.IndexByte(data, '}')])
			}
		}
		if bytes.Contains(data, []byte("[1,")) {
			t.Error("a vector is written as a matrix")
		}
		f, err := nn.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if n := len(f.Names()); n != 6 || f.Names()[0] != "lin.bias" || f.Values() != 6+3+4*3 {
			t.Errorf("%d tensors from %s on of %d values", n, f.Names()[0], f.Values())
		}
	})

	be := ref.New()
	want := []float64{1, 2, 3, 4, 5, 6}
	values32 := func(header string, v ...float32) []byte {
		b := file(header, 0)
		for _, x := range v {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(x))
		}
		return b
	}
	for name, data := range map[string][]byte{
		"version 1": values32(`{"__metadata__":{"specmatch_format":"1"},"l.weight":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"l.bias":{"dtype":"F32","shape":[1,3],"data_offsets":[24,36]}}`,
			1, 2, 3, 4, 5, 6, 7, 8, 9),
		"PyTorch": values32(`{"l.weight":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},"l.bias":{"dtype":"F32","shape":[3],"data_offsets":[24,36]},"n.num_batches_tracked":{"dtype":"I64","shape":[],"data_offsets":[36,44]}}`,
			1, 4, 2, 5, 3, 6, 7, 8, 9, 0, 0),
	} {
		l := nn.NewLinear(be, "l", 2, 3, nn.XavierUniform, newRand(1))
		if err := load(bytes.NewReader(data), l); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		checkClose(t, name, values(l.W), want, 0)
		checkClose(t, name, values(l.B), []float64{7, 8, 9}, 0)
	}
}

// TestRename: names are others in both directions; the tensors are the module's.
func TestRename(t *testing.T) {
	be := ref.New()
	name := func(name string) string { return strings.TrimPrefix(name, "li") }
	data := saved(t, nn.Rename(model(be, 1), name), nil)
	if !bytes.Contains(data, []byte(`"n.weight"`)) || !bytes.Contains(data, []byte(`"norm.running_var"`)) {
		t.Errorf("names in %q", data)
	}
	got := model(be, 2)
	if err := load(bytes.NewReader(data), nn.Rename(got, name)); err != nil {
		t.Fatal(err)
	}
	checkSame(t, be, got, model(be, 1))
	if got.params[0].Name != "lin.weight" {
		t.Errorf("the module's own parameter is now %q", got.params[0].Name)
	}
}

// TestFlippedBits: a file with any one of its bits flipped is refused.
func TestFlippedBits(t *testing.T) {
	be := ref.New()
	m := bag{params: []*autodiff.Param{autodiff.NewParam(be, "w", 2, 1, []float64{1, 2})}}
	data := saved(t, m, map[string]string{"standing": "epoch 7"})
	for i := range 8 * len(data) {
		data[i/8] ^= 1 << (i % 8)
		if err := load(bytes.NewReader(data), m); err == nil {
			t.Errorf("bit %d of byte %d: accepted: %q", i%8, i/8, data)
		}
		data[i/8] ^= 1 << (i % 8)
	}
	if err := load(bytes.NewReader(data), m); err != nil {
		t.Error(err)
	}
}

// TestLoadRefuses: every malformed or unfitting file is an error that says what
// is wrong, and leaves the model as it was.
func TestLoadRefuses(t *testing.T) {
	be := ref.New()
	m := bag{params: []*autodiff.Param{autodiff.NewParam(be, "w", 2, 1, []float64{1, 2}), autodiff.NewParam(be, "v", 1, 1, []float64{3})}}
	const (
		meta = `{"__metadata__":{"specmatch_format":"1"},`
		v    = `"v":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]}`
		w    = `"w":{"dtype":"F64","shape":[2,1],"data_offsets":[8,24]}`
	)
	good := file(meta+v+","+w+"}", 24)
	if err := load(bytes.NewReader(good), m); err != nil {
		t.Fatalf("the file that the others are made from: %v", err)
	}
	m.params[0].Backend().Upload(m.params[0].Value, []float64{1, 2})
	m.params[1].Backend().Upload(m.params[1].Value, []float64{3})

	for _, c := range []struct {
		name string
		data []byte
		want []string
	}{
		{"empty", nil, []string{"not a safetensors file: no header: EOF"}},
		{"short length", []byte{1, 2, 3}, []string{"no header: unexpected EOF"}},
		{"huge length", []byte{255, 255, 255, 255, 255, 255, 255, 255}, []string{"a header of 18446744073709551615 bytes"}},
		{"length beyond the file", append(binary.LittleEndian.AppendUint64(nil, 1<<24), "{}"...), []string{"the header has 2 of 16777216 bytes"}},
		{"no JSON", file("hello", 0), []string{"header: invalid character"}},
		{"JSON of another kind", file("[]", 0), []string{"header: json"}},
		{"no checksum", file(`{"__metadata__":{"specmatch_format":"2"},`+v+","+w+"}", 24), []string{"no specmatch_checksum"}},
		{"a wrong checksum", file(`{"__metadata__":{"specmatch_checksum":"00000000"},`+v+","+w+"}", 24), []string{"the checksum is wrong", "damaged"}},
		{"a long checksum", file(`{"__metadata__":{"specmatch_checksum":"0000000000"},`+v+","+w+"}", 24), []string{"the checksum is wrong"}},
		{"another format version", file(`{"__metadata__":{"specmatch_format":"7"}}`, 0), []string{`specmatch_format is "7"`, `reads "2" and older`}},
		{"metadata that is not strings", file(`{"__metadata__":{"a":1}}`, 0), []string{"metadata: json"}},
		{"a tensor that is none", file(meta+`"w":3}`, 0), []string{`"w": json`}},
		{"a tensor without place", file(meta+`"w":{"dtype":"F64","shape":[2,1]}}`, 0), []string{`"w": data_offsets []`}},
		{"three offsets", file(meta+`"w":{"dtype":"F64","shape":[2,1],"data_offsets":[0,8,16]}}`, 16), []string{`data_offsets [0 8 16]`}},
		{"fractional offsets", file(meta+`"w":{"dtype":"F64","shape":[2,1],"data_offsets":[0,8.5]}}`, 16), []string{`"w": json`}},
		{"negative offset", file(meta+`"w":{"dtype":"F64","shape":[2,1],"data_offsets":[-8,8]}}`, 16), []string{`"w" lies at [-8 8]`}},
		{"backward offsets", file(meta+`"w":{"dtype":"F64","shape":[2,1],"data_offsets":[0,-8]}}`, 16), []string{`"w" lies at [0 -8]`}},
		{"overlap", file(meta+v+`,"w":{"dtype":"F64","shape":[2,1],"data_offsets":[0,16]}}`, 16), []string{"lies at [0 16]; the tensor before it ends at 8"}},
		{"gap", file(meta+v+`,"w":{"dtype":"F64","shape":[2,1],"data_offsets":[16,32]}}`, 32), []string{"lies at [16 32]; the tensor before it ends at 8"}},
		{"a name twice", file(meta+v+","+v+","+w+"}", 24), nil}, // the last counts; here both are the same
		{"other names", file(meta+`"a":{"dtype":"F64","shape":[1,1],"data_offsets":[0,8]},"w":{"dtype":"F64","shape":[1,2],"data_offsets":[8,24]},"b":{"dtype":"F64","shape":[0,1],"data_offsets":[24,24]}}`, 24),
			[]string{"missing: v", "unexpected: a, b", "different: w is [1×2], want [2×1]"}},
		{"rank 1", file(meta+v+`,"w":{"dtype":"F64","shape":[2],"data_offsets":[8,24]}}`, 24), []string{"w is [2], want [2×1]"}},
		{"other type", file(meta+v+`,"w":{"dtype":"I64","shape":[2,1],"data_offsets":[8,24]}}`, 24), []string{`w has dtype "I64", want F32 or F64`}},
		{"fewer bytes than the shape", file(meta+v+`,"w":{"dtype":"F64","shape":[2,1],"data_offsets":[8,16]}}`, 16), []string{"w has 8 bytes for [2×1] of F64"}},
		{"more bytes than the shape", file(meta+v+`,"w":{"dtype":"F32","shape":[2,1],"data_offsets":[8,24]}}`, 24), []string{"w has 16 bytes for [2×1] of F32"}},
		{"bytes at the end", append(bytes.Clone(good), 0), []string{"bytes after the last tensor"}},
	} {
		err := load(bytes.NewReader(c.data), m)
		if c.want == nil && err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q in it", c.name, err, want)
			}
		}
		if c.want == nil {
			m.params[0].Backend().Upload(m.params[0].Value, []float64{1, 2})
			m.params[1].Backend().Upload(m.params[1].Value, []float64{3})
		}
	}
	for n := range good {
		if err := load(bytes.NewReader(good[:n]), m); err == nil {
			t.Errorf("%d of %d bytes are accepted", n, len(good))
		}
	}
	broken := errors.New("broken disk")
	if err := load(io.MultiReader(bytes.NewReader(good), failingReader{broken}), m); !errors.Is(err, broken) {
		t.Errorf("a read error after the data: %v", err)
	}
	if err := load(io.MultiReader(bytes.NewReader(good[:50]), failingReader{broken}), m); !errors.Is(err, broken) {
		t.Errorf("a read error in the header: %v", err)
	}
	if err := load(bytes.NewReader(good), bag{params: []*autodiff.Param{m.params[0], m.params[0]}}); err == nil || !strings.Contains(err.Error(), `two tensors named "w"`) {
		t.Errorf("a model with two tensors of one name: %v", err)
	}
	checkClose(t, "w after all refusals", values(m.params[0]), []float64{1, 2}, 0)
	checkClose(t, "v after all refusals", values(m.params[1]), []float64{3}, 0)
}

type failingReader struct{ err error }

func (r failingReader) Read([]byte) (int, error) { return 0, r.err }

// TestFileErrors: errors name the file, and a failed save leaves the file that
// was there, and nothing else.
func TestFileErrors(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "weights.safetensors")
	m := model(ref.New(), 1)
	if err := nn.SaveFile(path, m, nil); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := nn.SaveFile(path, m, map[string]string{"specmatch_format": "x"}); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v does not name %s", err, path)
	}
	if after, err := os.ReadFile(path); err != nil || !bytes.Equal(before, after) {
		t.Errorf("a failed save changed the file (%v)", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("a failed save left %v (%v)", entries, err)
	}

	absent := filepath.Join(dir, "absent", "weights.safetensors")
	if err := os.WriteFile(filepath.Join(dir, "garbage"), []byte("garbage, and more of it"), 0o666); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage")
	_, metaAbsent := nn.ReadMetadata(absent)
	_, metaGarbage := nn.ReadMetadata(garbage)
	for _, c := range []struct {
		err  error
		path string
		is   error
	}{
		{nn.SaveFile(absent, m, nil), filepath.Dir(absent), os.ErrNotExist},
		{nn.LoadFile(absent, m), absent, os.ErrNotExist},
		{nn.LoadFile(garbage, m), garbage, nil},
		{metaAbsent, absent, os.ErrNotExist},
		{metaGarbage, garbage, nil},
	} {
		if c.err == nil || !strings.Contains(c.err.Error(), c.path) || c.is != nil && !errors.Is(c.err, c.is) {
			t.Errorf("%v: want an error that names %s and is %v", c.err, c.path, c.is)
		}
	}
	var full fullWriter
	if err := nn.Save(&full, m, nil); !errors.Is(err, errFull) {
		t.Errorf("a write error in the numbers: %v", err)
	}
	full = 1
	if err := nn.Save(&full, m, nil); !errors.Is(err, errFull) {
		t.Errorf("a write error in the header: %v", err)
	}
}

var errFull = errors.New("disk full")

// fullWriter fails from its second write on, or from the first if it is 1.
type fullWriter int

func (w *fullWriter) Write(p []byte) (int, error) {
	if *w++; *w > 1 {
		return 0, errFull
	}
	return len(p), nil
}

// FuzzLoad: no file makes Load panic, and what it accepts it saves again to the
// same weights.
func FuzzLoad(f *testing.F) {
	be := ref.New()
	m := bag{params: []*autodiff.Param{
		autodiff.NewParam(be, "w", 2, 1, []float64{1, 2}), autodiff.NewParam(be, "v", 1, 1, []float64{3}),
	}}
	f.Add(saved(f, m, nil))
	f.Add(saved(f, model(be, 1), nil))
	f.Add(file(`{"__metadata__":{"specmatch_format":"1"},"v":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[2,1],"data_offsets":[4,12]}}`, 12))
	f.Add(file(`{"w":{"dtype":"F64","shape":[4611686018427387904,4],"data_offsets":[0,9223372036854775807]}}`, 0))
	f.Add(file(`{"w":null,"__metadata__":null}`, 0))
	f.Fuzz(func(t *testing.T, data []byte) {
		if load(bytes.NewReader(data), m) != nil {
			return
		}
		again := saved(t, m, nil)
		first := m.values()
		if err := load(bytes.NewReader(again), m); err != nil {
			t.Fatal(err)
		}
		for name, v := range m.values() {
			for i := range v {
				if math.Float64bits(v[i]) != math.Float64bits(first[name][i]) {
					t.Errorf("%s: entry %d changed from %v to %v", name, i, first[name][i], v[i])
				}
			}
		}
	})
}

// TestPyTorch: a state_dict of torch.save is read as the same in safetensors is, and
// what does not fit is named.
func TestPyTorch(t *testing.T) {
	for _, name := range []string{"zip.pth", "legacy.pth"} {
		f, err := nn.ReadFile(filepath.Join("internal", "pytorch", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		weight, bias := autodiff.NewParam(ref.New(), "linear.weight", 4, 3, make([]float64, 12)), autodiff.NewParam(ref.New(), "linear.bias", 1, 3, make([]float64, 3))
		weight.Layout, bias.Layout = autodiff.Transposed, autodiff.Vector
		l := bag{params: []*autodiff.Param{weight, bias}}
		want := "unexpected: double, half, nothing, part, special, transposed"
		if err := f.Load(l); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		for _, other := range []string{"double", "half", "nothing", "part", "special", "transposed"} {
			f = f.Without(other)
		}
		if err := f.Load(l); err != nil {
			t.Error(err)
		}
		if w := values(weight); w[1] != float64(float32(-0.4578188955783844)) { // [1, 0] of the [out, in] there
			t.Errorf("%s: %v", name, w)
		}
	}
}
