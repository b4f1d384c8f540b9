package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
)

// entry makes a kernel of two pointers, x (%rd1) and y (%rd2), with an array of 64
// words in shared memory. %rd4 and %rd5 are x and y at the thread's element, %rd3
// the bytes before that, %r3 the thread in the grid and %r1 in the block.
func entry(body string) string {
	return `.version 8.5
.visible .entry k(
	.param .u64 k_param_0,
	.param .u64 k_param_1
)
{
	.reg .b64 	%rd<9>;
	.shared .align 16 .b8 s[256];
	ld.param.u64 	%rd1, [k_param_0];
	ld.param.u64 	%rd2, [k_param_1];
	mov.u32 	%r1, %tid.x;
	mov.u32 	%r2, %ctaid.x;
	mov.u32 	%r9, %ntid.x;
	mad.lo.s32 	%r3, %r2, %r9, %r1;
	mul.wide.s32 	%rd3, %r3, 4;
	add.s64 	%rd4, %rd1, %rd3;
	add.s64 	%rd5, %rd2, %rd3;
	mov.u32 	%r8, s;
	shl.b32 	%r7, %r1, 2;
	add.s32 	%r7, %r8, %r7;
` + body + `
	ret;
}
`
}

const at = 1 << 40

// run launches two blocks of 64 threads on 256 known words x = 0, 1, … and as many
// unknown y.
func run(body string) (y []uint32, cycles int64, err error) {
	mod, err := Parse(entry(body))
	if err != nil {
		return nil, 0, err
	}
	x, out := make([]byte, 1024), make([]byte, 1024)
	for k := range 256 {
		binary.LittleEndian.PutUint32(x[4*k:], uint32(k))
	}
	m := &Machine{Memory: new(Memory)}
	m.Memory.Add(at, x)
	m.Memory.Add(at+4096, out)
	if err := m.Memory.Mark(at, len(x), true); err != nil {
		return nil, 0, err
	}
	took, err := m.Run(mod, "k", [3]uint32{2, 1, 1}, [3]uint32{64, 1, 1}, []uint64{at, at + 4096})
	if err == nil {
		cycles = took[1]
	}
	for k := range 256 {
		y = append(y, binary.LittleEndian.Uint32(out[4*k:]))
	}
	return y, cycles, err
}

func TestFaults(t *testing.T) {
	const first = "setp.ne.s32 %p1, %r1, 0;\n" // of the block
	for name, c := range map[string]struct{ body, want string }{
		"copy":                   {"ld.global.u32 %r4, [%rd4];\n st.global.u32 [%rd5], %r4;", ""},
		"copy through the cache": {"ld.global.nc.u32 %r4, [%rd4];\n st.global.u32 [%rd5], %r4;", ""},
		"in place":               {"ld.global.u32 %r4, [%rd4];\n st.global.u32 [%rd4], %r4;", ""},
		"in place, restricted":   {"ld.global.nc.u32 %r4, [%rd4];\n st.global.u32 [%rd4], %r4;", "has read it through the read-only cache"},
		"written, then cached":   {"st.global.u32 [%rd4], %r1;\n ld.global.nc.u32 %r4, [%rd4];", "the launch has written it"},
		"unwritten":              {"ld.global.u32 %r4, [%rd5];", "was never written"},
		"unwritten, shared":      {"ld.shared.u32 %r4, [%r7];", "was never written"},
		"misaligned":             {"ld.global.v2.u32 {%r4, %r5}, [%rd4+4];", "8 bytes at 0x10000000004, which is not a multiple of their number"},
		"outside":                {"ld.global.u32 %r4, [%rd4+-4];", "not allocated"},
		"outside of shared":      {"st.shared.u32 [%r7+4], %r1;", "byte 256 of 256"},
		"two blocks write":       {"st.global.u32 [%rd1], %r2;", "race: warp 0 has touched it"},
		"another block's":        {first + "@%p1 bra $L1;\n st.global.u32 [%rd1], %r2;\n$L1:", "race: another block has touched it"},
		"another block reads":    {first + "@%p1 bra $L1;\n ld.global.u32 %r4, [%rd1];\n st.global.u32 [%rd4], %r4;\n$L1:", "race: another block"},
		"atomics":                {"atom.global.add.u32 %r4, [%rd1], 1;", ""},
		"no barrier":             {"st.shared.u32 [%r7], %r1;\n xor.b32 %r4, %r7, 252;\n ld.shared.u32 %r5, [%r4];", "was never written"},
		"no second barrier":      {"st.shared.u32 [%r7], %r1;\n bar.sync 0;\n xor.b32 %r4, %r7, 252;\n ld.shared.u32 %r5, [%r4];\n st.shared.u32 [%r7], %r5;", "race: warp"},
		"barriers":               {"st.shared.u32 [%r7], %r1;\n bar.sync 0;\n xor.b32 %r4, %r7, 252;\n ld.shared.u32 %r5, [%r4];\n bar.sync 0;\n st.shared.u32 [%r7], %r5;", ""},
		"a part at a barrier":    {first + "@%p1 bar.sync 0;", "divergence: threads 0xfffffffe"},
		"a warp at a barrier":    {"setp.lt.s32 %p1, %r1, 32;\n@%p1 bra $L1;\n bar.sync 0;\n$L1:", "divergence: 1 of 2 warps"},
		"a part shuffles":        {first + "@%p1 shfl.sync.bfly.b32 %r4|%p2, %r1, 1, 31, -1;", "a shuffle of threads 0xfffffffe"},
		"a part votes":           {first + "@%p1 vote.sync.ballot.b32 %r4, %p1, -1;", "a vote of threads 0xfffffffe"},
	} {
		_, _, err := run(c.body)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: the error is %v, want %q", name, err, c.want)
		}
	}
	for body, want := range map[string]string{
		"frob.u32 %r4, %r1;":                  `"frob.u32 %r4, %r1": the instruction is not known`,
		"bra $L9;":                            "no label $L9",
		"atom.global.min.u32 %r4, [%rd1], 1;": "min.u32 is not known",
	} {
		if _, _, err := run(body); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, want %q", body, err, want)
		}
	}
}

// TestPaths: threads that part come together again, and each has what its path gives.
func TestPaths(t *testing.T) {
	y, _, err := run(`
	mov.u32 %r4, 0;
	and.b32 %r5, %r3, 7;
$L1:
	setp.eq.s32 %p1, %r5, 0;
	@%p1 bra $L2;
	add.s32 %r4, %r4, %r5;
	add.s32 %r5, %r5, -1;
	bra.uni $L1;
$L2:
	shfl.sync.idx.b32 %r6|%p2, %r4, 7, 31, -1;
	mad.lo.s32 %r4, %r6, 100, %r4;
	st.global.u32 [%rd5], %r4;`)
	if err != nil {
		t.Fatal(err)
	}
	for k, got := range y[:128] {
		if n := k % 8; got != uint32(2800+n*(n+1)/2) {
			t.Fatalf("thread %d has %d", k, got)
		}
	}
}

// TestLatencies: a chain takes as long as its links, and what does not depend on one
// another, hardly more than the longest.
func TestLatencies(t *testing.T) {
	_, empty, err := run("")
	if err != nil {
		t.Fatal(err)
	}
	chain, beside := "mov.u64 %rd4, %rd1;\n", ""
	for k := range 4 {
		chain += fmt.Sprintf("ld.global.u64 %%rd%d, [%%rd4];\n and.b64 %%rd6, %%rd%d, 0;\n add.s64 %%rd4, %%rd1, %%rd6;\n", 10+k, 10+k)
		beside += fmt.Sprintf("ld.global.u64 %%rd%d, [%%rd1+%d];\n", 10+k, 8*k)
	}
	_, slow, err := run(chain + "setp.eq.s64 %p1, %rd4, 0;\n @%p1 bra $L1;\n$L1:")
	if err != nil {
		t.Fatal(err)
	}
	_, fast, err := run(beside + "setp.eq.s64 %p1, %rd13, 0;\n @%p1 bra $L1;\n$L1:")
	if err != nil {
		t.Fatal(err)
	}
	if a, b := slow-empty, fast-empty; a < 1200 || a > 1300 || b < 300 || b > 340 {
		t.Errorf("four loads after one another take %d cycles, side by side %d", a, b)
	}
}

// TestScalar: what Go does not do by itself.
func TestScalar(t *testing.T) {
	nan := b32(float32(math.NaN()))
	for _, c := range []struct {
		op      string
		a, b, c uint64
		want    uint64
	}{
		{"add.rz.f32", b32(1), b32(0x1p-24 * 1.5), 0, b32(1)},
		{"add.f32", b32(1), b32(0x1p-24 * 1.5), 0, b32(1 + 0x1p-23)},
		{"fma.rm.f32", b32(-1), b32(1), b32(-0x1p-30), b32(math.Nextafter32(-1, -2))},
		{"fma.rn.f32", b32(-1), b32(1), b32(-0x1p-30), b32(-1)},
		{"max.f32", nan, b32(2), 0, b32(2)},
		{"setp.geu.f32", nan, b32(2), 0, 1},
		{"setp.ge.f32", nan, b32(2), 0, 0},
		{"setp.nan.f32", nan, b32(2), 0, 1},
		{"setp.ne.f32", nan, b32(2), 0, 0},
		{"cvt.sat.f32.f32", nan, 0, 0, 0},
		{"cvt.u64.u32", 1<<40 | 5, 0, 0, 1<<40 | 5}, // registers of 32 bits have zeros above
		{"cvt.s64.s32", 0xffffffff, 0, 0, 1<<64 - 1},
		{"cvt.u32.u64", 1<<40 | 5, 0, 0, 5},
		{"cvt.rzi.u64.f64", b64(-3), 0, 0, 0},
		{"shl.b32", 1, 32, 0, 0},
		{"shr.s32", 0x80000000, 40, 0, 0xffffffff},
		{"div.s32", 0xfffffff9, 2, 0, 0xfffffffd}, // -7/2 = -3
		{"rem.s32", 0xfffffff9, 2, 0, 0xffffffff},
		{"bfind.shiftamt.u32", 1, 0, 0, 31},
		{"brev.b32", 1, 0, 0, 0x80000000},
		{"mul.wide.s32", 0xffffffff, 3, 0, 1<<64 - 3},
	} {
		if got := scalar(strings.Split(c.op, "."))(c.a, c.b, c.c); got != c.want {
			t.Errorf("%s %#x %#x %#x is %#x, want %#x", c.op, c.a, c.b, c.c, got, c.want)
		}
	}
}
