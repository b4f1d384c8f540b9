// Command gen writes the assembly of package simd: one file for every
// instruction set and family of kernels, and the Go declarations that belong to
// them. Run it with go generate; a test compares its output with the files in
// the repository.
//
// Small functions, one for every family, write the files for an instruction set
// ([isa]) and an element type ([elem]). The members of a family differ only in register
// numbers, the vector width and the mnemonics' suffix, so nobody writes them by hand.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"go/format"
	"log"
	"os"
	"path/filepath"
	"strings"
)

type isa struct {
	name  string // suffix of function names
	file  string // part of file names
	reg   string // prefix of vector registers
	bytes int    // of a vector register
	mr    int    // rows of the largest GEMM tile: mr·2 accumulators, 2 of B, 2 temporaries
}

var (
	avx512 = isa{
		name:  "AVX512",
		file:  "avx512",
		reg:   "Z",
		bytes: 64,
		mr:    14,
	}
	avx2 = isa{
		name:  "AVX2",
		file:  "avx2",
		reg:   "Y",
		bytes: 32,
		mr:    6,
	}
)

// v names vector register i.
func (s isa) v(i int) string {
	return fmt.Sprintf("%s%d", s.reg, i)
}

type elem struct {
	prefix string // of function names, as in BLAS
	ps, ss string // suffix of packed and scalar mnemonics
	size   int
}

var (
	single = elem{
		prefix: "s",
		ps:     "PS",
		ss:     "SS",
		size:   4,
	}
	double = elem{
		prefix: "d",
		ps:     "PD",
		ss:     "SD",
		size:   8,
	}
	pair = elem{ // of bfloat16, in inputs; sums are single
		prefix: "b",
		ps:     "PS",
		ss:     "SS",
		size:   4,
	}
)

// out collects the text of one assembly file and the declarations of its
// functions.
type out struct {
	bytes.Buffer
	isa        isa
	decls      []string
	label      int
	consts     map[string]uint32
	constNames []string // in order of first use
}

// p writes one instruction, or a label if it ends in a colon.
func (o *out) p(format string, args ...any) {
	s := fmt.Sprintf(format, args...)
	if !strings.HasSuffix(s, ":") && !strings.HasPrefix(s, "//") &&
		!strings.HasPrefix(s, "TEXT") && s != "" {
		o.WriteByte('\t')
	}
	o.WriteString(s)
	o.WriteByte('\n')
}

// vec writes an instruction on vector registers, which are given by their numbers.
func (o *out) vec(mnemonic string, registers ...int) {
	names := make([]string, len(registers))
	for i, r := range registers {
		names[i] = o.isa.v(r)
	}
	o.p("%s %s", mnemonic, strings.Join(names, ", "))
}

// mark writes a label.
func (o *out) mark(label string) {
	o.p("%s:", label)
}

// arm64 reports whether the file is for arm64.
func (o *out) arm64() bool {
	return o.isa.reg == "V"
}

// pick returns the text for the file's architecture.
func (o *out) pick(amd64, arm64 string) string {
	if o.arm64() {
		return arm64
	}
	return amd64
}

// get loads words: pairs of an operand in memory and a register.
func (o *out) get(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		o.p("%s %s, %s", o.pick("MOVQ", "MOVD"), pairs[i], pairs[i+1])
	}
}

// fields loads fields of a function's one argument, of the type named, whose address is
// in DI or R0: pairs of a field and a register.
func (o *out) fields(typ string, pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		o.get(fmt.Sprintf("%s_%s(%s)", typ, pairs[i], o.pick("DI", "R0")), pairs[i+1])
	}
}

// add writes dst += x, a register or a constant.
func (o *out) add(x any, dst string) {
	if n, ok := x.(int); ok {
		x = fmt.Sprintf("$%d", n)
	}
	o.p("%s %s, %s", o.pick("ADDQ", "ADD"), x, dst)
}

// take writes reg -= n and a jump that depends on how reg then compares with 0.
func (o *out) take(n int, reg, cond, to string) {
	switch {
	case o.arm64():
		o.p("SUBS $%d, %s", n, reg)
	case n == 1:
		o.p("DECQ %s", reg)
	default:
		o.p("SUBQ $%d, %s", n, reg)
	}
	o.p("%s%s %s", o.pick("J", "B"), cond, to)
}

// load writes v = the vector at mem. If masked, lanes outside the mask, K1 or Y15,
// become 0. ps is the mnemonics' suffix.
func (o *out) load(ps, mem, v string, masked bool) {
	switch {
	case !masked:
		o.p("VMOVU%s %s, %s", ps, mem, v)
	case o.isa.reg == "Z":
		o.p("VMOVU%s.Z %s, K1, %s", ps, mem, v)
	default:
		o.p("VMASKMOV%s %s, Y15, %s", ps, mem, v)
	}
}

// store writes v to mem; if masked, only the lanes of the mask.
func (o *out) store(ps, v, mem string, masked bool) {
	switch {
	case !masked:
		o.p("VMOVU%s %s, %s", ps, v, mem)
	case o.isa.reg == "Z":
		o.p("VMOVU%s %s, K1, %s", ps, v, mem)
	default:
		o.p("VMASKMOV%s %s, Y15, %s", ps, v, mem)
	}
}

// fn starts a function. sig is its Go signature without func and name; frame
// is the size of its arguments in bytes.
func (o *out) fn(doc, name, sig string, frame int) {
	o.p("")
	for _, line := range strings.Split(strings.TrimSpace(doc), "\n") {
		o.p("// %s", line)
	}
	o.p("TEXT ·%s(SB), NOSPLIT, $0-%d", name, frame)
	o.decls = append(o.decls, fmt.Sprintf("//go:noescape\nfunc %s%s\n",
		name, sig))
}

// l returns a label that is unique in this file.
func (o *out) l(stem string) string {
	o.label++
	return fmt.Sprintf("%s%d", stem, o.label)
}

const (
	generated = "// Code generated by go run ./gen; DO NOT EDIT.\n\n"
	amd64Tag  = "//go:build amd64 && !noasm\n\n"
	arm64Tag  = "//go:build arm64 && !noasm\n\n"
	includes  = "#include \"textflag.h\"\n#include \"go_asm.h\"\n"
)

// family is a file of kernels of one instruction set. write writes it and
// returns the Go tables that list its functions.
type family struct {
	name  string
	write func(o *out) string
}

// families returns the files of an instruction set.
func families(s isa) []family {
	if s.reg == "V" {
		return []family{
			{"gemm", gemmFile},
			{"vec", vecFile},
			{"strip", stripFile},
		}
	}
	return []family{
		{"gemm", gemmFile},
		{"vec", vecFile},
		{"strip", stripFile},
		{"smo", smoFile},
	}
}

// files returns the text of every generated file by its name.
func files() map[string][]byte {
	m := map[string][]byte{}
	amd64, arm64, noasm := dispatch()
	m["stubs_noasm.go"] = []byte(generated +
		"//go:build (!amd64 && !arm64) || noasm\n\n" +
		"package simd\n" +
		noasm)
	for _, arch := range []struct {
		name, tag string
		isas      []isa
		dispatch  string
	}{
		{"amd64", amd64Tag, []isa{avx512, avx2}, amd64},
		{"arm64", arm64Tag, []isa{neon}, arm64},
	} {
		stubs := bytes.NewBufferString(generated + arch.tag + "package simd\n")
		for _, s := range arch.isas {
			for _, f := range families(s) {
				o := &out{isa: s}
				o.WriteString(generated + arch.tag + includes)
				table := f.write(o)
				m[f.name+"_"+s.file+"_"+arch.name+".s"] = o.Bytes()
				for _, d := range o.decls {
					fmt.Fprintf(stubs, "\n%s", d)
				}
				stubs.WriteString(table)
			}
		}
		stubs.WriteString(arch.dispatch)
		m["stubs_"+arch.name+".go"] = stubs.Bytes()
	}
	for name, text := range m {
		if strings.HasSuffix(name, ".go") {
			text, err := format.Source(text)
			if err != nil {
				log.Fatalf("%s: %v", name, err)
			}
			m[name] = text
		}
	}
	return m
}

func main() {
	log.SetFlags(0)
	dir := flag.String("dir", ".", "write the files into this directory")
	flag.Parse()
	for name, text := range files() {
		path := filepath.Join(*dir, name)
		if err := os.WriteFile(path, text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}
