//go:build cuda && linux && amd64 && cgo

package cuda

// #cgo CFLAGS: -O2 -Wall
// #cgo LDFLAGS: -L${SRCDIR}/lib -ldl
// #cgo noescape table_gemm
// #cgo nocallback table_gemm
// #cgo noescape table_gemm_parts
// #cgo nocallback table_gemm_parts
// #include "delay.h"
// #include "table.h"
import "C"

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"runtime"
	"sync"
	"unsafe"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/cuda/kernels"
	"github.com/specmatch/specmatch/tensor"
	"gorgonia.org/cu"
)

func init() {
	backend.Register("cuda", func(p tensor.Precision) (backend.Backend, error) {
		return New(p)
	})
	backend.Register("cuda-tf32",
		func(p tensor.Precision) (backend.Backend, error) {
			return New(p, TF32())
		})
	backend.Register("cuda-3xtf32",
		func(p tensor.Precision) (backend.Backend, error) {
			return New(p, Split())
		})
}

// An Option departs from the defaults of [New].
type Option func(*options)

type options struct{ tf32, split bool }

// TF32 lets matrix products of float32 round their inputs to 10 bits of
// fraction, which tensor cores multiply several times faster. Off by default.
func TF32() Option {
	return func(o *options) {
		o.tf32 = true
	}
}

// Split computes large matrix products of float32 as three products in TF32, on tensor cores, at
// about the accuracy of float32. It changes nothing in float64. Off by default.
func Split() Option {
	return func(o *options) {
		o.split = true
	}
}

// New opens an engine of precision p on the first device that the driver shows;
// CUDA_VISIBLE_DEVICES selects it. The error for a missing requirement says what to do.
func New(p tensor.Precision, opts ...Option) (backend.Backend, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	d, err := openDevice(p, o.tf32)
	if err != nil {
		return nil, fmt.Errorf("backend \"cuda\": %w", err)
	}
	e, err := open(d, p)
	if err != nil {
		return nil, fmt.Errorf("backend \"cuda\": %w", err)
	}
	e.rounds = o.tf32 && p == tensor.Float32
	if o.split && p == tensor.Float32 {
		d.split = true
		e.split = worthSplitting
	}
	return e, nil
}

// Diagnose reports which of the engine's requirements are met, up to the first that is not.
func Diagnose() (found []Finding) {
	report := func(what, value string, err error) bool {
		found = append(found, Finding{what, value, err})
		return err == nil
	}
	report(
		"build", "with CUDA, kernels for compute capability 8.0 and newer", nil,
	)
	if err := loaded(); err != nil {
		report("driver", "", err)
		return found
	}
	v := cu.Version()
	report("driver", fmt.Sprintf("CUDA %d.%d", v/1000, v%1000/10), nil)
	device, err := describeDevice()
	if !report("device", device, explain(err)) {
		return found
	}
	b, err := openBLAS()
	if err != nil {
		report("cuBLAS", "", err)
		return found
	}
	report("cuBLAS", C.GoString(C.table_blas_path(b)), nil)
	C.table_blas_close(b)
	return found
}

// describeDevice returns the name, the capability and the memory of the first device.
func describeDevice() (string, error) {
	dev, err := cu.GetDevice(0)
	if err != nil {
		return "", err
	}
	name, err := dev.Name()
	if err != nil {
		return "", err
	}
	bytes, _ := dev.TotalMem()
	major, minor, _ := dev.ComputeCapability()
	return fmt.Sprintf("%s, compute capability %d.%d, %d MiB",
		name, major, minor, bytes>>20), nil
}

// device is the driver for a GPU: gorgonia.org/cu, and table.c for what it lacks.
//
// A context belongs to a thread, and a goroutine has no fixed thread. So every call locks
// its goroutine to a thread and makes the context current there (enter). One goroutine at
// a time uses a device, but not always the same one. A recording begins and ends on one
// thread.
type device struct {
	precision tensor.Precision
	tf32      bool
	split     bool
	dev       cu.Device
	ctx       cu.CUContext
	stream    cu.Stream
	copies    cu.Stream // of copies to the device
	copied    cu.Event  // behind the last of them
	module    cu.Module
	functions map[string]cu.Function // of the module
	events    []cu.Event
	words     [32]uint64         // parameters of a launch
	args      [32]unsafe.Pointer // args[k] points to words[k]
	blas      *C.blas
	workspace cu.DevicePtr
	records   bool // recording is held for reading
}

// recording is held for reading while an engine records. It is held for writing by calls
// that end the recordings of all engines, on any thread, because they may wait for the
// whole device or load code: allocations, and cuBLAS when it makes or frees a handle or
// computes the first product of its kind.
var recording sync.RWMutex

// kernelNames matches the name of a kernel in PTX.
var kernelNames = regexp.MustCompile(`\.visible \.entry (\w+)\(`)

// workspaceBytes is the size that NVIDIA recommends for the workspace of cuBLAS on Hopper.
const workspaceBytes = 32 << 20

// enter locks the goroutine to a thread that has the context, until leave.
func (d *device) enter() error {
	runtime.LockOSThread()
	return cu.SetCurrentContext(d.ctx)
}

func (d *device) leave() {
	runtime.UnlockOSThread()
}

// do runs a call on a thread that has the context, and explains its error.
func (d *device) do(call func() error) error {
	err := d.enter()
	if err == nil {
		err = call()
	}
	d.leave()
	return explain(err)
}

// exclusive is do for a call that would end any recording; it waits for those of other
// engines.
func (d *device) exclusive(call func() error) error {
	if !d.records {
		recording.Lock()
		defer recording.Unlock()
	}
	return d.do(call)
}

// failure is an error code of the driver or, from blasFailure on, of cuBLAS.
type failure int

const blasFailure failure = 10000

func (f failure) Error() string {
	if f >= blasFailure {
		return fmt.Sprintf("cuBLAS status %d", int(f-blasFailure))
	}
	var s *C.char
	if C.cuGetErrorString(C.CUresult(f), &s) == 0 && s != nil {
		return C.GoString(s)
	}
	return fmt.Sprintf("CUDA error %d", int(f))
}

// result returns the error for a code of the driver.
func result(code C.int) error {
	if code == 0 {
		return nil
	}
	return failure(code)
}

// blasResult returns the error for a code of cuBLAS.
func blasResult(code C.int) error {
	if code == 0 {
		return nil
	}
	return blasFailure + failure(code)
}

const (
	oldestDriver  = 12060 // the version of CUDA that the PTX is for
	oldestRelease = "560" // of the driver, with that version
	orCPU         = ", or run with -backend cpu"
)

// cures maps error codes of the driver to what to do.
var cures = map[int64]string{
	C.CUDA_ERROR_OUT_OF_MEMORY: "the memory of the GPU is used up: " +
		"use a smaller batch, or end other programs there (nvidia-smi lists them)",
	C.CUDA_ERROR_NO_DEVICE: "the driver sees no GPU: " +
		"check nvidia-smi and CUDA_VISIBLE_DEVICES, start a container with its GPUs" + orCPU,
	C.CUDA_ERROR_NO_BINARY_FOR_GPU: "the kernels need a GPU of compute capability 8.0 (Ampere) or newer" +
		orCPU,
	C.CUDA_ERROR_UNSUPPORTED_PTX_VERSION: "the NVIDIA driver is too old for the kernels: " +
		"install release " + oldestRelease + " or newer" + orCPU,
	C.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH: "libcuda.so.1 and the kernel module are of different releases: " +
		"restart the machine, or reinstall the driver",
	C.CUDA_ERROR_DEVICE_UNAVAILABLE: "another process has exclusive use of the GPU: nvidia-smi shows it",
	C.CUDA_ERROR_ILLEGAL_ADDRESS: "an index is out of range: " +
		"validate the batch; the process cannot use the device any more",
}

// explain adds to an error of the driver what to do, if cures has it.
func explain(err error) error {
	if v := reflect.ValueOf(err); v.IsValid() && v.CanInt() {
		if cure, ok := cures[v.Int()]; ok {
			return fmt.Errorf("%w: %s", err, cure)
		}
	}
	return err
}

// loaded returns an error unless the driver was found and started.
func loaded() error {
	switch s := C.delay_status(); s {
	case 0:
		return nil
	case C.delay_not_loaded:
		const format = "the NVIDIA driver was not found (%s): install it, or name libcuda.so.1 in " +
			"SPECMATCH_LIBCUDA%s"
		return fmt.Errorf(format, C.GoString(C.delay_message()), orCPU)
	default:
		return fmt.Errorf("the NVIDIA driver does not start: %w",
			explain(failure(s)))
	}
}

// openBLAS opens the library without starting it.
func openBLAS() (*C.blas, error) {
	var why [1024]C.char
	b := C.table_blas_open(&why[0], C.size_t(len(why)))
	if b == nil {
		const format = "cuBLAS was not found (%s): install CUDA's libcublas 12 or 13, " +
			"from NVIDIA or as the Python package nvidia-cublas-cu12, " +
			"and name its file in SPECMATCH_LIBCUBLAS if the loader does not find it"
		return nil, fmt.Errorf(format, C.GoString(&why[0]))
	}
	return b, nil
}

// openDevice opens the first device: libraries, context, streams and kernels.
func openDevice(p tensor.Precision, tf32 bool) (_ *device, err error) {
	if err := loaded(); err != nil {
		return nil, err
	}
	if v := cu.Version(); v < oldestDriver {
		cause := explain(failure(C.CUDA_ERROR_UNSUPPORTED_PTX_VERSION))
		return nil, fmt.Errorf("the NVIDIA driver is of CUDA %d.%d: %w",
			v/1000, v%1000/10, cause)
	}
	ptx := kernels.PTX(p)
	if arch := os.Getenv("SPECMATCH_NVRTC"); arch != "" {
		ptx, err = compileKernels(p, arch)
		if err != nil {
			return nil, err
		}
	}
	d := &device{precision: p, tf32: tf32, functions: map[string]cu.Function{}}
	for k := range d.args {
		d.args[k] = unsafe.Pointer(&d.words[k])
	}
	d.dev, err = cu.GetDevice(0)
	if err != nil {
		return nil, explain(err)
	}
	d.blas, err = openBLAS()
	if err != nil {
		return nil, err
	}
	d.ctx, err = d.dev.RetainPrimaryCtx()
	if err != nil {
		C.table_blas_close(d.blas)
		return nil, explain(err)
	}
	recording.Lock()
	err = d.do(func() error {
		return d.start(ptx)
	})
	recording.Unlock()
	if err != nil {
		return nil, errors.Join(err, d.close())
	}
	return d, nil
}

// start makes the streams, loads the kernels and starts cuBLAS.
func (d *device) start(ptx string) (err error) {
	d.stream, err = cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return err
	}
	d.copies, err = cu.MakeStream(cu.NonBlocking)
	if err != nil {
		return err
	}
	d.copied, err = cu.MakeEvent(cu.DisableTiming)
	if err != nil {
		return err
	}
	d.module, err = cu.LoadData(ptx)
	if err != nil {
		return err
	}
	for _, match := range kernelNames.FindAllStringSubmatch(ptx, -1) {
		name := match[1]
		d.functions[name], err = d.module.Function(name)
		if err != nil {
			return err
		}
	}
	d.workspace, err = cu.MemAlloc(workspaceBytes)
	if err != nil {
		return err
	}
	workspace := C.CUdeviceptr(d.workspace)
	return blasResult(C.table_blas_start(
		d.blas, d.cstream(), workspace, workspaceBytes, C.int(flagWord(d.tf32)),
	))
}

func (d *device) cstream() C.CUstream {
	return C.CUstream(unsafe.Pointer(d.stream.C()))
}

func (d *device) name() string {
	switch {
	case d.tf32:
		return "cuda-tf32"
	case d.split:
		return "cuda-3xtf32"
	}
	return "cuda"
}

func (d *device) alloc(bytes int) (p pointer, err error) {
	err = d.exclusive(func() error {
		address, err := cu.MemAlloc(int64(bytes))
		p = pointer(address)
		if err == nil {
			return nil
		}
		if free, total, e := cu.MemInfo(); e == nil {
			const format = "%d MiB were wanted, %d of %d MiB are free: %w"
			return fmt.Errorf(
				format, bytes>>20, free>>20, total>>20, explain(err),
			)
		}
		return err
	})
	return p, err
}

func (d *device) free(p pointer) error {
	return d.exclusive(func() error {
		return cu.MemFree(cu.DevicePtr(p))
	})
}

func (d *device) pinned(bytes int) (mem []byte, err error) {
	err = d.exclusive(func() error {
		var p unsafe.Pointer
		if err := result(C.table_pinned(&p, C.size_t(bytes))); err != nil {
			return err
		}
		mem = unsafe.Slice((*byte)(p), bytes)
		return nil
	})
	return mem, err
}

func (d *device) freePinned(mem []byte) error {
	return d.exclusive(func() error {
		return result(C.table_free_pinned(unsafe.Pointer(
			unsafe.SliceData(mem),
		)))
	})
}

func (d *device) copyIn(dst pointer, src []byte) error {
	return d.do(func() error {
		return cu.MemcpyHtoDAsync(
			cu.DevicePtr(dst),
			unsafe.Pointer(unsafe.SliceData(src)),
			int64(len(src)),
			d.copies,
		)
	})
}

func (d *device) follow() error {
	return d.do(func() error {
		if err := d.copied.Record(d.copies); err != nil {
			return err
		}
		return d.stream.Wait(d.copied, 0)
	})
}

func (d *device) move(dst, src pointer, bytes int) error {
	return d.do(func() error {
		return cu.MemcpyDtoDAsync(
			cu.DevicePtr(dst), cu.DevicePtr(src), int64(bytes), d.stream,
		)
	})
}

func (d *device) copyOut(dst []byte, src pointer) error {
	return d.do(func() error {
		return cu.MemcpyDtoHAsync(
			unsafe.Pointer(unsafe.SliceData(dst)),
			cu.DevicePtr(src),
			int64(len(dst)),
			d.stream,
		)
	})
}

func (d *device) launch(
	kernel string, grid, block dims, params []uint64,
) error {
	n := copy(d.words[:], params)
	defer d.leave()
	if err := d.enter(); err != nil {
		return explain(err)
	}
	fn, ok := d.functions[kernel]
	if !ok {
		return fmt.Errorf("there is no kernel %s", kernel)
	}
	return explain(fn.Launch(
		int(grid[0]), int(grid[1]), int(grid[2]),
		int(block[0]), int(block[1]), int(block[2]),
		0, d.stream, d.args[:n]))
}

func (d *device) gemm(
	transA, transB bool,
	m, n, k int,
	alpha float64,
	a pointer,
	lda int,
	b pointer,
	ldb int,
	beta float64,
	c pointer,
) error {
	flag := func(b bool) C.int {
		return C.int(flagWord(b))
	}
	return d.exclusive(func() error {
		return blasResult(C.table_gemm(
			d.blas, flag(d.precision == tensor.Float64), flag(transA),
			flag(transB), C.int(m), C.int(n), C.int(k), C.double(alpha),
			C.CUdeviceptr(a), C.int(lda), C.CUdeviceptr(b), C.int(ldb),
			C.double(beta), C.CUdeviceptr(c),
		))
	})
}

func (d *device) gemmParts(
	parts, m, n, k int,
	alpha float64,
	a, b, c pointer,
) error {
	isDouble := flagWord(d.precision == tensor.Float64)
	return d.exclusive(func() error {
		return blasResult(C.table_gemm_parts(
			d.blas,
			C.int(isDouble),
			C.int(parts),
			C.int(m),
			C.int(n),
			C.int(k),
			C.double(alpha),
			C.CUdeviceptr(a),
			C.CUdeviceptr(b),
			C.CUdeviceptr(c),
		))
	})
}

func (d *device) round(on bool) error {
	return d.exclusive(func() error {
		return blasResult(C.table_blas_round(d.blas, C.int(flagWord(on))))
	})
}

func (d *device) newEvent() (e event, err error) {
	err = d.do(func() error {
		ev, err := cu.MakeEvent(cu.DisableTiming)
		d.events = append(d.events, ev)
		e = event(len(d.events))
		return err
	})
	return e, err
}

func (d *device) freeEvent(e event) error {
	return d.do(func() error {
		return cu.DestroyEvent(&d.events[e-1])
	})
}

func (d *device) record(e event) error {
	return d.do(func() error {
		return d.events[e-1].Record(d.stream)
	})
}

func (d *device) wait(e event) error {
	return d.do(func() error {
		return d.events[e-1].Synchronize()
	})
}

// recorded is a CUDA graph.
type recorded struct {
	d    *device
	exec C.CUgraphExec
}

func (d *device) capture(record func()) (_ graph, err error) {
	recording.RLock()
	defer recording.RUnlock()
	// A recording must end on the thread where it began.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := func() error {
		return result(C.table_begin_capture(d.cstream()))
	}
	if err := d.do(begin); err != nil {
		return nil, err
	}
	ended := false
	d.records = true
	defer func() {
		d.records = false
		if !ended { // record panicked
			C.table_end_capture(d.cstream(), nil)
		}
	}()
	record()
	ended = true
	g := &recorded{d: d}
	end := func() error {
		return result(C.table_end_capture(d.cstream(), &g.exec))
	}
	if err := d.do(end); err != nil {
		return nil, err
	}
	return g, nil
}

func (g *recorded) launch() error {
	return g.d.do(func() error {
		return result(C.table_launch_graph(g.exec, g.d.cstream()))
	})
}

func (g *recorded) close() error {
	return g.d.do(func() error {
		return result(C.table_destroy_graph(g.exec))
	})
}

// close also runs on a device that openDevice has opened only in part.
func (d *device) close() error {
	recording.Lock()
	defer recording.Unlock()
	return errors.Join(d.do(d.stop), d.dev.ReleasePrimaryCtx())
}

// stop waits for the streams and frees everything that start made.
func (d *device) stop() error {
	var noStream cu.Stream
	var noEvent cu.Event
	var noModule cu.Module
	var errs []error
	for _, s := range []cu.Stream{d.copies, d.stream} {
		if s != noStream {
			errs = append(errs, s.Synchronize())
		}
	}
	errs = append(errs, blasResult(C.table_blas_close(d.blas)))
	if d.workspace != 0 {
		errs = append(errs, cu.MemFree(d.workspace))
	}
	if d.module != noModule { // the context may outlive the engine
		errs = append(errs, d.module.Unload())
	}
	if d.copied != noEvent {
		errs = append(errs, cu.DestroyEvent(&d.copied))
	}
	for _, s := range []*cu.Stream{&d.copies, &d.stream} {
		if *s != noStream {
			errs = append(errs, s.Destroy())
		}
	}
	return errors.Join(errs...)
}
