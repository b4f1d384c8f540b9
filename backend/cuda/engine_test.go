package cuda

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/specmatch/specmatch/backend"
	graphs "github.com/specmatch/specmatch/gnn/graph"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

// ledger is a driver that computes nothing and keeps books: it holds the engine
// to what a device does not forgive. Device memory is made of numbers only.
type ledger struct {
	t         *testing.T
	next      pointer
	memory    map[pointer]int
	limit     int // bytes of device memory
	host      map[*byte]int
	events    map[event]int // where the stream was at the last record
	stream    int           // calls so far
	done      int           // calls that the device is known to have done
	busy      []transfer    // copies that may not be done
	arriving  []transfer    // copies that the stream does not wait for
	moving    []transfer    // on the device
	recording bool
	calls     []string // of the stream, in order
	graphs    int
	fail      string // the call that fails
}

// transfer is a copy, with the host memory that it reads or writes, or, on the device,
// the memory of a copy beside the stream.
type transfer struct {
	at     int // in the stream
	lo, hi uintptr
}

func (a transfer) overlaps(b transfer) bool { return a.lo < b.hi && b.lo < a.hi }

func newLedger(t *testing.T) *ledger {
	return &ledger{t: t, next: 1 << 40, memory: map[pointer]int{}, limit: 1 << 40, host: map[*byte]int{}, events: map[event]int{}}
}

func (d *ledger) name() string { return "ledger" }

// outside reports a call that must not be made while recording.
func (d *ledger) outside(call string) {
	d.t.Helper()
	if d.recording {
		d.t.Errorf("%s while recording", call)
	}
}

func (d *ledger) alloc(bytes int) (pointer, error) {
	d.outside("alloc")
	if d.limit -= bytes; d.limit < 0 {
		return 0, errors.New("no memory")
	}
	p := d.next
	d.next += pointer(bytes) + 1<<20
	d.memory[p] = bytes
	return p, nil
}

// idle reports memory that is given back while the stream may still use it.
func (d *ledger) idle(call string) {
	d.t.Helper()
	if d.done < d.stream {
		d.t.Errorf("%s after %d calls of the stream, of which %d are done", call, d.stream, d.done)
	}
}

func (d *ledger) free(p pointer) error {
	d.outside("free")
	d.idle("free")
	if _, ok := d.memory[p]; !ok {
		d.t.Errorf("free of %#x, which is not allocated", p)
	}
	delete(d.memory, p)
	return nil
}

func (d *ledger) pinned(bytes int) ([]byte, error) {
	d.outside("pinned")
	mem := make([]byte, bytes)
	d.host[unsafe.SliceData(mem)] = bytes
	return mem, nil
}

func (d *ledger) freePinned(mem []byte) error {
	d.outside("freePinned")
	d.idle("freePinned")
	p := unsafe.SliceData(mem)
	if _, ok := d.host[p]; !ok {
		d.t.Error("freePinned of other memory")
	}
	delete(d.host, p)
	return nil
}

// inside checks that n bytes at p are allocated.
func (d *ledger) inside(call string, p pointer, n int) {
	d.t.Helper()
	for at, size := range d.memory {
		if at <= p && p+pointer(n) <= at+pointer(size) {
			return
		}
	}
	d.t.Errorf("%s of %d bytes at %#x, which is not allocated", call, n, p)
}

// copying books a copy from or to host memory, in the stream at so many calls.
func (d *ledger) copying(call string, mem []byte, host bool, at int) {
	d.t.Helper()
	lo := uintptr(unsafe.Pointer(unsafe.SliceData(mem)))
	now := transfer{at, lo, lo + uintptr(len(mem))}
	found := false
	for p, n := range d.host {
		at := uintptr(unsafe.Pointer(p))
		found = found || at <= lo && lo+uintptr(len(mem)) <= at+uintptr(n)
	}
	if !found {
		d.t.Errorf("%s with memory that is not pinned", call)
	}
	for _, b := range d.busy {
		if host && b.at >= d.done && b.overlaps(now) {
			d.t.Errorf("%s: the host wrote what call %d of the stream may still be copying (%d are done)", call, b.at, d.done)
		}
	}
	d.busy = append(d.busy, now)
}

func (d *ledger) put(call string) {
	d.calls = append(d.calls, call)
	d.stream++
}

func (d *ledger) copyIn(dst pointer, src []byte) error {
	d.outside("copyIn")
	d.inside("copyIn", dst, len(src))
	now := transfer{math.MaxInt, uintptr(dst), uintptr(dst) + uintptr(len(src))} // at once, or late
	for _, m := range d.moving {
		if m.at >= d.done && m.overlaps(now) {
			d.t.Errorf("copyIn over what call %d of the stream may not have moved away (%d are done)", m.at, d.done)
		}
	}
	d.copying("copyIn", src, true, math.MaxInt)
	d.arriving = append(d.arriving, now)
	d.calls = append(d.calls, "copyIn")
	return nil
}

func (d *ledger) follow() error {
	d.outside("follow")
	d.arriving = nil
	for k := range d.busy { // when the stream has come here, the copies are done
		d.busy[k].at = min(d.busy[k].at, d.stream)
	}
	d.put("follow")
	return nil
}

func (d *ledger) move(dst, src pointer, bytes int) error {
	d.outside("move")
	d.inside("move", dst, bytes)
	d.inside("move", src, bytes)
	now := transfer{d.stream, uintptr(src), uintptr(src) + uintptr(bytes)}
	for _, a := range d.arriving {
		if a.overlaps(now) {
			d.t.Error("move of what may not have arrived")
		}
	}
	d.moving = append(d.moving, now)
	d.put("move")
	return nil
}

func (d *ledger) copyOut(dst []byte, src pointer) error {
	d.outside("copyOut")
	d.inside("copyOut", src, len(dst))
	d.copying("copyOut", dst, false, d.stream)
	d.put("copyOut")
	return nil
}

func (d *ledger) launch(kernel string, grid, block dims, params []uint64) error {
	if kernel == d.fail {
		return errors.New("it failed")
	}
	if n := block[0] * block[1] * block[2]; n == 0 || n > 1024 || grid[0] == 0 || grid[1] == 0 || grid[1] > 65535 || grid[2] != 1 {
		d.t.Errorf("%s: grid %v, block %v", kernel, grid, block)
	}
	for _, w := range params {
		if w >= 1<<40 && w < uint64(d.next) { // an address
			d.inside(kernel, pointer(w), 1)
		}
	}
	d.put(kernel)
	return nil
}

func (d *ledger) gemm(transA, transB bool, m, n, k int, alpha float64, a pointer, lda int, b pointer, ldb int, beta float64, c pointer) error {
	if m < 1 || n < 1 || k < 1 {
		d.t.Errorf("gemm %d×%d×%d", m, n, k)
	}
	d.inside("gemm", a, 1)
	d.inside("gemm", b, 1)
	d.inside("gemm", c, 1)
	d.put("gemm")
	return nil
}

func (d *ledger) gemmParts(parts, m, n, k int, alpha float64, a, b, c pointer) error {
	return d.gemm(true, false, m, n, parts*k, alpha, a, m, b, n, 0, c)
}

func (d *ledger) round(bool) error { return nil }

func (d *ledger) newEvent() (event, error) {
	d.outside("newEvent")
	e := event(len(d.events) + 1)
	d.events[e] = 0
	return e, nil
}

func (d *ledger) freeEvent(e event) error { delete(d.events, e); return nil }

func (d *ledger) record(e event) error {
	d.outside("record")
	d.events[e] = d.stream
	return nil
}

func (d *ledger) wait(e event) error {
	d.outside("wait")
	d.done = max(d.done, d.events[e])
	return nil
}

func (d *ledger) capture(record func()) (graph, error) {
	d.outside("capture")
	d.recording = true
	defer func() { d.recording = false }()
	at := len(d.calls)
	record()
	g := &ledgerGraph{d, slices.Clone(d.calls[at:])}
	d.calls = d.calls[:at] // recorded, not run
	d.graphs++
	return g, nil
}

type ledgerGraph struct {
	d     *ledger
	calls []string
}

func (g *ledgerGraph) launch() error {
	if g.calls == nil {
		g.d.t.Error("launch of a closed graph")
	}
	for _, c := range g.calls {
		g.d.put(c)
	}
	return nil
}

func (g *ledgerGraph) close() error {
	if g.calls == nil {
		g.d.t.Error("a graph was closed twice")
	}
	g.calls = nil
	g.d.graphs--
	return nil
}

func (d *ledger) close() error {
	d.t.Helper()
	if len(d.memory) > 0 || len(d.host) > 0 || len(d.events) > 0 || d.graphs > 0 {
		d.t.Errorf("not given back: %d pieces of device memory, %d of pinned memory, %d events, %d graphs", len(d.memory), len(d.host), len(d.events), d.graphs)
	}
	return nil
}

func openLedger(t *testing.T, p tensor.Precision) (*engine, *ledger) {
	t.Helper()
	d := newLedger(t)
	e, err := open(d, p)
	if err != nil {
		t.Fatal(err)
	}
	return e, d
}

// batchOf is two views of n rings.
func batchOf(n, nodes int) *graphs.Batch {
	b := new(graphs.Batch)
	for range 2 {
		for range n {
			g := &graphs.Graph{Ptr: []int32{0}, X: graphs.Features{Width: 5}}
			for i := range nodes {
				g.Adj = append(g.Adj, int32((i+1)%nodes))
				g.Ptr = append(g.Ptr, int32(len(g.Adj)))
				g.X.Category = append(g.X.Category, int32(i%5))
			}
			g.Directed = true
			b.Append(g)
		}
		b.EndView()
	}
	return b
}

// TestBooks trains with recorded steps on the ledger: one transfer of indices and
// one replay for each step, the same calls each time, everything given back.
func TestBooks(t *testing.T) {
	e, d := openLedger(t, tensor.Float32)
	rng := rand.New(rand.NewPCG(1, 2))
	m := specmatch.NewGINModel(e, 5, rng)
	tr := specmatch.NewTrainer(e, m, specmatch.Objective{
		Contrast: specmatch.InfoNCE{Tau: 0.2}, Match: specmatch.DefaultLaplacianMatch(), Beta: specmatch.Beta{Weight: 0.1},
	}, 0.01)
	before := e.InUse()
	r, err := specmatch.NewRecorded(tr)
	if err != nil {
		t.Fatal(err)
	}
	var replay []string
	for k := range 40 {
		at := len(d.calls)
		if _, err := r.Step(batchOf(6, 4+k%2)); err != nil {
			t.Fatal(err)
		}
		calls := d.calls[at:]
		if k == 0 {
			continue // uploads, β, the run of the step
		}
		if calls[0] != "copyIn" || slices.Index(calls[1:], "copyOut") != len(calls)-2 {
			t.Fatalf("step %d does not begin with its one upload and end with its one read: %v", k, calls)
		}
		if replay == nil {
			replay = slices.Clone(calls)
			t.Logf("%d calls: %s", len(calls), strings.Join(calls, " "))
		} else if !slices.Equal(calls, replay) {
			t.Fatalf("step %d makes other calls:\n%v\nthan step 1:\n%v", k, calls, replay)
		}
	}
	if _, err := r.Last(); err != nil {
		t.Fatal(err)
	}
	if d.graphs != 1 {
		t.Errorf("%d recordings, want 1 for batches of about one size", d.graphs)
	}
	if _, err := r.Step(batchOf(6, 90)); err != nil || d.graphs != 2 {
		t.Errorf("a batch of another size: %v, %d recordings", err, d.graphs)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if n := e.InUse() - before; n != 0 {
		t.Errorf("%d bytes in use after the recordings were closed", n)
	}
	pieces := len(d.memory)
	for range 20 { // the memory of closed steps is used again
		if r, err = specmatch.NewRecorded(tr); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Step(batchOf(6, 4)); err != nil {
			t.Fatal(err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if len(d.memory) > pieces+1 {
		t.Errorf("twenty recordings more took %d pieces of memory more", len(d.memory)-pieces)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	if err := e.Close(); err != nil {
		t.Error("a second Close:", err)
	}
}

// TestStaging moves more than the staging memory holds, from slots whose last
// copy may not be done.
func TestStaging(t *testing.T) {
	e, d := openLedger(t, tensor.Float64)
	x := e.Alloc(1, 3*stagingBytes/8+5)
	values := make([]float64, x.Len())
	for range 4 {
		e.Upload(x, values)
		e.Upload32(x, make([]float32, x.Len()))
		e.Download(values, x)
	}
	e.Free(x)
	var late []backend.Pending
	x = e.Alloc(4, 8)
	for range 100 {
		e.Upload(x, values[:32])
		late = append(late, e.Fetch(x))
	}
	for _, p := range late {
		p.Values(values[:32])
	}
	for range 300 { // slots are used again
		e.Fetch(x).Values(values[:32])
	}
	if n := len(e.lateAll); n > 100 {
		t.Errorf("%d slots for values read late, want at most 100", n)
	}
	if got := d.stream - d.done; got != 0 {
		t.Errorf("%d calls not waited for", got)
	}
	e.Free(x)
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// TestRefusals: what cannot be recorded, and a device that fails, are errors that
// leave the engine sound.
func TestRefusals(t *testing.T) {
	e, d := openLedger(t, tensor.Float32)
	x, scalar := e.Alloc(3, 3), e.Alloc(1, 1)
	other := e.Indices([]int32{1, 2})
	before := e.InUse()
	runs := 0
	for _, c := range []struct {
		name string
		f    func()
		want string
	}{
		{"Upload", func() { e.Upload(x, make([]float64, 9)) }, "cannot move data"},
		{"Upload32", func() { e.Upload32(x, make([]float32, 9)) }, "cannot move data"},
		{"Download", func() { e.Download(make([]float64, 9), x) }, "cannot move data"},
		{"Fetch", func() { e.Fetch(x) }, "cannot move data"},
		{"Indices", func() { e.Indices([]int32{1}) }, "cannot move data"},
		{"UpdateIndices", func() { e.UpdateIndices([]*backend.Indices{other}, [][]int32{{3, 4}}) }, "cannot move data"},
		{"Capture", func() {
			if _, err := e.Capture(func() {}); err != nil {
				panic(err)
			}
		}, "another step is being recorded"},
		{"memory that grows", func() {
			runs++
			e.Free(e.Alloc(1, 1<<(20+2*runs)))
		}, "more memory"},
		{"a table that grows", func() {
			runs++
			ts := slices.Repeat([]*tensor.Tensor{x}, runs)
			e.SquaredNorm(scalar, ts)
		}, "more memory"},
		{"a device that fails", func() {
			e.Fill(x, 1)
			d.fail = "fill"
			e.Fill(x, 1)
		}, "it failed"},
	} {
		runs = 0
		_, err := e.Capture(c.f)
		d.fail = ""
		var failure *backend.Error
		if !errors.As(err, &failure) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s in a recorded step: the error is %v, want one about %q", c.name, err, c.want)
		}
		if d.recording || e.step != nil || e.pool != e.main {
			t.Fatalf("%s left the engine recording", c.name)
		}
	}
	func() {
		defer func() {
			if r := recover(); r != "not ours" {
				t.Errorf("a panic of the step became %v", r)
			}
		}()
		_, _ = e.Capture(func() { panic("not ours") })
	}()
	if e.step != nil || e.pool != e.main {
		t.Error("a panic left the engine recording")
	}
	if n := e.InUse() - before; n > 256 { // of the index vector and the table that could not be filled
		t.Errorf("%d bytes more in use", n)
	}

	step, err := e.Capture(func() { e.Fill(x, 1) })
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(step.Close(), step.Close()); err != nil {
		t.Errorf("Close, twice: %v", err)
	}
	if err := step.Replay(); err == nil || !strings.Contains(err.Error(), "closed") {
		t.Errorf("Replay of a closed step: %v", err)
	}
	expect := func(what, want string, f func()) {
		t.Helper()
		defer func() {
			t.Helper()
			failure, ok := recover().(*backend.Error)
			if !ok || !strings.Contains(failure.Error(), want) {
				t.Errorf("%s: %v, want a *backend.Error about %q", what, failure, want)
			}
		}()
		f()
	}
	e2, _ := openLedger(t, tensor.Float32)
	freed := e.Alloc(2, 2)
	e.Free(freed)
	expect("use after Free", "freed", func() { e.Fill(freed, 1) })
	expect("Free twice", "freed", func() { e.Free(freed) })
	expect("indices of another engine", "another engine", func() { e2.GatherRows(e2.Alloc(2, 3), e2.Alloc(3, 3), other) })
	expect("too many elements", "split the batch", func() { e.Alloc(1<<20, 1<<12) })
	d.limit = 1 << 20
	expect("memory used up", "no memory", func() { e.Alloc(1<<14, 1<<12) })
	e.Fill(x, 1) // goes on
}

// TestOpenFails gives back what it had.
func TestOpenFails(t *testing.T) {
	for _, call := range []string{"pinned", "newEvent"} {
		d := &halfOpen{newLedger(t), call, 2}
		if _, err := open(d, tensor.Float32); err == nil || !strings.Contains(err.Error(), call) {
			t.Errorf("open, with %s failing: %v", call, err)
		}
	}
}

// halfOpen fails at a call after some that succeed.
type halfOpen struct {
	*ledger
	call  string
	calls int
}

func (d *halfOpen) pinned(bytes int) ([]byte, error) {
	if d.call == "pinned" {
		if d.calls--; d.calls < 0 {
			return nil, errors.New("pinned failed")
		}
	}
	return d.ledger.pinned(bytes)
}

func (d *halfOpen) newEvent() (event, error) {
	if d.call == "newEvent" {
		if d.calls--; d.calls < 0 {
			return 0, errors.New("newEvent failed")
		}
	}
	return d.ledger.newEvent()
}

// TestGrids holds what the host decides from shapes: parts of sums, never none
// and never more than there is room for.
func TestGrids(t *testing.T) {
	for _, c := range [][3]int{{0, 0, 1}, {0, 1, 1}, {255, 1, 1}, {256, 1, 2}, {512, 1, 4}, {15300, 2, 59}, {15300, 1024, 1}, {200000, 1, 128}, {math.MaxInt32, 1, 128}} {
		if n := chunks(c[0], c[1]); n != c[2] {
			t.Errorf("chunks(%d, %d) = %d, want %d", c[0], c[1], n, c[2])
		}
	}
	// A grid has 65535 blocks at most in all dimensions but the first.
	e, _ := openLedger(t, tensor.Float32)
	tall, row := e.Alloc(3<<20, 2), e.Alloc(1, 2)
	e.Transpose(e.Alloc(2, 3<<20), tall)
	e.ColSums(row, tall)
}

// TestWork holds the count of the work: operands, products, and that a replay
// counts as the step that it repeats.
func TestWork(t *testing.T) {
	e, d := openLedger(t, tensor.Float32)
	const n, f = 6, 4
	x, y, w, row, one := e.Alloc(n, f), e.Alloc(n, f), e.Alloc(f, f), e.Alloc(1, f), e.Alloc(1, 1)
	square := e.Alloc(n, n)
	a := &backend.CSR{Rows: n, Cols: n, Ptr: e.Indices([]int32{0, 1, 2, 3, 4, 5, 5}), Col: e.Indices([]int32{1, 2, 3, 4, 5})}
	const nf = 4 * n * f
	for name, c := range map[string]struct {
		call func()
		want backend.Work
	}{
		"Fill":         {func() { e.Fill(x, 1) }, backend.Work{Launches: 1, Bytes: nf}},
		"Upload":       {func() { e.Upload(x, make([]float64, n*f)) }, backend.Work{}},
		"nothing":      {func() { e.Fill(e.Alloc(0, 3), 1) }, backend.Work{}},
		"CopyBlock":    {func() { e.CopyBlock(y, 1, 1, x, 0, 0, 2, 3) }, backend.Work{Launches: 1, Bytes: 2 * 4 * 2 * 3}},
		"FillDiagonal": {func() { e.FillDiagonal(square, 1) }, backend.Work{Launches: 1, Bytes: 4 * n}},
		"BinaryRow":    {func() { e.BinaryRow(y, backend.Add, x, row) }, backend.Work{Launches: 1, Bytes: 2*nf + 4*f}},
		"in place":     {func() { e.BinaryRow(x, backend.Add, x, row) }, backend.Work{Launches: 1, Bytes: 2*nf + 4*f}},
		"Gemm":         {func() { e.Gemm(y, false, false, 1, x, w, 0) }, backend.Work{Launches: 1, Bytes: 2*nf + 4*f*f, Flops: 2 * n * f * f}},
		"Gemm, added":  {func() { e.Gemm(y, false, false, 1, x, w, 1) }, backend.Work{Launches: 1, Bytes: 3*nf + 4*f*f, Flops: 2 * n * f * f}},
		"SpMM":         {func() { e.SpMM(y, a, x, 1) }, backend.Work{Launches: 1, Bytes: 2*nf + 4*(n+1) + 4*5}},
		"Adam":         {func() { e.Adam(x, y, x, x, one, one, backend.AdamConfig{}) }, backend.Work{Launches: 1, Bytes: 7*nf + 8}},
		"AdamAll": {func() {
			one := []*tensor.Tensor{one}
			e.AdamAll(one, one, one, one, one[0], one[0], backend.AdamConfig{})
		}, backend.Work{Launches: 1, Bytes: 7*4 + 8*tableWords + 2*4}},
		// A pass reads 15 of 36 elements and the counts of both ranks.
		"UpperPercentile": {func() { e.UpperPercentile(one, nil, square, 50) }, backend.Work{Launches: 6, Bytes: 6*4*2*4*256 + 4*4*15 + 4}},
	} {
		before := e.Work()
		c.call()
		got := e.Work()
		got.Add(-1, before)
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}

	// A narrow GIN layer has its products within a kernel: those of both directions
	// are three times those of the forward pass.
	graph := e.Indices([]int32{0, n})
	l := &backend.GINLayer{
		Adj: a, AdjT: a, Graphs: graph, Views: graph, X: x, W1: w, B1: row, W2: w, B2: row, Gamma: row, Beta: row,
		Mean: row, Var: row, Agg: y, H1: y, H2: y, Sums: row, Pooled: row,
	}
	before := e.Work()
	e.GINForward(l)
	e.GINBackward(l, &backend.GINGradients{DPooled: row, DX: x, W1: w, B1: row, W2: w, B2: row, Gamma: row, Beta: row})
	if got, want := e.Work().Flops-before.Flops, int64(3*2*2*n*f*f); got != want {
		t.Errorf("a GIN layer: %d flops, want %d", got, want)
	}

	before = e.Work()
	step, err := e.Capture(func() {
		e.Gemm(y, false, false, 1, x, w, 0)
		e.SquaredNorm(one, []*tensor.Tensor{x, y})
	})
	if err != nil {
		t.Fatal(err)
	}
	want := e.Work()
	want.Add(-1, before)
	at := len(d.calls)
	before = e.Work()
	for range 3 {
		if err := step.Replay(); err != nil {
			t.Fatal(err)
		}
	}
	got := e.Work()
	got.Add(-1, before)
	launches := len(d.calls) - at
	if got.Launches != launches || got.Launches != 3*want.Launches || got.Bytes != 3*want.Bytes || got.Flops != 3*want.Flops || want.Flops == 0 {
		t.Errorf("three replays of %d launches count as %+v, the step as %+v", launches, got, want)
	}
	if err := step.Close(); err != nil {
		t.Error(err)
	}
}
