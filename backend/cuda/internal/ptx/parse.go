// Package ptx interprets the compiled kernels: NVIDIA's portable assembly language, as far
// as kernels.cu uses it. It is for tests on machines without a GPU, and reports what a
// device would pass over in silence:
//
//   - a read of memory, shared or global, that was never written,
//   - an address outside the allocated memory, or not a multiple of the width of the
//     access,
//   - two warps, of one block or of two, that touch a word which one of them
//     writes, with no barrier between (atomics aside). So blocks need not run in
//     several orders to show that the order matters,
//   - a load through the read-only cache, which __restrict__ allows, of a word
//     that the launch writes,
//   - a shuffle or a vote by a part of a warp, a barrier for a part of a block,
//   - a block of more threads than the kernel is compiled for.
//
// Every instruction has a latency, so a run also estimates the time of the slowest block,
// as far as chains of dependent instructions and the four schedulers of a multiprocessor
// determine it: see [Machine.Run].
//
// The language is described in NVIDIA's "Parallel Thread Execution ISA".
package ptx

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Module is parsed PTX.
type Module struct{ kernels map[string]*kernel }

// kernel is the code of an entry, with the functions that it calls inlined.
type kernel struct {
	name   string
	params []string
	code   []instr
	names  map[string]int32 // registers
	consts []vector         // operand -1-k is consts[k]
	shared map[string]int   // offset of an array in the block's shared memory
	bytes  int              // of shared memory
	bound  int              // the largest number of threads of a block
}

// vector has a register's value in each lane of a warp.
type vector [lanes]uint64

const lanes = 32

type kind uint8

const (
	compute kind = iota
	load
	store
	atomicAdd
	shuffle
	ballot
	branch
	barrier
	exit
)

type space uint8

const (
	generic space = iota
	global
	readOnly // global, through the read-only cache
	shared
)

// instr is an instruction. Operands are registers, or constants if negative.
type instr struct {
	kind    kind
	space   space
	negate  bool  // the predicate
	pred    int32 // noReg without
	dst     []int32
	src     []int32
	f       func(a, b, c uint64) uint64 // of compute
	param   int                         // of compute, the parameter that it reads; or -1
	offset  uint64                      // of an address
	size    int                         // bytes of an element that moves
	target  int                         // of a branch
	mode    string                      // of a shuffle
	latency int64
	text    string
}

const noReg = 1 << 30

var (
	braces   = regexp.MustCompile(`(?m)^\s*[{}]\s*$`)
	comments = regexp.MustCompile(`//[^\n]*`)
	entries  = regexp.MustCompile(
		`(?m)^(?:\.visible )?\.(entry|func)\s+(?:\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)([^;{]*)([;{])`,
	)
	paramRE  = regexp.MustCompile(`\.param\s+\.\w+\s+([\w$]+)`)
	sharedRE = regexp.MustCompile(
		`\.shared\s+\.align\s+(\d+)\s+\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?`,
	)
	boundRE = regexp.MustCompile(`\.maxntid (\d+)`)
	labelRE = regexp.MustCompile(`^([$\w]+):\s*`)
	callRE  = regexp.MustCompile(
		`^call\.uni\s+\((\w+)\)\s*,\s*(\w+)\s*,\s*\(([^)]*)\)$`,
	)
	address = regexp.MustCompile(`^\[([%\w$.]+)(?:\+(-?\d+))?\]$`)
)

// sizes maps a type to its bytes.
var sizes = map[string]int{
	"b8":  1,
	"b32": 4,
	"u32": 4,
	"s32": 4,
	"f32": 4,
	"b64": 8,
	"u64": 8,
	"s64": 8,
	"f64": 8,
}

// source is the text of an entry or of a function.
type source struct {
	kind, body string
	params     []string
	bound      int // threads of a block
}

// Parse reads PTX.
func Parse(text string) (*Module, error) {
	text = comments.ReplaceAllString(text, "")
	functions, shared := split(text)
	if len(functions) == 0 {
		return nil, fmt.Errorf("ptx: no kernels")
	}
	m := &Module{kernels: map[string]*kernel{}}
	for name, fn := range functions {
		if fn.kind != "entry" {
			continue
		}
		k, err := compile(name, fn, functions, shared)
		if err != nil {
			return nil, fmt.Errorf("ptx: %s: %w", name, err)
		}
		m.kernels[name] = k
	}
	return m, nil
}

// split returns the entries and functions of text by name, and the bytes of the arrays in
// shared memory that are declared outside functions.
func split(text string) (functions map[string]source, shared map[string]int) {
	functions = map[string]source{}
	shared = map[string]int{}
	found := entries.FindAllStringSubmatchIndex(text, -1)
	end := 0 // of the function before
	for k, f := range found {
		group := func(n int) string {
			return text[f[2*n]:f[2*n+1]]
		}
		start := f[1]
		arrays(text[end:f[0]], shared)
		if group(5) == ";" { // a declaration
			end = start
			continue
		}
		end = len(text)
		if k+1 < len(found) {
			end = found[k+1][0]
		}
		if brace := strings.Index(text[start:end], "\n}\n"); brace >= 0 {
			end = start + brace
		}
		fn := source{kind: group(1), body: text[start:end], bound: 1024}
		if b := boundRE.FindStringSubmatch(group(4)); b != nil {
			fn.bound, _ = strconv.Atoi(b[1])
		}
		for _, p := range paramRE.FindAllStringSubmatch(group(3), -1) {
			fn.params = append(fn.params, p[1])
		}
		functions[group(2)] = fn
	}
	return functions, shared
}

// compile returns the code of an entry, with the functions that it calls inlined.
func compile(
	name string,
	entry source,
	functions map[string]source,
	shared map[string]int,
) (*kernel, error) {
	k := &kernel{
		name:   name,
		params: entry.params,
		bound:  entry.bound,
		names:  map[string]int32{},
		shared: map[string]int{},
	}
	// Lay out the arrays in shared memory, in the order of their names.
	used := map[string]int{}
	arrays(entry.body, used)
	for array, bytes := range shared {
		if strings.Contains(entry.body, array) {
			used[array] = bytes
		}
	}
	for _, array := range sorted(used) {
		k.shared[array] = k.bytes
		k.bytes += (used[array] + 15) &^ 15
	}
	// Read the code. A call reads the function in its place, with registers of its own.
	calls := 0
	var read func(body, prefix string, params map[string]int32) error
	read = func(body, prefix string, params map[string]int32) error {
		p := &reader{
			k:      k,
			prefix: prefix,
			params: params,
			labels: map[string]int{},
		}
		return p.read(body, func(result, callee, args string) error {
			fn, ok := functions[callee]
			if !ok {
				return fmt.Errorf("call of %s, which is not defined", callee)
			}
			calls++
			passed := map[string]int32{"func_retval0": p.reg(result)}
			for i, a := range strings.Split(args, ",") {
				passed[fn.params[i]] = p.reg(strings.TrimSpace(a))
			}
			return read(fn.body, fmt.Sprintf("%s%d.", prefix, calls), passed)
		})
	}
	return k, read(entry.body, "", nil)
}

func sorted[V any](m map[string]V) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// arrays adds to bytes the sizes of the arrays in shared memory that text declares.
func arrays(text string, bytes map[string]int) {
	for _, a := range sharedRE.FindAllStringSubmatch(text, -1) {
		n := 1
		if a[4] != "" {
			n, _ = strconv.Atoi(a[4])
		}
		bytes[a[3]] = n * sizes[a[2]]
	}
}

// reader appends the code of a function to a kernel.
type reader struct {
	k      *kernel
	prefix string           // of the registers, which keeps them apart from the caller's
	params map[string]int32 // registers of the caller; nil for an entry
	labels map[string]int
}

// read appends the code of a body. It hands calls to call.
func (p *reader) read(
	body string, call func(result, callee, args string) error,
) error {
	body = braces.ReplaceAllString(body, "")
	branches := map[int]string{}
	var returns []int
	for _, s := range strings.Split(body, ";") {
		s = strings.Join(strings.Fields(s), " ")
		for {
			l := labelRE.FindStringSubmatch(s)
			if l == nil {
				break
			}
			p.labels[l[1]] = len(p.k.code)
			s = s[len(l[0]):]
		}
		if s == "" || s == "}" || s[0] == '.' {
			continue
		}
		if c := callRE.FindStringSubmatch(s); c != nil {
			if err := call(c[1], c[2], c[3]); err != nil {
				return err
			}
			continue
		}
		ins, label, err := p.instruction(s)
		if err != nil {
			return fmt.Errorf("%q: %w", s, err)
		}
		if label != "" {
			branches[len(p.k.code)] = label
		}
		if ins.kind == exit && p.params != nil {
			ins.kind = branch
			returns = append(returns, len(p.k.code))
		}
		p.k.code = append(p.k.code, ins)
	}
	// Resolve the labels. A return from a function goes to the end of its code.
	for pc, label := range branches {
		target, ok := p.labels[label]
		if !ok {
			return fmt.Errorf("no label %s", label)
		}
		p.k.code[pc].target = target
	}
	for _, pc := range returns {
		p.k.code[pc].target = len(p.k.code)
	}
	return nil
}

// operands splits s at the commas that are not within braces or brackets.
func operands(s string) []string {
	var out []string
	depth := 0
	start := 0
	for i, c := range s {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[start:i]))
				start = i + 1
			}
		}
	}
	if tail := strings.TrimSpace(s[start:]); tail != "" {
		out = append(out, tail)
	}
	return out
}

// parts returns the elements of a vector operand, or s itself.
func parts(s string) []string {
	if strings.HasPrefix(s, "{") {
		return operands(strings.Trim(s, "{}"))
	}
	return []string{s}
}

// reg returns the number of a register.
func (p *reader) reg(name string) int32 {
	if !strings.Contains(name, ".") { // unlike special registers such as %tid.x
		name = p.prefix + name
	}
	r, ok := p.k.names[name]
	if !ok {
		r = int32(len(p.k.names))
		p.k.names[name] = r
	}
	return r
}

// constant returns the operand for v in all lanes.
func (p *reader) constant(v uint64) int32 {
	var x vector
	for l := range x {
		x[l] = v
	}
	p.k.consts = append(p.k.consts, x)
	return int32(-len(p.k.consts))
}

// operand returns the operand for a register, a number, or the address of an array in
// shared memory. A negative number has the given width in bytes.
func (p *reader) operand(s string, bytes int) (int32, error) {
	if offset, ok := p.k.shared[s]; ok {
		return p.constant(sharedBase + uint64(offset)), nil
	}
	digits := s
	base := 10
	lower := strings.ToLower(s)
	switch {
	case s[0] == '%':
		return p.reg(s), nil
	case strings.HasPrefix(lower, "0f"), strings.HasPrefix(lower, "0d"): // bits of a float or a double
		digits = s[2:]
		base = 16
	case s[0] == '-':
		v, err := strconv.ParseInt(s, 10, 64)
		if bytes == 4 {
			v &= 0xffffffff
		}
		return p.constant(uint64(v)), err
	}
	v, err := strconv.ParseUint(digits, base, 64)
	return p.constant(v), err
}

// decoder decodes the operands of one instruction. It keeps the first error.
type decoder struct {
	p   *reader
	ins *instr
	err error
}

func (d *decoder) fail(err error) {
	if d.err == nil {
		d.err = err
	}
}

// regs returns the registers or constants of operands.
func (d *decoder) regs(operands ...string) (list []int32) {
	for _, o := range operands {
		r, err := d.p.operand(o, d.ins.size)
		d.fail(err)
		list = append(list, r)
	}
	return list
}

// place returns the register of an address, and notes its offset.
func (d *decoder) place(s string) int32 {
	a := address.FindStringSubmatch(s)
	if a == nil {
		d.fail(fmt.Errorf("no address in %s", s))
		return 0
	}
	offset, _ := strconv.ParseInt(a[2], 10, 64)
	d.ins.offset = uint64(offset)
	return d.regs(a[1])[0]
}

// instruction decodes an instruction. It returns the label that a branch goes to.
func (p *reader) instruction(s string) (ins instr, label string, err error) {
	ins = instr{pred: noReg, param: -1, text: s}
	if s[0] == '@' {
		guard, guarded, _ := strings.Cut(s, " ")
		ins.negate = strings.HasPrefix(guard, "@!")
		ins.pred = p.reg(strings.TrimLeft(guard, "@!"))
		s = guarded
	}
	name, operandList, _ := strings.Cut(s, " ")
	op := strings.Split(name, ".")
	args := operands(operandList)
	ins.size = sizes[op[len(op)-1]]
	ins.latency = latency(op)
	ins.space = spaceOf(op)
	d := &decoder{p: p, ins: &ins}
	switch op[0] {
	case "bra":
		ins.kind = branch
		label = args[0]
	case "ret", "exit":
		ins.kind = exit
	case "bar":
		ins.kind = barrier
	case "ld", "st":
		d.move(op, args)
	case "atom":
		ins.kind = atomicAdd
		ins.dst = d.regs(args[0])
		ins.src = append([]int32{d.place(args[1])}, d.regs(args[2])...)
		if name := strings.Join(op[2:], "."); name != "add.u32" {
			d.fail(fmt.Errorf("%s is not known", name))
		}
	case "shfl":
		ins.kind = shuffle
		ins.mode = op[2]
		ins.dst = d.regs(strings.Split(args[0], "|")...)
		ins.src = d.regs(args[1:]...)
	case "vote":
		ins.kind = ballot
		ins.dst = d.regs(args[0])
		ins.src = d.regs(args[1:]...)
	case "mov":
		d.copy(args)
	default:
		ins.f = scalar(op)
		if ins.f == nil {
			return ins, label, fmt.Errorf("the instruction is not known")
		}
		ins.dst = d.regs(args[0])
		for i, a := range args[1:] {
			r, err := p.operand(a, operandSize(op, i))
			d.fail(err)
			ins.src = append(ins.src, r)
		}
	}
	return ins, label, d.err
}

// copy decodes a mov, which may also join two halves of a word or split it into them.
func (d *decoder) copy(args []string) {
	ins := d.ins
	halves := parts(args[1])
	ins.f = move
	if len(halves) == 2 {
		ins.f = func(a, b, _ uint64) uint64 {
			return b<<32 | a&0xffffffff
		}
	}
	ins.dst = d.regs(parts(args[0])...)
	ins.src = d.regs(halves...)
}

// spaceOf returns the memory that an instruction touches.
func spaceOf(op []string) space {
	switch {
	case slices.Contains(op, "global") && slices.Contains(op, "nc"):
		return readOnly
	case slices.Contains(op, "global"):
		return global
	case slices.Contains(op, "shared"):
		return shared
	}
	return generic
}

// move decodes a load or a store. Those of parameters become moves between registers.
func (d *decoder) move(op, args []string) {
	ins := d.ins
	if !slices.Contains(op, "param") {
		if op[0] == "ld" {
			ins.kind = load
			ins.dst = d.regs(parts(args[0])...)
			ins.src = []int32{d.place(args[1])}
		} else {
			ins.kind = store
			ins.src = append(
				[]int32{d.place(args[0])}, d.regs(parts(args[1])...)...,
			)
		}
		return
	}
	ins.f = move
	if op[0] == "st" {
		name := address.FindStringSubmatch(args[0])[1]
		ins.dst = []int32{d.p.passed(name)}
		ins.src = d.regs(args[1])
		return
	}
	name := address.FindStringSubmatch(args[1])[1]
	ins.dst = d.regs(args[0])
	if k := slices.Index(d.p.k.params, name); k >= 0 {
		ins.param = k
	} else {
		ins.src = []int32{d.p.passed(name)}
	}
}

// passed returns the register that stands for a parameter of a call.
func (p *reader) passed(name string) int32 {
	if r, ok := p.params[name]; ok {
		return r
	}
	return p.reg(name)
}
