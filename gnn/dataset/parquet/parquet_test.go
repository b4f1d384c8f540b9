package parquet_test

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"flag"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime/metrics"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	parquetgo "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/specmatch/specmatch/gnn/dataset/parquet"
)

// TestDamagedParquet: whichever byte of a file is wrong, the reader neither panics nor
// goes on for ever.
func TestDamagedParquet(t *testing.T) {
	t.Chdir(t.TempDir())
	var b bytes.Buffer
	if err := parquetgo.Write(&b, []struct {
		SMILES string `parquet:"smiles"`
		Y      *int32 `parquet:"y,optional"`
	}{{"C", nil}, {"CC", new(int32)}}); err != nil {
		t.Fatal(err)
	}
	refused := 0
	for i := range b.Len() {
		data := bytes.Clone(b.Bytes())
		data[i] ^= 0xff
		if err := os.WriteFile("f.parquet", data, 0o644); err != nil {
			t.Fatal(err)
		}
		x, err := parquet.Open("f.parquet")
		if err == nil {
			_, err = io.Copy(io.Discard, x)
			x.Close()
		}
		if err != nil {
			if refused++; !strings.HasPrefix(err.Error(), "f.parquet: ") {
				t.Errorf("byte %d: %v", i, err)
			}
		}
	}
	if refused < b.Len()/4 {
		t.Errorf("%d of %d damaged files are refused", refused, b.Len())
	}
}

// footed is a Parquet file of a footer alone.
func footed(footer string) []byte {
	text := []byte("PAR1" + footer)
	return append(binary.LittleEndian.AppendUint32(text, uint32(len(footer))), "PAR1"...)
}

// read reads a whole file.
func read(t testing.TB, data []byte) (string, error) {
	path := filepath.Join(t.TempDir(), "f.parquet")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return readFile(path)
}

func readFile(path string) (string, error) {
	x, err := parquet.Open(path)
	if err != nil {
		return "", err
	}
	defer x.Close()
	text, err := io.ReadAll(x)
	return string(text), err
}

// TestHostileParquet: what a file says of itself is compared with its bytes before the
// library believes it. Each of these, believed, ends the process.
func TestHostileParquet(t *testing.T) {
	root := "\x15\x02\x19\xfc\x80\x80\x80\x01" // version 1; a schema of 2 Mi elements
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"a list of 2 billion":      {footed("\x15\x02\x19\xfc\xff\xff\xff\xff\x07"), "a list of 2147483647 where 0 bytes are left"},
		"structures in structures": {footed(strings.Repeat("\x1c", 1_000_000)), "nested deeper than 32"},
		"lists in lists":           {footed("\x19" + strings.Repeat("\x19", 1_000_000)), "nested deeper than 32"},
		"maps in maps":             {footed("\x1b" + strings.Repeat("\x01\xbb", 1_000_000)), "nested deeper than 32"},
		"a long text":              {footed("\x18\xff\xff\xff\xff\x07abc"), "a length of 2147483647 where 3 bytes are left"},
		"many columns of a byte":   {footed(root + strings.Repeat("\x00", 2<<20)), "more than fits into"},
		"columns in columns":       {footed("\x15\x02\x19\xfc\xe8\x07" + strings.Repeat("\x55\x02\x00", 1000) + "\x00"), "columns are nested deeper than 32"},
		"columns without chunks":   {footed("\x15\x02\x19\xfc\xe8\x07" + strings.Repeat("\x00", 1000) + "\x29\xfc\xe8\x07" + strings.Repeat("\x00", 1000) + "\x00"), "but 0 chunks"},
		"a footer of 4 GB":         {[]byte("PAR1\xff\xff\xff\xffPAR1"), "longer than the file"},
		"nothing":                  {nil, "0 bytes"},
		"another format":           {[]byte("smiles,y\nCCO,1\nCC,2\n"), "not a Parquet file"},
	} {
		if _, err := read(t, c.file); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > 300 {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
}

// TestHostilePages: the same of the headers of pages.
func TestHostilePages(t *testing.T) {
	var b bytes.Buffer
	if err := parquetgo.Write(&b, []struct {
		SMILES string `parquet:"smiles"`
	}{{"C"}, {"CC"}}); err != nil {
		t.Fatal(err)
	}
	header := b.Bytes()[4:]
	if header[0] != 0x15 || header[2] != 0x15 { // the type of a page, and its bytes
		t.Fatalf("the first page begins % x", header[:8])
	}
	for _, c := range []struct{ at, want string }{
		{"\x15\x00\x15\xfe\xff\xff\xff\x0f\x15\x02\x00", "a page of 2147483647 bytes: at most"},
		{"\x15\x00\x15\x02\x15\xfe\xff\xff\xff\x0f\x00", "a page of 2147483647 bytes, of which"},
		{"\x15\x00\x15\x02\x15\x02\x2c\x15\xfe\xff\xff\xff\x0f\x15\x00\x15\x06\x15\x06\x00\x00", "a page of 2147483647 values"},
	} {
		data := bytes.Clone(b.Bytes())
		copy(data[4:], c.at)
		if _, err := read(t, data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v; want %q", err, c.want)
		}
	}
}

// specimens are files of every encoding, compression and version of a page that is read.
func specimens(t testing.TB) (files [][]byte) {
	type row struct {
		SMILES string    `parquet:"smiles,dict"`
		Name   string    `parquet:"name,delta"`
		Path   *string   `parquet:"path,optional,snappy"`
		I      int32     `parquet:"i,delta"`
		J      *int64    `parquet:"j,optional,dict,zstd"`
		B      *bool     `parquet:"b,optional"`
		F      float64   `parquet:"f,split"`
		List   []int32   `parquet:"list,list,gzip"`
		Fixed  [5]byte   `parquet:"fixed,snappy"`
		Texts  []*string `parquet:"texts,list,dict,brotli"`
	}
	var rows []row
	for i := range 40 {
		text := strings.Repeat("C", i%7)
		number := int64(i * i)
		r := row{SMILES: text, Name: text + "O", I: int32(i % 5), F: 1 / float64(1+i), Fixed: [5]byte{'A' + byte(i)}}
		if i%3 > 0 {
			yes := i%2 == 0
			r.Path = &text
			r.J = &number
			r.B = &yes
			r.List = []int32{1, int32(i)}
			r.Texts = []*string{nil, &text}
		}
		rows = append(rows, r)
	}
	for version := 1; version <= 2; version++ {
		var b bytes.Buffer
		w := parquetgo.NewGenericWriter[row](&b, parquetgo.DataPageVersion(version))
		if _, err := w.Write(rows); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		files = append(files, b.Bytes())
	}
	return files
}

// TestCompressions: numbers that cannot be packed are read as they were written, from pages of many
// sizes, whatever the compression; the one that the library reads wrongly is refused.
func TestCompressions(t *testing.T) {
	type row struct {
		Y float64 `parquet:"y"`
	}
	rng := rand.New(rand.NewPCG(1, 3))
	for _, codec := range []compress.Codec{
		&parquetgo.Gzip, &parquetgo.Brotli, &parquetgo.Zstd, &parquetgo.Snappy, &parquetgo.Lz4Raw,
	} {
		for _, n := range []int{1, 300, 511, 512, 4096, 10_000, 131_072} {
			rows := make([]row, n)
			want := []byte("y\n")
			for i := range rows {
				rows[i].Y = rng.NormFloat64()
				want = append(strconv.AppendFloat(want, rows[i].Y, 'g', -1, 64), '\n')
			}
			var b bytes.Buffer
			err := parquetgo.Write(&b, rows, parquetgo.Compression(codec), parquetgo.PageBufferSize(1<<24))
			if err != nil {
				t.Fatal(err)
			}
			text, err := read(t, b.Bytes())
			if codec == &parquetgo.Lz4Raw {
				if err == nil || !strings.Contains(err.Error(), "compression LZ4_RAW is not read; write the file with zstd") {
					t.Errorf("%v: %v", codec, err)
				}
			} else if err != nil || text != string(want) {
				t.Errorf("%v: other numbers than %d that were written: %v", codec, n, err)
			}
		}
	}
}

// mutate changes a few bytes of data.
func mutate(rng *rand.Rand, data []byte) []byte {
	data = bytes.Clone(data)
	for range 1 + rng.IntN(3) {
		i := rng.IntN(len(data))
		switch rng.IntN(4) {
		case 0:
			data[i] ^= 1 << rng.IntN(8)
		case 1:
			data[i] = byte(rng.Uint32())
		case 2: // a large number in the encodings of lengths
			copy(data[i:], "\xfe\xff\xff\xff\x0f"[rng.IntN(4):])
		case 3:
			data = slices.Delete(data, i, min(len(data)-1, i+rng.IntN(3)))
		}
	}
	return data
}

// TestFirstPage: a footer that sends the library into the middle of a page is refused.
func TestFirstPage(t *testing.T) {
	refused := 0
	for _, data := range specimens(t) {
		file, err := parquetgo.OpenFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		meta := file.Metadata()
		for k := range meta.RowGroups[0].Columns {
			chunk := &meta.RowGroups[0].Columns[k].MetaData
			if chunk.DictionaryPageOffset == 0 {
				continue
			}
			chunk.DataPageOffset++
			footer, err := thrift.Marshal(new(thrift.CompactProtocol), meta)
			chunk.DataPageOffset--
			if err != nil {
				t.Fatal(err)
			}
			end := len(data) - 8 - int(binary.LittleEndian.Uint32(data[len(data)-8:]))
			damaged := slices.Concat(data[:end], footer)
			damaged = binary.LittleEndian.AppendUint32(damaged, uint32(len(footer)))
			damaged = append(damaged, "PAR1"...)
			if _, err := read(t, damaged); err == nil || !strings.Contains(err.Error(), "first page of data is not where") {
				t.Errorf("column %d: %v", k, err)
			}
			refused++
		}
	}
	if refused == 0 {
		t.Error("no file has a dictionary")
	}
}

var mutants = flag.Int("mutants", 1000, "damaged files of TestMutatedParquet")

// TestMutatedParquet: a damaged file ends neither the process nor its memory, nor does it take long.
func TestMutatedParquet(t *testing.T) {
	files := specimens(t)
	for _, data := range files {
		if text, err := read(t, data); err != nil || strings.Count(text, "\n") != 41 {
			t.Fatalf("%s, %v", text, err)
		}
	}
	n := *mutants
	if testing.Short() {
		n = min(n, 200)
	}
	path := filepath.Join(t.TempDir(), "f.parquet")
	rng := rand.New(rand.NewPCG(1, 1))
	allocated := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	for k := range n {
		data := mutate(rng, files[k%len(files)])
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		metrics.Read(allocated)
		before := allocated[0].Value.Uint64()
		start := time.Now()
		readFile(path)
		metrics.Read(allocated)
		if bytes := allocated[0].Value.Uint64() - before; bytes > 1<<30 || time.Since(start) > 2*time.Second {
			t.Errorf("file %d: %d bytes of memory, %v", k, bytes, time.Since(start))
		}
	}
}

// FuzzOpen: no file, however made, ends the process.
func FuzzOpen(f *testing.F) {
	for _, data := range specimens(f) {
		f.Add(data)
	}
	f.Add(footed("\x15\x02\x19\xfc\xff\xff\xff\xff\x07"))
	f.Fuzz(func(t *testing.T, data []byte) { read(t, data) })
}

// TestTypes: every column has the values that its type says.
func TestTypes(t *testing.T) {
	type row struct {
		U32   uint32   `parquet:"u32"`
		U64   uint64   `parquet:"u64"`
		U8    uint8    `parquet:"u8"`
		I8    int8     `parquet:"i8"`
		D32   int32    `parquet:"d32,decimal(2:9)"`
		D64   int64    `parquet:"d64,decimal(3:18)"`
		Date  int32    `parquet:"date,date"`
		At    int64    `parquet:"at,timestamp(millisecond:utc)"`
		Local int64    `parquet:"local,timestamp(microsecond:local)"`
		Time  int64    `parquet:"time,time(nanosecond)"`
		UUID  [16]byte `parquet:"uuid,uuid"`
		Fixed [4]byte  `parquet:"fixed"`
		Raw   []byte   `parquet:"raw"`
		True  bool     `parquet:"true"`
		F     float32  `parquet:"f"`
		None  *uint32  `parquet:"none,optional"`
		List  []int32  `parquet:"list,list"`
		S     string   `parquet:"s"`
	}
	var b bytes.Buffer
	if err := parquetgo.Write(&b, []row{
		{U32: math.MaxUint32, U64: math.MaxUint64, U8: 255, I8: -128, D32: -5, D64: 1234567, Date: 19787, At: 1700000000123, Local: -1, Time: 3661e9, UUID: [16]byte{0: 1, 15: 255}, Fixed: [4]byte{'m', '1'}, Raw: []byte("m\xff1"), True: true, F: 0.1, S: "x"},
		{D32: math.MinInt32, Date: -1, Raw: []byte("é")},
	}); err != nil {
		t.Fatal(err)
	}
	text, err := read(t, b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	want := `u32,u64,u8,i8,d32,d64,date,at,local,time,uuid,fixed,raw,true,f,none,s
4294967295,18446744073709551615,255,-128,-0.05,1234.567,2024-03-05,2023-11-14T22:13:20.123Z,1969-12-31T23:59:59.999999,01:01:01,01000000-0000-0000-0000-0000000000ff,m1,6dff31,1,0.1,,x
0,0,0,0,-21474836.48,0.000,1969-12-31,1970-01-01T00:00:00Z,1970-01-01T00:00:00,00:00:00,00000000-0000-0000-0000-000000000000,00000000,é,0,0,,
`
	if text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}

// TestText: a reader of the text sees every row of a single column, and no separator other than the comma.
func TestText(t *testing.T) {
	var single, named bytes.Buffer
	ethanol := "CCO"
	err := errors.Join(
		parquetgo.Write(&single, []struct {
			SMILES *string `parquet:"smiles,optional"`
		}{{&ethanol}, {}, {&ethanol}}),
		parquetgo.Write(&named, []struct {
			SMILES string `parquet:"smiles"`
			Assay  string `parquet:"IC50;nM;assay"`
		}{{"C", "1\t2"}, {"CC", ` x, "y`}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	for want, b := range map[string]*bytes.Buffer{
		"smiles\nCCO\n\"\"\nCCO\n":                                 &single,
		"smiles,\"IC50;nM;assay\"\nC,\"1\t2\"\nCC,\" x, \"\"y\"\n": &named,
	} {
		if text, err := read(t, b.Bytes()); err != nil || text != want {
			t.Errorf("%q, %v, want %q", text, err, want)
		}
	}
}

// TestNames: columns keep their names and their order, whatever the names have.
func TestNames(t *testing.T) {
	names := []string{"z", "class_oxygen, too", `a"b`, "-", "", "é.x", "optional,list"}
	path := filepath.Join(t.TempDir(), "n.parquet")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := parquet.NewWriter(f, names)
	if err := errors.Join(w.Write("i", []float32{1, 2, 3, 4, 5, 6, 7}), w.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	text, err := parquet.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(text).ReadAll()
	if want := [][]string{append([]string{"id"}, names...), {"i", "1", "2", "3", "4", "5", "6", "7"}}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v", got, err)
	}
}

// TestEmpty: a table without rows has its header.
func TestEmpty(t *testing.T) {
	var b bytes.Buffer
	if err := parquetgo.Write(&b, []struct {
		SMILES string `parquet:"smiles"`
	}{}); err != nil {
		t.Fatal(err)
	}
	if text, err := read(t, b.Bytes()); err != nil || text != "smiles\n" {
		t.Errorf("%q, %v", text, err)
	}
}

// float16 is a type that the library does not have.
type float16 struct{ parquetgo.Type }

func (float16) LogicalType() *format.LogicalType {
	return &format.LogicalType{Value: new(format.Float16Type)}
}

// TestBytesOfTypes: decimals of bytes, float16 and Int96, which no structure of Go has.
func TestBytesOfTypes(t *testing.T) {
	schema := parquetgo.NewSchema("t", parquetgo.Group{
		"a": parquetgo.Decimal(2, 20, parquetgo.FixedLenByteArrayType(9)),
		"b": parquetgo.Leaf(parquetgo.Int96Type),
		"c": parquetgo.Decimal(1, 4, parquetgo.ByteArrayType),
		"d": parquetgo.Leaf(float16{parquetgo.FixedLenByteArrayType(2)}),
	})
	var b bytes.Buffer
	w := parquetgo.NewWriter(&b, schema)
	for _, bytes := range [][]byte{{0, 0, 0, 0, 0, 0, 0, 0x01, 0x2c}, {255, 255, 255, 255, 255, 255, 255, 255, 255}} {
		if _, err := w.WriteRows([]parquetgo.Row{{
			parquetgo.FixedLenByteArrayValue(bytes).Level(0, 0, 0),
			parquetgo.Int96Value(deprecated.Int96{1, 0, 2440589}).Level(0, 0, 1),
			parquetgo.ByteArrayValue(bytes[8:]).Level(0, 0, 2),
			parquetgo.FixedLenByteArrayValue([]byte{bytes[8], 0xc1}).Level(0, 0, 3),
		}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := "a,b,c,d\n3.00,1970-01-02T00:00:00.000000001,4.4,-2.5859375\n-0.01,1970-01-02T00:00:00.000000001,-0.1,-2.9980469\n"
	if text, err := read(t, b.Bytes()); err != nil || text != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
}
