// A stand-in for libcuda.so.1 and libcublas.so, for tests of the code that calls
// them. It has one device, whose kernels run on the processor
// (kernels/emulate.h), and is as strict as a driver may be: a call from a thread
// without the context, memory or a wait while recording, a recording that ends on
// another thread, and memory that is not given back are errors. What it was
// asked goes to the file STANDIN_LOG. STANDIN_FAIL=name=code makes a call fail. What is
// in a stream is done as late as may be: when somebody waits for it.
#include "emulate.h"

#define REAL float
namespace emu_f32 {
#include "kernels.cu"
}
#undef REAL
#define REAL double
namespace emu_f64 {
#include "kernels.cu"
}

#include <deque>
#include <functional>
#include <set>

typedef std::function<void()> Call;
struct Graph { std::vector<Call> calls; };
struct Stream { std::deque<Call> calls; size_t done = 0; };
struct Event { Stream *stream = nullptr; size_t at = 0; };
struct Module { int bytes; };
struct Function { int bytes; std::string name; emu::Entry *entry; };

static thread_local bool current;
static std::map<std::string, int> counts;
static std::map<uint64_t, size_t> device_memory;
static std::map<void *, size_t> host_memory;
static std::set<void *> objects; // streams, events, modules, graphs, handles
static std::map<void *, Graph *> recordings; // by stream
static thread_local int recording;            // of this thread
static bool broken;                           // the recordings, by a wait for the whole device
static std::recursive_mutex mutex;            // one call at a time

enum { ok = 0, invalid = 1, out_of_memory = 2, no_context = 201, wrong_thread = 908, while_recording = 900 };

// enter counts a call and returns its failure, if it is to fail.
static int enter(const char *name, bool context = true) {
	std::lock_guard<std::recursive_mutex> lock(mutex);
	counts[name]++;
	const char *fail = getenv("STANDIN_FAIL");
	const size_t n = strlen(name);
	if (fail && !strncmp(fail, name, n) && fail[n] == '=') {
		return atoi(fail + n + 1);
	}
	return context && !current ? no_context : ok;
}
#define ENTER()                                          \
	std::lock_guard<std::recursive_mutex> lock(mutex); \
	if (int r = enter(__func__)) return r
#define NOT_RECORDING if (recording) return while_recording
// What waits for the whole device, or loads code, breaks the recordings of all threads.
#define WHOLE_DEVICE if (!recordings.empty()) { broken = true; return while_recording; }

static int put(void *stream, Call c) {
	auto it = recordings.find(stream);
	if (it != recordings.end()) {
		it->second->calls.push_back(std::move(c));
	} else {
		((Stream *)stream)->calls.push_back(std::move(c));
	}
	return ok;
}

// finish does what is in a stream, up to a place.
static void finish(Stream *s, size_t at = SIZE_MAX) {
	while (s->done < at && !s->calls.empty()) {
		Call c = std::move(s->calls.front());
		s->calls.pop_front();
		s->done++;
		c();
	}
}
static std::set<Stream *> streams;
static void finish_all() { for (Stream *s : streams) finish(s); }

template <class T> static int create(T **out) {
	objects.insert(*out = new T);
	return ok;
}
template <class T> static int destroy(T *x) {
	if (!objects.erase(x)) {
		return invalid;
	}
	delete x;
	return ok;
}
struct Object { int unused; };

extern "C" {

int cuInit(unsigned) { return enter(__func__, false); }
int cuDriverGetVersion(int *v) {
	const char *version = getenv("STANDIN_VERSION");
	*v = version ? atoi(version) : 12060;
	return enter(__func__, false);
}
int cuGetErrorString(int code, const char **s) {
	static thread_local char text[40];
	snprintf(text, sizeof text, "stand-in error %d", code);
	*s = text;
	return ok;
}
int cuDeviceGet(int *dev, int) { *dev = 0; return enter(__func__, false); }
int cuDeviceGetName(char *s, int n, int) { snprintf(s, n, "stand-in"); return enter(__func__, false); }
int cuDeviceTotalMem_v2(size_t *n, int) { *n = 1 << 30; return enter(__func__, false); }
int cuDeviceGetAttribute(int *v, int, int) { *v = 9; return enter(__func__, false); }
int cuDevicePrimaryCtxRetain(void **ctx, int) { *ctx = &current; return enter(__func__, false); }
int cuDevicePrimaryCtxRelease_v2(int) {
	std::lock_guard<std::recursive_mutex> lock(mutex);
	if (int r = enter(__func__, false)) {
		return r;
	}
	if (counts[__func__] < counts["cuDevicePrimaryCtxRetain"]) {
		return ok;
	}
	if (!device_memory.empty() || !host_memory.empty() || !objects.empty()) {
		fprintf(stderr, "stand-in: left behind: %zu pieces of device memory, %zu of pinned memory, %zu objects\n", device_memory.size(), host_memory.size(), objects.size());
		return invalid;
	}
	if (const char *path = getenv("STANDIN_LOG")) {
		FILE *f = fopen(path, "w");
		for (auto &c : counts) {
			fprintf(f, "%s %d\n", c.first.c_str(), c.second);
		}
		fclose(f);
	}
	return ok;
}
int cuCtxSetCurrent(void *ctx) {
	current = ctx != nullptr;
	return enter(__func__, false);
}
int cuStreamCreate(void **s, unsigned flags) {
	ENTER();
	create((Stream **)s);
	streams.insert((Stream *)*s);
	return flags == 1 ? ok : invalid; // CU_STREAM_NON_BLOCKING
}
int cuStreamDestroy_v2(Stream *s) { ENTER(); finish(s); streams.erase(s); return destroy(s); }
int cuStreamSynchronize(Stream *s) { ENTER(); NOT_RECORDING; finish(s); return ok; }
int cuEventCreate(Event **e, unsigned) { ENTER(); return create(e); }
int cuEventDestroy_v2(Event *e) { ENTER(); return destroy(e); }
int cuEventRecord(Event *e, Stream *s) {
	ENTER();
	NOT_RECORDING;
	if (!objects.count(e) || !objects.count(s)) {
		return invalid;
	}
	*e = {s, s->done + s->calls.size()};
	return ok;
}
int cuEventSynchronize(Event *e) { ENTER(); NOT_RECORDING; if (e->stream) finish(e->stream, e->at); return ok; }
int cuStreamWaitEvent(Stream *s, Event *e, unsigned) {
	ENTER();
	NOT_RECORDING;
	const Event now = *e;
	return now.stream ? put(s, [=] { finish(now.stream, now.at); }) : ok;
}

int cuModuleLoadData(Module **m, const void *image) {
	ENTER();
	WHOLE_DEVICE;
	create(m);
	(*m)->bytes = strstr((const char *)image, "ld.global.f32") || strstr((const char *)image, "ld.global.nc.f32") ? 4 : 8;
	return ok;
}
int cuModuleUnload(Module *m) { ENTER(); WHOLE_DEVICE; return destroy(m); }
int cuModuleGetFunction(Function **f, Module *m, const char *name) {
	ENTER();
	WHOLE_DEVICE;
	static std::map<std::pair<int, std::string>, Function> functions;
	auto it = emu::registry().find({m->bytes, name});
	if (it == emu::registry().end()) {
		return 500; // CUDA_ERROR_NOT_FOUND
	}
	*f = &(functions[it->first] = {m->bytes, name, &it->second});
	return ok;
}
int cuLaunchKernel(Function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared, void *stream, void **params, void **) {
	ENTER();
	std::vector<uint64_t> words;
	for (size_t k = 0; k < f->entry->params; k++) {
		words.push_back(*(uint64_t *)params[k]);
	}
	return put(stream, [=] {
		if (const char *wrong = emu::launch(f->bytes, f->name.c_str(), {gx, gy, gz}, {bx, by, bz}, shared, words.data(), words.size())) {
			fprintf(stderr, "stand-in: %s\n", wrong);
			abort();
		}
	});
}

int cuMemAlloc_v2(uint64_t *p, size_t n) {
	ENTER();
	WHOLE_DEVICE;
	*p = (uint64_t)aligned_alloc(256, (n + 255) / 256 * 256);
	if (n > (size_t)1 << 32) {
		return out_of_memory;
	}
	device_memory[*p] = n;
	return ok;
}
int cuMemFree_v2(uint64_t p) {
	ENTER();
	WHOLE_DEVICE;
	finish_all();
	const bool known = device_memory.erase(p);
	free((void *)p);
	return known ? ok : invalid;
}
int cuMemGetInfo_v2(size_t *free, size_t *total) { ENTER(); *free = 7 << 20; *total = 9 << 20; return ok; }
int cuMemHostAlloc(void **p, size_t n, unsigned) {
	ENTER();
	WHOLE_DEVICE;
	host_memory[*p = malloc(n)] = n;
	return ok;
}
int cuMemFreeHost(void *p) {
	ENTER();
	WHOLE_DEVICE;
	finish_all();
	const bool known = host_memory.erase(p);
	free(p);
	return known ? ok : invalid;
}

// Both sides of a copy must be memory of the kind that they are said to be.
static bool within(uint64_t p, size_t n, uint64_t at, size_t size) { return at <= p && p + n <= at + size; }
static bool on_device(uint64_t p, size_t n) {
	bool in = false;
	for (auto &m : device_memory) in |= within(p, n, m.first, m.second);
	return in;
}
static bool copies(uint64_t device, const void *host, size_t n) {
	bool a = on_device(device, n), b = false;
	for (auto &m : host_memory) b |= within((uint64_t)host, n, (uint64_t)m.first, m.second);
	return a && b;
}
int cuMemcpyHtoDAsync_v2(uint64_t d, const void *s, size_t n, void *stream) {
	ENTER();
	return copies(d, s, n) ? put(stream, [=] { memcpy((void *)d, s, n); }) : invalid;
}
int cuMemcpyDtoDAsync_v2(uint64_t d, uint64_t s, size_t n, void *stream) {
	ENTER();
	return on_device(d, n) && on_device(s, n) ? put(stream, [=] { memmove((void *)d, (void *)s, n); }) : invalid;
}
int cuMemcpyDtoHAsync_v2(void *d, uint64_t s, size_t n, void *stream) {
	ENTER();
	return copies(s, d, n) ? put(stream, [=] { memcpy(d, (void *)s, n); }) : invalid;
}

int cuStreamBeginCapture_v2(void *stream, int mode) {
	ENTER();
	NOT_RECORDING;
	recording++;
	create(&recordings[stream]);
	return mode == 1 ? ok : invalid; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
}
int cuStreamEndCapture(void *stream, Graph **g) {
	ENTER();
	if (!recording || !recordings.count(stream)) {
		return wrong_thread;
	}
	*g = recordings[stream];
	recordings.erase(stream);
	recording--;
	if (broken) {
		broken = !recordings.empty();
		destroy(*g);
		*g = nullptr;
		return 901; // CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	}
	return ok;
}
int cuGraphInstantiateWithFlags(Graph **exec, Graph *g, unsigned long long) {
	ENTER();
	create(exec);
	(*exec)->calls = g->calls;
	return ok;
}
int cuGraphDestroy(Graph *g) { ENTER(); return destroy(g); }
int cuGraphExecDestroy(Graph *g) { ENTER(); return destroy(g); }
int cuGraphLaunch(Graph *g, void *stream) {
	ENTER();
	NOT_RECORDING;
	for (auto &c : g->calls) put(stream, c);
	return ok;
}

// cuBLAS.
struct Blas { void *stream; bool workspace; };
int cublasCreate_v2(Blas **h) { ENTER(); WHOLE_DEVICE; create(h); **h = {}; return ok; }
int cublasDestroy_v2(Blas *h) { ENTER(); WHOLE_DEVICE; return destroy(h); }
int cublasSetStream_v2(Blas *h, void *s) { ENTER(); h->stream = s; return objects.count(s) ? ok : invalid; }
int cublasSetWorkspace_v2(Blas *h, void *p, size_t n) { ENTER(); h->workspace = device_memory.count((uint64_t)p) && device_memory[(uint64_t)p] == n; return ok; }
int cublasSetMathMode(void *, int mode) { ENTER(); counts[mode ? "tf32" : "full precision"]++; return ok; }
int cublasGetVersion_v2(void *, int *v) { *v = 120600; return ok; }
} // extern "C"

template <class T> static int gemm(Blas *h, int ta, int tb, int m, int n, int k, T alpha, const T *a, int lda, const T *b, int ldb, T beta, T *c, int ldc) {
	if (!h->stream || !h->workspace || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m || m < 1 || n < 1 || k < 1) {
		return 7; // CUBLAS_STATUS_INVALID_VALUE
	}
	return put(h->stream, [=] {
		for (int j = 0; j < n; j++) {
			for (int i = 0; i < m; i++) {
				T sum = 0;
				for (int l = 0; l < k; l++) {
					sum += (ta ? a[l + (size_t)i * lda] : a[i + (size_t)l * lda]) * (tb ? b[j + (size_t)l * ldb] : b[l + (size_t)j * ldb]);
				}
				T &x = c[i + (size_t)j * ldc];
				x = alpha * sum + (beta == 0 ? 0 : beta * x);
			}
		}
	});
}

template <class T> static int gemms(Blas *h, int ta, int tb, int m, int n, int k, T alpha, const T *a, int lda, long long step_a, const T *b, int ldb, long long step_b, T beta, T *c, int ldc, long long step_c, int count) {
	for (int i = 0; i < count; i++) {
		const int r = gemm(h, ta, tb, m, n, k, alpha, a + i * step_a, lda, b + i * step_b, ldb, beta, c + i * step_c, ldc);
		if (r) {
			return r;
		}
	}
	return ok;
}

extern "C" {
int cublasSgemm_v2(Blas *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, const float *b, int ldb, const float *beta, float *c, int ldc) {
	ENTER();
	return gemm(h, ta, tb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
}
int cublasDgemm_v2(Blas *h, int ta, int tb, int m, int n, int k, const double *alpha, const double *a, int lda, const double *b, int ldb, const double *beta, double *c, int ldc) {
	ENTER();
	return gemm(h, ta, tb, m, n, k, *alpha, a, lda, b, ldb, *beta, c, ldc);
}
int cublasSgemmStridedBatched(Blas *h, int ta, int tb, int m, int n, int k, const float *alpha, const float *a, int lda, long long step_a, const float *b, int ldb, long long step_b, const float *beta, float *c, int ldc, long long step_c, int count) {
	ENTER();
	return gemms(h, ta, tb, m, n, k, *alpha, a, lda, step_a, b, ldb, step_b, *beta, c, ldc, step_c, count);
}
int cublasDgemmStridedBatched(Blas *h, int ta, int tb, int m, int n, int k, const double *alpha, const double *a, int lda, long long step_a, const double *b, int ldb, long long step_b, const double *beta, double *c, int ldc, long long step_c, int count) {
	ENTER();
	return gemms(h, ta, tb, m, n, k, *alpha, a, lda, step_a, b, ldb, step_b, *beta, c, ldc, step_c, count);
}
} // extern "C"
