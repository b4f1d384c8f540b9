// A CUDA device on one host thread: a C++ compiler compiles kernels.cu against it, and
// tests check the kernels' logic without a GPU.
//
// The threads of a block are fibres. One runs until it waits, at a barrier or a
// warp's exchange, or ends; then the next runs. A thread that never waits passes
// its stack to the next, so a kernel without barriers costs little more than a
// loop. Blocks run one after the other. SetOrder chooses the order of both: a
// result that depends on it shows a race.
//
// Errors of a launch, with the line of the kernel:
//
//   - a thread that ends, or waits elsewhere, while others of its block wait at
//     a barrier, or others of its warp at an exchange: divergence;
//   - a read of shared memory that the block has not written;
//   - two threads that access one element of shared memory, one of them writing,
//     with no barrier of the block or the warp between them: a race, in whatever
//     order they happened to run;
//   - an index outside a shared array.
//
// Memory is the host's. An access to an unmapped page is an error of the launch,
// too, so tests put their arrays between such pages.
//
// The emulation cannot show rounding to the last bit (it fuses other multiply-adds
// and has another libm), speed, registers, or the memory model between blocks.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifndef __x86_64__
#error "the switch between fibres is written for amd64"
#endif

// Products are fused into sums, as on the device (in GNU's dialect of C++; a
// processor of 2013 or newer).
#pragma GCC target("fma")

struct emu_dim3 {
	unsigned x, y, z;
};

namespace emu {

constexpr int warp = 32, max_threads = 1024;
constexpr size_t stack_bytes = 256 << 10;

enum State : uint8_t { ready, at_warp, at_block, ended };

struct Thread {
	void *sp;    // of the stopped fibre
	void *stack; // null before it starts and after it ended
	State state;
	int line;         // of the kernel, where it waits
	unsigned between; // the number of exchanges of its warp that it has passed
	emu_dim3 idx;
};

struct Warp {
	uint64_t slot[2][warp]; // values of the lanes in this exchange and the previous one
	int arrived;
};

struct Body {
	virtual void run() = 0;
};

struct Device {
	emu_dim3 grid, block, block_idx;
	int threads, live, arrived;
	unsigned epoch;   // the number of barriers that the block has passed
	uint64_t serial;  // of the block, never reused
	int current;      // the thread that runs
	Thread thread[max_threads];
	Warp warps[max_threads / warp];
	void *main_sp;
	std::vector<void *> stacks;
	Body *body;
	bool failed;
	char message[512];
	const char *kernel;
	unsigned order;
	std::mutex mutex;
	struct sigaction before; // the handler outside a launch
	void *fault;
};

inline Device dev;

// emu_switch saves the registers that a call must preserve, stores the stack
// pointer, and continues on the other stack where it stopped.
extern "C" void emu_switch(void **save, void *to);
asm(R"(
	.pushsection .text, "ax", @progbits
	.weak emu_switch
	.type emu_switch, @function
emu_switch:
	pushq %rbp
	pushq %rbx
	pushq %r12
	pushq %r13
	pushq %r14
	pushq %r15
	movq %rsp, (%rdi)
	movq %rsi, %rsp
	popq %r15
	popq %r14
	popq %r13
	popq %r12
	popq %rbx
	popq %rbp
	ret
	.size emu_switch, .-emu_switch
	.popsection
)");

inline void to_main() { emu_switch(&dev.thread[dev.current].sp, dev.main_sp); }

// fail ends the launch and keeps the first message.
[[noreturn]] inline void fail(int line, const char *format, ...) {
	if (!dev.failed) {
		char what[256];
		va_list args;
		va_start(args, format);
		vsnprintf(what, sizeof what, format, args);
		va_end(args);
		char where[32] = "";
		if (line > 0) {
			snprintf(where, sizeof where, "kernels.cu:%d: ", line);
		}
		snprintf(dev.message, sizeof dev.message, "%s: %sblock (%u,%u,%u) thread %d: %s",
			dev.kernel, where, dev.block_idx.x, dev.block_idx.y, dev.block_idx.z, dev.current, what);
		dev.failed = true;
	}
	to_main();
	abort(); // a failed launch is never resumed
}

inline thread_local bool launching;

[[noreturn]] inline void faulted() { fail(0, "touches address %p, which is not its memory", dev.fault); }

// on_fault makes a kernel's thread continue in faulted after a fault. It passes other
// faults on.
inline void on_fault(int number, siginfo_t *info, void *context) {
	if (!launching) {
		if (dev.before.sa_flags & SA_SIGINFO) {
			dev.before.sa_sigaction(number, info, context);
		} else {
			sigaction(number, &dev.before, nullptr);
		}
		return;
	}
	dev.fault = info->si_addr;
	greg_t *regs = ((ucontext_t *)context)->uc_mcontext.gregs;
	regs[REG_RSP] = ((regs[REG_RSP] - 256) & ~15ll) - 8; // as after a call
	regs[REG_RIP] = (greg_t)faulted;
}

// Watch handles faults during its lifetime.
struct Watch {
	Watch() {
		struct sigaction a;
		memset(&a, 0, sizeof a);
		a.sa_sigaction = on_fault;
		a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
		sigaction(SIGSEGV, &a, &dev.before);
		launching = true;
	}
	~Watch() {
		launching = false;
		sigaction(SIGSEGV, &dev.before, nullptr);
	}
};

inline void fibre() {
	dev.body->run();
	dev.thread[dev.current].state = ended;
	to_main();
	abort();
}

inline void start(Thread &t) {
	if (dev.stacks.empty()) {
		void *p = mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED) {
			perror("emu: mmap");
			abort();
		}
		dev.stacks.push_back(p);
	}
	t.stack = dev.stacks.back();
	dev.stacks.pop_back();
	// The first switch pops six registers and returns into fibre, with the stack as
	// after a call.
	void **sp = (void **)((char *)t.stack + stack_bytes) - 2;
	*--sp = nullptr;
	*--sp = (void *)fibre;
	sp -= 6;
	memset(sp, 0, 6 * sizeof *sp);
	t.sp = sp;
}

// random is splitmix64.
inline uint64_t random(uint64_t &s) {
	uint64_t x = s += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

// permutation fills p with 0..n-1 in the chosen order: forward, reverse, or shuffled.
inline void permutation(std::vector<int> &p, int n, uint64_t &state) {
	p.resize(n);
	for (int i = 0; i < n; i++) {
		p[i] = dev.order == 1 ? n - 1 - i : i;
	}
	if (dev.order > 1) {
		for (int i = n - 1; i > 0; i--) {
			std::swap(p[i], p[random(state) % (i + 1)]);
		}
	}
}

inline void stuck() {
	int at = 0, lines = 0, first = 0, done = 0, who = 0;
	for (int t = 0; t < dev.threads; t++) {
		Thread &x = dev.thread[t];
		if (x.state == ended) {
			done++;
			continue;
		}
		if (at++ == 0) {
			first = x.line;
			who = t;
		}
		lines += x.line != first;
	}
	dev.current = who;
	snprintf(dev.message, sizeof dev.message, "%s: kernels.cu:%d: block (%u,%u,%u): divergence: %d threads wait (%d of them on other lines), %d have ended",
		dev.kernel, first, dev.block_idx.x, dev.block_idx.y, dev.block_idx.z, at, lines, done);
	dev.failed = true;
}

inline void run_block(std::vector<int> &order, uint64_t &state) {
	dev.serial++;
	dev.epoch = 0;
	dev.arrived = 0;
	dev.live = dev.threads;
	for (int t = 0; t < dev.threads; t++) {
		Thread &x = dev.thread[t];
		x.stack = nullptr;
		x.state = ready;
		x.between = 0;
		unsigned u = t;
		x.idx = {u % dev.block.x, u / dev.block.x % dev.block.y, u / dev.block.x / dev.block.y};
	}
	for (int w = 0; w * warp < dev.threads; w++) {
		dev.warps[w].arrived = 0;
	}
	permutation(order, dev.threads, state);
	while (dev.live > 0 && !dev.failed) {
		bool moved = false;
		for (int t : order) {
			Thread &x = dev.thread[t];
			if (x.state != ready) {
				continue;
			}
			moved = true;
			if (!x.stack) {
				start(x);
			}
			dev.current = t;
			emu_switch(&dev.main_sp, x.sp);
			if (dev.failed) {
				break;
			}
			if (x.state == ended) {
				dev.stacks.push_back(x.stack);
				x.stack = nullptr;
				dev.live--;
			}
		}
		if (!moved) {
			stuck();
		}
	}
	if (dev.failed) {
		for (int t = 0; t < dev.threads; t++) {
			if (dev.thread[t].stack) {
				dev.stacks.push_back(dev.thread[t].stack);
			}
		}
	}
}

// barrier waits for all threads of the block.
inline void barrier(int line) {
	Thread &me = dev.thread[dev.current];
	me.line = line;
	me.state = at_block;
	if (++dev.arrived == dev.threads) {
		for (int t = 0; t < dev.threads; t++) {
			if (dev.thread[t].line != line) {
				fail(line, "divergence: thread %d is at the barrier of line %d", t, dev.thread[t].line);
			}
			dev.thread[t].state = ready;
		}
		dev.arrived = 0;
		dev.epoch++;
	}
	to_main();
}

// exchange passes v to the warp, waits for all its lanes, and returns their values.
inline const uint64_t *exchange(unsigned mask, uint64_t v, int line) {
	Thread &me = dev.thread[dev.current];
	Warp &w = dev.warps[dev.current / warp];
	int first = dev.current / warp * warp;
	if (mask != 0xffffffffu) {
		fail(line, "a mask that is not the whole warp");
	}
	uint64_t *slot = w.slot[me.between++ & 1];
	slot[dev.current - first] = v;
	me.line = line;
	me.state = at_warp;
	if (++w.arrived == warp) {
		for (int t = first; t < first + warp; t++) {
			if (dev.thread[t].line != line) {
				fail(line, "divergence: lane %d is at line %d", t - first, dev.thread[t].line);
			}
			dev.thread[t].state = ready;
		}
		w.arrived = 0;
	}
	to_main();
	return slot;
}

template <class T> uint64_t bits(T v) {
	static_assert(sizeof v <= 8, "wide type in an exchange");
	uint64_t b = 0;
	memcpy(&b, &v, sizeof v);
	return b;
}

template <class T> T lane(unsigned mask, T v, int from, int width, int line) {
	int me = dev.current % warp, first = me / width * width;
	const uint64_t *slot = exchange(mask, bits(v), line);
	if (from >= first && from < first + width) {
		memcpy(&v, &slot[from], sizeof v);
	}
	return v;
}

// Access is one access to an element of shared memory.
struct Access {
	uint64_t serial;
	unsigned epoch, between;
	int thread;
	bool atomic;

	// collides reports whether nothing orders this access before the current one.
	bool collides(bool atomic_now) const {
		if (serial != dev.serial || epoch != dev.epoch || thread == dev.current || (atomic && atomic_now)) {
			return false;
		}
		return thread / warp != dev.current / warp || between == dev.thread[dev.current].between;
	}
};

// Shared is an array in shared memory.
template <class T, int N> struct Shared {
	T data[N];
	Access write[N], read[N][2];
	const char *name;
	int line;

	Access now(bool atomic) const { return {dev.serial, dev.epoch, dev.thread[dev.current].between, dev.current, atomic}; }

	void inside(int i) const {
		if (i < 0 || i >= N) {
			fail(line, "%s[%d] of %d elements", name, i, N);
		}
	}
	void against(const Access &a, bool atomic, int i, const char *what) const {
		if (a.collides(atomic)) {
			fail(line, "race: %s[%d] is %s by threads %d and %d with no barrier between", name, i, what, a.thread, dev.current);
		}
	}
	T load(int i, bool atomic = false) {
		inside(i);
		if (write[i].serial != dev.serial) {
			fail(line, "%s[%d] is read before it was written", name, i);
		}
		against(write[i], atomic, i, "written and read");
		Access a = now(atomic);
		if (read[i][1].serial != dev.serial || read[i][1].thread != a.thread) {
			read[i][0] = read[i][1];
		}
		read[i][1] = a;
		return data[i];
	}
	void store(int i, T v, bool atomic = false) {
		inside(i);
		against(write[i], atomic, i, "written twice");
		against(read[i][0], atomic, i, "read and written");
		against(read[i][1], atomic, i, "read and written");
		write[i] = now(atomic);
		data[i] = v;
	}

	struct Ref {
		Shared &s;
		int i;
		operator T() const { return s.load(i); }
		const Ref &operator=(T v) const { s.store(i, v); return *this; }
		const Ref &operator=(const Ref &o) const { s.store(i, o.s.load(o.i)); return *this; }
		const Ref &operator+=(T v) const { return *this = (T)(s.load(i) + v); }
		struct Pointer { Shared &s; int i; };
		Pointer operator&() const { return {s, i}; }
	};
	Ref operator[](int i) { return {*this, i}; }
};

// Messages name the arrays as the kernel does.
template <class S> struct Named {
	Named(S &s, const char *name, int line) { s.name = name; s.line = line; }
};

struct Entry {
	void (*call)(void *f, const uint64_t *words);
	void *f;
	size_t params;
};

// registry maps the size of the elements and the name to a kernel.
inline std::map<std::pair<int, std::string>, Entry> &registry() {
	static std::map<std::pair<int, std::string>, Entry> r;
	return r;
}

struct Register {
	template <class... A> Register(int bytes, const char *name, void (*f)(A...)) {
		registry()[{bytes, name}] = {&call<A...>, (void *)f, sizeof...(A)};
	}
	template <class... A> static void call(void *f, const uint64_t *words) {
		unpack((void (*)(A...))f, words, std::index_sequence_for<A...>());
	}
	template <class T> static T value(const uint64_t &word) {
		T v;
		memcpy(&v, &word, sizeof v);
		return v;
	}
	template <class... A, size_t... I> static void unpack(void (*f)(A...), const uint64_t *words, std::index_sequence<I...>) {
		f(value<A>(words[I])...);
	}
};

// launch runs a kernel and returns null, or the error.
inline const char *launch(int bytes, const char *name, emu_dim3 grid, emu_dim3 block, unsigned shared, const uint64_t *words, size_t count) {
	dev.kernel = name;
	dev.failed = false;
	auto report = [](const char *format, auto... args) {
		snprintf(dev.message, sizeof dev.message, format, args...);
		return (const char *)dev.message;
	};
	auto it = registry().find({bytes, name});
	if (it == registry().end()) {
		return report("there is no kernel %s", name);
	}
	if (count != it->second.params) {
		return report("%s has %zu parameters, not %zu", name, it->second.params, count);
	}
	uint64_t threads = (uint64_t)block.x * block.y * block.z, blocks = (uint64_t)grid.x * grid.y * grid.z;
	if (threads == 0 || threads > max_threads || threads % warp != 0 || blocks == 0 || blocks > 0x7fffffff || grid.y > 65535 || grid.z > 65535 || shared != 0) {
		return report("%s: grid (%u,%u,%u) of blocks (%u,%u,%u) with %u bytes cannot be launched, or has parts of warps, or dynamic shared memory",
			name, grid.x, grid.y, grid.z, block.x, block.y, block.z, shared);
	}
	struct Call : Body {
		Entry *e;
		const uint64_t *words;
		void run() override { e->call(e->f, words); }
	} call;
	call.e = &it->second;
	call.words = words;
	dev.body = &call;
	dev.grid = grid;
	dev.block = block;
	dev.threads = (int)threads;
	uint64_t state = dev.order;
	std::vector<int> order, block_order;
	permutation(block_order, (int)blocks, state);
	Watch watch;
	for (unsigned b : block_order) {
		dev.block_idx = {b % grid.x, b / grid.x % grid.y, b / grid.x / grid.y};
		run_block(order, state);
		if (dev.failed) {
			return dev.message;
		}
	}
	return nullptr;
}

} // namespace emu

// The language of kernels.cu.
#define __device__
#define __global__
#define __forceinline__ inline
#define KERNEL(name, ...)                                                   \
	static void name(__VA_ARGS__);                                          \
	static emu::Register emu_registered_##name(sizeof(REAL), #name, name);  \
	static void name(__VA_ARGS__)
#define KERNEL_BLOCKS(name, floats, doubles, ...) KERNEL(name, __VA_ARGS__)
#define SHARED(type, name, n)                  \
	static emu::Shared<type, (n)> name;        \
	static emu::Named<decltype(name)> emu_named_##name(name, #name, __LINE__)

#define threadIdx (emu::dev.thread[emu::dev.current].idx)
#define blockIdx (emu::dev.block_idx)
#define blockDim (emu::dev.block)
#define gridDim (emu::dev.grid)

#define __syncthreads() emu::barrier(__LINE__)
#define __shfl_sync(mask, v, from, width) emu::lane(mask, v, emu::dev.current % 32 / (width) * (width) + ((from) & ((width) - 1)), width, __LINE__)
#define __shfl_xor_sync(mask, v, d, width) emu::lane(mask, v, (emu::dev.current % 32) ^ (d), width, __LINE__)
#define __shfl_up_sync(mask, v, d, width) emu::lane(mask, v, emu::dev.current % 32 - (d), width, __LINE__)
#define __ballot_sync(mask, p) emu::ballot(mask, p, __LINE__)

namespace emu {
inline unsigned ballot(unsigned mask, bool p, int line) {
	const uint64_t *slot = exchange(mask, p, line);
	unsigned b = 0;
	for (int i = 0; i < warp; i++) {
		b |= (unsigned)slot[i] << i;
	}
	return b;
}
} // namespace emu

template <class P, class T> auto atomicAdd(P p, T v) -> decltype(p.s.load(p.i, true)) {
	auto old = p.s.load(p.i, true);
	p.s.store(p.i, old + v, true);
	return old;
}
template <class T, class U> T atomicAdd(T *p, U v) {
	T old = *p;
	*p = old + v;
	return old;
}

typedef unsigned long long uint64;
typedef uintptr_t pointer_bits;

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline double rsqrt(double x) { return 1 / sqrt(x); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
