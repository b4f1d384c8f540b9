//go:build cuda && linux && amd64 && cgo

package cuda

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/specmatch/specmatch/backend"
	"github.com/specmatch/specmatch/backend/backendtest"
	"github.com/specmatch/specmatch/backend/cuda/kernels"
	"github.com/specmatch/specmatch/specmatch"
	"github.com/specmatch/specmatch/tensor"
)

// onDevice skips a test where there is no GPU, with the reason.
func onDevice(t *testing.T) {
	t.Helper()
	be, err := backend.Open("cuda", tensor.Float32)
	if err != nil {
		t.Skip(err)
	}
	if err := be.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDevice holds the engine on a GPU against the conformance suite.
func TestDevice(t *testing.T) {
	onDevice(t)
	backendtest.Run(t, func(p tensor.Precision) (backend.Backend, error) { return New(p) })
}

// TestDeviceEveryKernel is for NVIDIA's sanitizers.
func TestDeviceEveryKernel(t *testing.T) {
	onDevice(t)
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		d, err := openDevice(p, false)
		if err != nil {
			t.Fatal(err)
		}
		everyKernel(t, d, p)
	}
}

// TestDeviceTraining runs recorded steps on a GPU from goroutines of different
// threads, and compares the bits with those of steps that are not replayed.
func TestDeviceTraining(t *testing.T) {
	onDevice(t)
	train := func(replay bool) (all []float64) {
		be, err := New(tensor.Float32)
		if err != nil {
			t.Fatal(err)
		}
		m := specmatch.NewGINModel(be, 5, rand.New(rand.NewPCG(1, 2)))
		tr := specmatch.NewTrainer(be, m, specmatch.Objective{
			Contrast: specmatch.InfoNCE{Tau: 0.2}, Match: specmatch.DefaultLaplacianMatch(), Beta: specmatch.Beta{Weight: 0.1},
		}, 0.01)
		r, err := specmatch.NewRecorded(tr)
		if err != nil {
			t.Fatal(err)
		}
		for k := range 4 {
			done := make(chan struct{})
			go func() {
				defer close(done)
				if _, err := r.Step(batchOf(5+k%2, 9)); err != nil {
					t.Error(err)
				}
			}()
			<-done
			if !replay {
				if _, err := r.Last(); err != nil {
					t.Fatal(err)
				}
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
				if r, err = specmatch.NewRecorded(tr); err != nil {
					t.Fatal(err)
				}
			}
		}
		for _, p := range m.Parameters() {
			v := make([]float64, p.Value.Len())
			be.Download(v, p.Value)
			all = append(all, v...)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if err := be.Close(); err != nil {
			t.Error(err)
		}
		return all
	}
	want := train(false)
	for k, v := range train(true) {
		if v != want[k] {
			t.Fatalf("weight %d is %v after replays, want the bits of %v", k, v, want[k])
		}
	}
}

// TestDeviceShared uses two engines at the same time, each from its goroutine, as
// experiments with several seeds do.
func TestDeviceShared(t *testing.T) {
	onDevice(t)
	var wg sync.WaitGroup
	results := make([][]float64, 2)
	for k := range results {
		wg.Go(func() {
			be, err := New(tensor.Float32)
			if err != nil {
				t.Error(err)
				return
			}
			m := specmatch.NewGINModel(be, 5, rand.New(rand.NewPCG(1, 2)))
			r, err := specmatch.NewRecorded(specmatch.NewTrainer(be, m, specmatch.Objective{Contrast: specmatch.InfoNCE{Tau: 0.2}}, 0.01))
			if err != nil {
				t.Error(err)
				return
			}
			for range 6 {
				s, err := r.Step(batchOf(6, 8))
				if err != nil {
					t.Error(err)
				}
				if s != nil {
					results[k] = append(results[k], s.Loss)
				}
			}
			if err := errors.Join(r.Close(), be.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if !slices.Equal(results[0], results[1]) {
		t.Errorf("two engines at the same time give %v and %v", results[0], results[1])
	}
}

// TestDeviceUploads: what is uploaded is what kernels and downloads see, in slots that are
// used many times over.
func TestDeviceUploads(t *testing.T) {
	onDevice(t)
	be, err := New(tensor.Float64)
	if err != nil {
		t.Fatal(err)
	}
	x, sum := be.Alloc(1, stagingBytes/8+3), be.Alloc(1, 1)
	values, got := make([]float64, x.Len()), make([]float64, x.Len())
	for k := range 3 * stagingSlots {
		for i := range values {
			values[i] = float64(k + i%7)
		}
		be.Upload(x, values)
		be.Affine(x, 2, x, 0)
		be.Upload(sum, []float64{float64(k)})
		be.BinaryScalar(x, backend.Add, x, sum)
	}
	be.Download(got, x)
	for i, v := range values {
		if want := 2*v + 3*stagingSlots - 1; got[i] != want {
			t.Fatalf("element %d is %v, want %v", i, got[i], want)
		}
	}
	if err := be.Close(); err != nil {
		t.Error(err)
	}
}

// TestDeviceOthers: an engine records while others are opened and closed, and while
// one allocates, multiplies and reads.
func TestDeviceOthers(t *testing.T) {
	onDevice(t)
	be, err := New(tensor.Float32)
	if err != nil {
		t.Fatal(err)
	}
	busy, err := New(tensor.Float32)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex // of busy
	work := func() {
		mu.Lock()
		defer mu.Unlock()
		busy.Alloc(1, pieceBytes/2) // never freed: the next is from the driver too
		a, c, one := busy.Alloc(30, 30), busy.Alloc(30, 30), busy.Alloc(1, 1)
		busy.Fill(a, 2)
		busy.Gemm(c, false, false, 1, a, a, 0)
		busy.Dot(one, c, nil)
		var v [1]float64
		busy.Fetch(one).Values(v[:])
		if v[0] != 4*30*30*30 {
			t.Errorf("another engine's sum is %v", v[0])
		}
	}
	x := be.Alloc(3, 5)
	for range 3 {
		var wg sync.WaitGroup
		step, err := be.Capture(func() {
			be.Fill(x, 1)
			wg.Go(func() {
				other, err := New(tensor.Float32)
				if err == nil {
					err = other.Close()
				}
				if err != nil {
					t.Error(err)
				}
			})
			wg.Go(work)
			time.Sleep(50 * time.Millisecond)
			be.Fill(x, 2)
		})
		if err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		if err := errors.Join(step.Replay(), step.Close()); err != nil {
			t.Error(err)
		}
	}
	if err := errors.Join(be.Close(), busy.Close()); err != nil {
		t.Error(err)
	}
}

// standIn builds the stand-in for the driver and cuBLAS and returns its path.
func standIn(t *testing.T) string {
	t.Helper()
	if os.Getenv("SPECMATCH_LIBCUDA") != "" {
		t.Skip("this is the test's own process, or a machine that names its driver")
	}
	source := filepath.Join("testdata", "standin", "standin.cpp")
	if _, err := os.Stat(source); err != nil {
		t.Skip(err) // a test binary that was carried elsewhere
	}
	lib := filepath.Join(t.TempDir(), "libstandin.so")
	out, err := exec.Command("g++", "-std=c++17", "-O2", "-shared", "-fPIC", "-Wno-unknown-pragmas", "-Ikernels", "-o", lib, source, "-lpthread").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return lib
}

// again runs tests of this binary with the stand-in, in another process.
func again(t *testing.T, lib, tests string, env ...string) (output string, err error) {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-test.short", "-test.v", "-test.run", tests)
	cmd.Env = append(append(os.Environ(), "SPECMATCH_LIBCUDA="+lib, "SPECMATCH_LIBCUBLAS="+lib), env...)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// TestStandIn is what can be tested with a driver that stands in for one, which takes a while to build.
func TestStandIn(t *testing.T) {
	lib := standIn(t)
	t.Run("device", func(t *testing.T) { testStandIn(t, lib) })
	t.Run("cures", func(t *testing.T) { testCures(t, lib) })
	t.Run("NVRTC", func(t *testing.T) { testNVRTC(t, lib) })
}

// testStandIn runs the tests of the device: everything but the device itself. The conformance suite is long, and the
// emulator passes it, too.
func testStandIn(t *testing.T, lib string) {
	log := filepath.Join(t.TempDir(), "log")
	tests := "^(TestDevice(|EveryKernel|Training|Shared|Uploads|Others)|TestTallProducts)$"
	if testing.Short() {
		tests = "^(TestDevice(EveryKernel|Training|Shared|Uploads|Others)|TestTallProducts)$"
	}
	out, err := again(t, lib, tests, "STANDIN_LOG="+log)
	if err != nil || !strings.Contains(out, "--- PASS: TestDeviceTraining") {
		t.Fatalf("%v\n%s", err, out)
	}
	calls, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"cuGraphLaunch", "cuLaunchKernel", "cublasSgemm_v2", "cublasSgemmStridedBatched", "full precision"} {
		if !strings.Contains(string(calls), name+" ") {
			t.Errorf("there was no %s", name)
		}
	}
	if strings.Contains(string(calls), "tf32") {
		t.Error("TF32 was not asked for")
	}
}

// TestOpening opens the engine and shows how that ends, for testCures.
func TestOpening(t *testing.T) {
	be, err := backend.Open("cuda-tf32", tensor.Float32)
	if err == nil {
		err = be.Close()
		if be.Name() != "cuda-tf32" {
			t.Errorf("the engine's name is %s", be.Name())
		}
	}
	fmt.Println("opening:", err)
}

// testCures: what can be missing, one error each, with what to do.
func testCures(t *testing.T, lib string) {
	for _, c := range []struct {
		name, lib, env string
		want           []string
	}{
		{"all is there", lib, "", []string{"<nil>"}},
		{"no driver", "/nowhere/libcuda.so.1", "", []string{"/nowhere/libcuda.so.1", "driver was not found", "install it", "-backend cpu"}},
		{"not a driver", os.Args[0], "", []string{"driver was not found"}},
		{"no device", lib, "STANDIN_FAIL=cuInit=100", []string{"does not start", "sees no GPU", "nvidia-smi", "-backend cpu"}},
		{"a driver of another release", lib, "STANDIN_FAIL=cuInit=803", []string{"different releases", "restart"}},
		{"an old driver", lib, "STANDIN_VERSION=11080", []string{"CUDA 11.8", "too old", "560 or newer"}},
		{"an old GPU", lib, "STANDIN_FAIL=cuModuleLoadData=209", []string{"compute capability 8.0"}},
		{"PTX too new", lib, "STANDIN_FAIL=cuModuleLoadData=222", []string{"too old for the kernels"}},
		{"no memory", lib, "STANDIN_FAIL=cuMemAlloc_v2=2", []string{"memory of the GPU is used up", "smaller batch"}},
		{"a GPU in use", lib, "STANDIN_FAIL=cuDevicePrimaryCtxRetain=46", []string{"exclusive use of the GPU"}},
		{"cuBLAS does not start", lib, "STANDIN_FAIL=cublasCreate_v2=1", []string{"cuBLAS status 1"}},
		{"no cuBLAS", lib, "SPECMATCH_LIBCUBLAS=/nowhere/libcublas.so", []string{"/nowhere/libcublas.so", "cuBLAS was not found", "nvidia-cublas-cu12", "SPECMATCH_LIBCUBLAS"}},
		{"no NVRTC", lib, "SPECMATCH_NVRTC=compute_80 SPECMATCH_LIBNVRTC=/nowhere/libnvrtc.so", []string{"/nowhere/libnvrtc.so", "SPECMATCH_NVRTC=compute_80", "nvidia-cuda-nvrtc-cu12", "SPECMATCH_LIBNVRTC"}},
		{"not NVRTC", lib, "SPECMATCH_NVRTC=compute_80 SPECMATCH_LIBNVRTC=libc.so.6", []string{"it is not NVRTC"}},
		{"not cuBLAS", lib, "SPECMATCH_LIBCUBLAS=libc.so.6", []string{"cuBLAS was not found", "cublasCreate_v2"}},
	} {
		out, err := again(t, c.lib, "^TestOpening$", strings.Fields(c.env)...)
		_, message, found := strings.Cut(out, "opening: ")
		message, _, _ = strings.Cut(message, "\n--- ")
		if err != nil || !found {
			t.Errorf("%s: %v\n%s", c.name, err, out)
		}
		for _, want := range c.want {
			if !strings.Contains(message, want) {
				t.Errorf("%s: the error is %q, want something about %q", c.name, message, want)
			}
		}
	}
}

// testNVRTC compiles the kernels as SPECMATCH_NVRTC does, which gives the embedded
// PTX but for the numbers of registers, and opens the engine with them. It needs the compiler of toolkit.sh, named
// in SPECMATCH_LIBNVRTC.
func testNVRTC(t *testing.T, lib string) {
	if os.Getenv("SPECMATCH_LIBNVRTC") == "" {
		t.Skip("SPECMATCH_LIBNVRTC names no compiler")
	}
	chance := regexp.MustCompile(`callseq \d+|%[a-z]+\d+`) // by the compiler's process; .ci/cuda compares registers
	for _, p := range []tensor.Precision{tensor.Float32, tensor.Float64} {
		ptx, err := compileKernels(p, "compute_80")
		if err != nil {
			t.Fatal(err)
		}
		if chance.ReplaceAllString(ptx, "") != chance.ReplaceAllString(kernels.PTX(p), "") {
			t.Errorf("%v: %d bytes of PTX are not the %d that are embedded", p, len(ptx), len(kernels.PTX(p)))
		}
	}
	out, err := again(t, lib, "^TestOpening$", "SPECMATCH_NVRTC=compute_90")
	if err != nil || !strings.Contains(out, "opening: <nil>") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := compileKernels(tensor.Float32, "compute_1"); err == nil || !strings.Contains(err.Error(), "such as compute_90") {
		t.Errorf("an architecture that there is not: %v", err)
	}
}
