// Package ptx interprets the kernels as the compiler left them: NVIDIA's portable
// assembly language, as far as kernels.cu makes use of it. It is for tests, where
// there is no GPU, and is as strict as a device is silent. An error is
//
//   - a read of memory, shared or global, that nobody has written,
//   - an address outside of the memory that was allocated, or not a multiple of
//     the width of the access,
//   - two warps, of one block or of two, that touch a word which one of them
//     writes, with no barrier between (atomics aside): blocks need not run in
//     several orders to show that the order matters,
//   - a load through the read-only cache, which __restrict__ allows, of a word
//     that the launch writes,
//   - a shuffle or a vote of a part of a warp, a barrier of a part of a block,
//   - a block of more threads than the kernel is compiled for.
//
// Every instruction has a latency, so that a run also says how long the slowest
// block takes, as far as a chain of dependent instructions and the four schedulers
// of a multiprocessor explain that: see [Machine.Run].
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

// A Module is PTX that was read.
type Module struct{ kernels map[string]*kernel }

// kernel is the code of an entry, with the functions that it calls in their places.
type kernel struct {
	name   string
	params []string
	code   []instr
	names  map[string]int32 // registers
	consts []vector         // operand -1-k is consts[k]
	shared map[string]int   // where an array lies in the block's shared memory
	bytes  int              // of shared memory
	bound  int              // threads of a block that registers are for
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
	param   int                         // of compute, when it reads a parameter; or -1
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
	entries  = regexp.MustCompile(`(?m)^(?:\.visible )?\.(entry|func)\s+(?:\([^)]*\)\s*)?(\w+)\s*\(([^)]*)\)([^;{]*)([;{])`)
	paramRE  = regexp.MustCompile(`\.param\s+\.\w+\s+([\w$]+)`)
	sharedRE = regexp.MustCompile(`\.shared\s+\.align\s+(\d+)\s+\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?`)
	boundRE  = regexp.MustCompile(`\.maxntid (\d+)`)
	labelRE  = regexp.MustCompile(`^([$\w]+):\s*`)
	callRE   = regexp.MustCompile(`^call\.uni\s+\((\w+)\)\s*,\s*(\w+)\s*,\s*\(([^)]*)\)$`)
	address  = regexp.MustCompile(`^\[([%\w$.]+)(?:\+(-?\d+))?\]$`)
)

var sizes = map[string]int{"b8": 1, "b32": 4, "u32": 4, "s32": 4, "f32": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8}

// Parse reads PTX.
func Parse(text string) (*Module, error) {
	m := &Module{kernels: map[string]*kernel{}}
	text = comments.ReplaceAllString(text, "")
	found := entries.FindAllStringSubmatchIndex(text, -1)
	if len(found) == 0 {
		return nil, fmt.Errorf("ptx: no kernels")
	}
	type source struct {
		kind, body string
		params     []string
		bound      int
	}
	functions := map[string]source{}
	global := map[string]int{} // arrays in shared memory outside of functions
	end := 0
	for k, f := range found {
		arrays(text[end:f[0]], global)
		if text[f[10]:f[11]] == ";" {
			end = f[1]
			continue // a declaration
		}
		end = len(text)
		if k+1 < len(found) {
			end = found[k+1][0]
		}
		if close := strings.Index(text[f[1]:end], "\n}\n"); close >= 0 {
			end = f[1] + close
		}
		name := text[f[4]:f[5]]
		fn := source{kind: text[f[2]:f[3]], body: text[f[1]:end], bound: 1024}
		if b := boundRE.FindStringSubmatch(text[f[8]:f[9]]); b != nil {
			fn.bound, _ = strconv.Atoi(b[1])
		}
		for _, p := range paramRE.FindAllStringSubmatch(text[f[6]:f[7]], -1) {
			fn.params = append(fn.params, p[1])
		}
		functions[name] = fn
	}
	for name, fn := range functions {
		if fn.kind != "entry" {
			continue
		}
		k := &kernel{name: name, params: fn.params, bound: fn.bound, names: map[string]int32{}, shared: map[string]int{}}
		own := map[string]int{}
		arrays(fn.body, own)
		for array, bytes := range global {
			if strings.Contains(fn.body, array) {
				own[array] = bytes
			}
		}
		for _, array := range sorted(own) {
			k.shared[array] = k.bytes
			k.bytes += (own[array] + 15) &^ 15
		}
		calls := 0
		var read func(body, prefix string, params map[string]int32) error
		read = func(body, prefix string, params map[string]int32) error {
			p := &reader{k: k, prefix: prefix, params: params, labels: map[string]int{}}
			return p.read(body, func(result, callee, args string) error {
				fn, ok := functions[callee]
				if !ok {
					return fmt.Errorf("call of %s, which is not there", callee)
				}
				calls++
				given := map[string]int32{"func_retval0": p.reg(result)}
				for i, a := range strings.Split(args, ",") {
					given[fn.params[i]] = p.reg(strings.TrimSpace(a))
				}
				return read(fn.body, fmt.Sprintf("%s%d.", prefix, calls), given)
			})
		}
		if err := read(fn.body, "", nil); err != nil {
			return nil, fmt.Errorf("ptx: %s: %w", name, err)
		}
		m.kernels[name] = k
	}
	return m, nil
}

func sorted[V any](m map[string]V) []string {
	var names []string
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// arrays adds the arrays in shared memory that text declares, with their bytes.
func arrays(text string, to map[string]int) {
	for _, a := range sharedRE.FindAllStringSubmatch(text, -1) {
		n := 1
		if a[4] != "" {
			n, _ = strconv.Atoi(a[4])
		}
		to[a[3]] = n * sizes[a[2]]
	}
}

// reader appends the code of a function to a kernel.
type reader struct {
	k      *kernel
	prefix string           // of the registers, to tell them from the caller's
	params map[string]int32 // registers of the caller; nil for those of the launch
	labels map[string]int
}

func (p *reader) read(body string, call func(result, callee, args string) error) error {
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
		in, label, err := p.instruction(s)
		if err != nil {
			return fmt.Errorf("%q: %w", s, err)
		}
		if label != "" {
			branches[len(p.k.code)] = label
		}
		if in.kind == exit && p.params != nil {
			in.kind = branch
			returns = append(returns, len(p.k.code))
		}
		p.k.code = append(p.k.code, in)
	}
	for at, label := range branches {
		to, ok := p.labels[label]
		if !ok {
			return fmt.Errorf("no label %s", label)
		}
		p.k.code[at].target = to
	}
	for _, at := range returns {
		p.k.code[at].target = len(p.k.code)
	}
	return nil
}

// operands splits at the commas that are not within braces or brackets.
func operands(s string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range s {
		switch c {
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	if last := strings.TrimSpace(s[from:]); last != "" {
		out = append(out, last)
	}
	return out
}

func parts(s string) []string {
	if strings.HasPrefix(s, "{") {
		return operands(strings.Trim(s, "{}"))
	}
	return []string{s}
}

func (p *reader) reg(name string) int32 {
	if !strings.Contains(name, ".") { // not of the machine, as %tid.x
		name = p.prefix + name
	}
	r, ok := p.k.names[name]
	if !ok {
		r = int32(len(p.k.names))
		p.k.names[name] = r
	}
	return r
}

func (p *reader) constant(v uint64) int32 {
	var x vector
	for l := range x {
		x[l] = v
	}
	p.k.consts = append(p.k.consts, x)
	return int32(-len(p.k.consts))
}

// operand is a register, a number, or the address of an array in shared memory.
// Numbers of type kind are bits of so many bytes.
func (p *reader) operand(s string, bytes int) (int32, error) {
	if at, ok := p.k.shared[s]; ok {
		return p.constant(sharedBase + uint64(at)), nil
	}
	digits, base := s, 10
	switch {
	case s[0] == '%':
		return p.reg(s), nil
	case strings.HasPrefix(s, "0f"), strings.HasPrefix(s, "0d"), strings.HasPrefix(s, "0F"), strings.HasPrefix(s, "0D"):
		digits, base = s[2:], 16
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

func (p *reader) instruction(s string) (in instr, label string, err error) {
	in = instr{pred: noReg, param: -1, text: s}
	if s[0] == '@' {
		guard, rest, _ := strings.Cut(s, " ")
		in.negate = strings.HasPrefix(guard, "@!")
		in.pred = p.reg(strings.TrimLeft(guard, "@!"))
		s = rest
	}
	name, rest, _ := strings.Cut(s, " ")
	op, args := strings.Split(name, "."), operands(rest)
	last := op[len(op)-1]
	in.size, in.latency = sizes[last], latency(op)
	regs := func(names ...string) (list []int32) {
		for _, n := range names {
			r, e := p.operand(n, in.size)
			if e != nil {
				err = e
			}
			list = append(list, r)
		}
		return list
	}
	place := func(s string) int32 { // of an address
		a := address.FindStringSubmatch(s)
		if a == nil {
			err = fmt.Errorf("no address in %s", s)
			return 0
		}
		offset, _ := strconv.ParseInt(a[2], 10, 64)
		in.offset = uint64(offset)
		return regs(a[1])[0]
	}
	switch {
	case slices.Contains(op, "global"):
		in.space = global
		if slices.Contains(op, "nc") {
			in.space = readOnly
		}
	case slices.Contains(op, "shared"):
		in.space = shared
	}
	switch op[0] {
	case "bra":
		in.kind, label = branch, args[0]
	case "ret", "exit":
		in.kind = exit
	case "bar":
		in.kind = barrier
	case "ld", "st":
		if slices.Contains(op, "param") {
			in.f = move
			at, value := args[1], args[0]
			if op[0] == "st" {
				at, value = value, at
			}
			a := address.FindStringSubmatch(at)
			switch k := slices.Index(p.k.params, a[1]); {
			case op[0] == "ld" && k >= 0:
				in.dst, in.param = regs(value), k
			case op[0] == "ld":
				in.dst, in.src = regs(value), []int32{p.passed(a[1])}
			default:
				in.dst, in.src = []int32{p.passed(a[1])}, regs(value)
			}
			break
		}
		if op[0] == "ld" {
			in.kind, in.dst, in.src = load, regs(parts(args[0])...), []int32{place(args[1])}
		} else {
			in.kind = store
			in.src = append([]int32{place(args[0])}, regs(parts(args[1])...)...)
		}
	case "atom":
		in.kind, in.dst = atomicAdd, regs(args[0])
		in.src = append([]int32{place(args[1])}, regs(args[2])...)
		if name := strings.Join(op[2:], "."); name != "add.u32" {
			err = fmt.Errorf("%s is not known", name)
		}
	case "shfl":
		in.kind, in.mode = shuffle, op[2]
		d := strings.Split(args[0], "|")
		in.dst, in.src = regs(d...), regs(args[1:]...)
	case "vote":
		in.kind, in.dst, in.src = ballot, regs(args[0]), regs(args[1:]...)
	case "mov":
		in.f = move
		if from, to := parts(args[1]), parts(args[0]); len(from) == 2 {
			in.f = func(a, b, _ uint64) uint64 { return b<<32 | a&0xffffffff }
			in.dst, in.src = regs(to...), regs(from...)
		} else {
			in.dst, in.src = regs(to...), regs(from...)
		}
	default:
		if in.f = scalar(op); in.f == nil {
			err = fmt.Errorf("the instruction is not known")
			return in, label, err
		}
		in.dst, in.src = regs(args[0]), nil
		for i, a := range args[1:] {
			r, e := p.operand(a, operandSize(op, i))
			if e != nil {
				err = e
			}
			in.src = append(in.src, r)
		}
	}
	return in, label, err
}

// passed is the register that stands for a parameter of a call.
func (p *reader) passed(name string) int32 {
	if r, ok := p.params[name]; ok {
		return r
	}
	return p.reg(name)
}
