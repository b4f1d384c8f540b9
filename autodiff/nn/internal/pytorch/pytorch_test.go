package pytorch

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func golden(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestGolden: both forms of torch.save give PyTorch's tensors, bit for bit.
func TestGolden(t *testing.T) {
	var want []struct {
		Name, DType string
		Shape       []int64
		Data        []int
	}
	if err := json.Unmarshal(golden(t, "tensors.json"), &want); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"zip.pth", "legacy.pth"} {
		b := golden(t, name)
		if !Begins(b[:4]) {
			t.Errorf("%s is not taken for PyTorch's", name)
		}
		got, err := Read(bytes.NewReader(b), int64(len(b)))
		if err != nil || len(got) != len(want) {
			t.Fatalf("%s: %d tensors, %v", name, len(got), err)
		}
		for i, w := range want {
			g := got[i]
			same := slices.EqualFunc(g.Data, w.Data, func(a byte, b int) bool { return int(a) == b })
			if g.Name != w.Name || g.DType != w.DType || !slices.Equal(g.Shape, w.Shape) || !same {
				t.Errorf("%s: %+v\nwant %+v", name, g, w)
			}
		}
	}
}

// pickled writes the archive of a pickle and some files.
func pickled(pickle string, files ...string) []byte {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	add := func(name, text string, method uint16) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: "archive/" + name, Method: method})
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			panic(err)
		}
	}
	if pickle != "" {
		add("data.pkl", pickle, zip.Store)
	}
	for i := 0; i < len(files); i += 2 {
		name, packed := strings.CutPrefix(files[i], "packed:")
		method := zip.Store
		if packed {
			method = zip.Deflate
		}
		add(name, files[i+1], method)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

// tensorPickle is the pickle of {"w": tensor} on a storage of 4 float32 values, with
// its offset, shape and strides as instructions.
func tensorPickle(offset, shape, strides string) string {
	const storage = "(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x04tQ"
	return "\x80\x02}X\x01\x00\x00\x00wctorch._utils\n_rebuild_tensor_v2\n(" + storage + offset + shape + strides + "\x89}tRs."
}

const numbers = "0123456789abcdef" // 4 values

// TestHostile: what is no state_dict is refused in one line, in no time and no memory.
func TestHostile(t *testing.T) {
	legacy, zipped := golden(t, "legacy.pth"), golden(t, "zip.pth")
	const system = "\x80\x02}X\x0d\x00\x00\x00little_endian\x88s."
	shared := "N\x85q\x00" // a tuple of twice a tuple of twice a tuple …: 2^100 values
	for i := range byte(100) {
		shared += string([]byte{'h', i, 'h', i, 0x86, 'q', i + 1})
	}
	huge := "\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x0f"
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"a call of os.system":        {pickled("\x80\x02cposix\nsystem\nX\x02\x00\x00\x00id\x85R."), `it wants "posix.system"`},
		"eval":                       {pickled("\x80\x02c__builtin__\neval\nX\x01\x00\x00\x001\x85R."), `"__builtin__.eval"`},
		"a module's class":           {pickled("\x80\x02cmodel\nGNN\n)\x81."), `"model.GNN"`},
		"an import in the old form":  {append([]byte(legacyMagic), "\x80\x02cos\nsystem\n."...), `"os.system"`},
		"an instance (INST)":         {pickled("(iposix\nsystem\n."), "instruction 0x69"},
		"a name from the stack":      {pickled("\x80\x02X\x02\x00\x00\x00osX\x06\x00\x00\x00system\x93."), "instruction 0x93"},
		"an extension":               {pickled("\x80\x02\x82\x01."), "instruction 0x82"},
		"protocol 4":                 {pickled("\x80\x04}."), "protocol 4"},
		"a text longer than memory":  {pickled("\x80\x02X\xff\xff\xff\xff"), "ends too early"},
		"no end":                     {pickled("\x80\x02}"), "ends too early"},
		"an empty stack":             {pickled("\x80\x02s."), "empty stack"},
		"no mark":                    {pickled("\x80\x02}u."), "no mark"},
		"a mark as the value":        {pickled("\x80\x02(."), "mark"},
		"a memo without a value":     {pickled("\x80\x02h\x05."), "memo has no 5"},
		"a list":                     {pickled("\x80\x02]."), "it holds a list"},
		"an optimizer beside":        {pickled("\x80\x02}X\x05\x00\x00\x00epochK\x05s."), `"epoch" is 5; want a tensor`},
		"a state_dict in another":    {pickled("\x80\x02}X\x05\x00\x00\x00model}s."), `"model" is a dictionary; want a tensor: save the state_dict alone`},
		"no pickle":                  {pickled("", "data/0", numbers), `no "data.pkl"`},
		"no storage":                 {pickled(tensorPickle("K\x00", "K\x04\x85", "K\x01\x85")), `no "archive/data/0"`},
		"a short storage":            {pickled(tensorPickle("K\x00", "K\x04\x85", "K\x01\x85"), "data/0", "1234"), "has 4 bytes for 4 values"},
		"a shape beyond the storage": {pickled(tensorPickle("K\x00", "K\x05\x85", "K\x01\x85"), "data/0", numbers), "beyond its storage"},
		"an offset beyond it":        {pickled(tensorPickle("K\x04", ")", ")"), "data/0", numbers), "beyond its storage"},
		"strides beyond it":          {pickled(tensorPickle("K\x00", "K\x02\x85", huge+"\x85"), "data/0", numbers), "beyond its storage"},
		"one value a trillion times": {pickled(tensorPickle("K\x00", huge+"\x85", "K\x00\x85"), "data/0", numbers), "more than the file has"},
		"a negative shape":           {pickled(tensorPickle("K\x00", "J\xff\xff\xff\xff\x85", "K\x01\x85"), "data/0", numbers), "not understood"},
		"compressed":                 {pickled("\x80\x02}.", "packed:data/0", strings.Repeat("0", 1<<20)), "compressed"},
		"big-endian":                 {pickled("\x80\x02}.", "byteorder", "big"), "endian"},
		"TorchScript":                {pickled("\x80\x02}.", "constants.pkl", "\x80\x02)."), "TorchScript"},
		"zeros":                      {make([]byte, 2048), "begins otherwise"},
		"nothing":                    {nil, "EOF"},
		"half of an archive":         {zipped[:len(zipped)/2], "zip: not a valid zip file"},
		"half of the old form":       {legacy[:len(legacy)-40], "EOF"},
		"more behind the old form":   {append(slices.Clone(legacy), 0), "after the last storage"},
		"shared tuples as a storage": {append([]byte(legacyMagic+system), "\x80\x02}.\x80\x02"+shared+"]hda."...), "no tensor uses the storage of a list"},
		"shared tuples as a value":   {pickled("\x80\x02" + shared + "}X\x01\x00\x00\x00whds."), `"w" is a list`},
		"shared tuples as a key":     {pickled("\x80\x02" + shared + "}hdNs."), "a list as a key"},
		"shared tuples called":       {pickled("\x80\x02" + shared + "hd)R."), "a call of a list"},
		"a shape of a million":       {pickled(tensorPickle("K\x00", "("+strings.Repeat("K\x01", 1<<20)+"t", ")"), "data/0", numbers), "more than 1048576 instructions"},
		"a shape of many":            {pickled(tensorPickle("K\x00", "("+strings.Repeat("K\x01", 1e5)+"t", ")"), "data/0", numbers), "not understood"},
		"a long name":                {pickled("\x80\x02}X\x40\x42\x0f\x00" + strings.Repeat("\x1b", 1e6) + "Ns."), "want a tensor"},
		"a long text":                {pickled("\x80\x02X\x40\x42\x0f\x00" + strings.Repeat("\x1b", 1e6) + "."), "it holds the text"},
		"dictionaries without end":   {pickled("\x80\x02" + strings.Repeat("}", 2<<20) + "."), "more than 1048576 instructions"},
	} {
		got, err := Read(bytes.NewReader(c.file), int64(len(c.file)))
		if err != nil && len(err.Error()) > 600 {
			t.Errorf("%s: a message of %d bytes", name, len(err.Error()))
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || got != nil {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
}

// TestOverlap: the files of an archive that are one and the same, over and over, are not
// held over and over.
func TestOverlap(t *testing.T) {
	const n = 50
	tensors, files := "", []string{}
	for i := range n {
		key := string(rune('A' + i))
		one := tensorPickle("K\x00", "K\x00\x85", "K\x01\x85") // nothing, of a storage
		one = strings.Replace(strings.TrimSuffix(strings.TrimPrefix(one, "\x80\x02}"), "."), "X\x01\x00\x00\x000", "X\x01\x00\x00\x00"+key, 1)
		tensors += strings.Replace(one, "X\x01\x00\x00\x00w", "X\x01\x00\x00\x00"+key, 1)
		files = append(files, "data/"+key, numbers)
	}
	b := pickled("\x80\x02}"+tensors+".", files...)
	if all, err := Read(bytes.NewReader(b), int64(len(b))); err != nil || len(all) != n {
		t.Fatalf("%d tensors, %v", len(all), err)
	}
	if _, err := stateDict(mustUnpickle(t, "\x80\x02}"+tensors+"."), 3*16, func(*storage) ([]byte, error) { return []byte(numbers), nil }); err == nil || !strings.Contains(err.Error(), "storages are larger than the file") {
		t.Errorf("%d storages in a file of three: %v", n, err)
	}
}

func mustUnpickle(t *testing.T, text string) any {
	t.Helper()
	v, _, err := unpickle([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// FuzzRead: no file makes it panic, or gives more than it holds.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"zip.pth", "legacy.pth"} {
		b, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add(pickled(tensorPickle("K\x00", "K\x02K\x02\x86", "K\x01K\x02\x86"), "data/0", numbers))
	f.Fuzz(func(t *testing.T, b []byte) {
		all, err := Read(bytes.NewReader(b), int64(len(b)))
		total := 0
		for _, x := range all {
			total += len(x.Data)
		}
		if total > len(b) || err != nil && all != nil {
			t.Errorf("%d bytes of tensors in %d bytes, %v", total, len(b), err)
		}
	})
}
