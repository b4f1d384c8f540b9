//go:build cuda && linux && amd64 && cgo

// The delay-load layer. It defines every function of the NVIDIA driver that the
// binding calls, as a jump through a slot. The slots lead to absent until
// libcuda.so.1 is opened. So a program with this layer starts without a driver, and can
// report that.
//
// A jump leaves registers and stack as they are, so no prototypes are needed. This file
// must not include cuda.h, whose macros rename the functions.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "delay.h"

// absent replaces a function that the driver lacks; it returns CUDA_ERROR_UNKNOWN.
static int absent(void) { return 999; }

#define S(name)                                                             \
	__attribute__((visibility("hidden"), used)) void *slot_##name = absent; \
	__asm__(".pushsection .text,\"ax\",@progbits\n"                         \
	        ".globl " #name "\n"                                            \
	        ".type " #name ",@function\n" #name ": jmp *slot_" #name        \
	        "(%rip)\n"                                                      \
	        ".size " #name ", .-" #name "\n"                                \
	        ".popsection\n");
#include "symbols.h"
#undef S

static const struct { const char *name; void **slot; } slots[] = {
#define S(name) {#name, &slot_##name},
#include "symbols.h"
#undef S
};

static int status = delay_not_loaded;
static char message[512];

const char *delay_message(void) { return message; }
int delay_status(void) { return status; }

void *delay_open(const char *variable, const char *const *sonames, char *why, size_t size) {
	const char *path = getenv(variable);
	void *lib = NULL;
	why[0] = 0;
	if (path && *path) {
		lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		if (!lib) {
			snprintf(why, size, "%s=%s: %s", variable, path, dlerror());
		}
		return lib;
	}
	for (; *sonames && !lib; sonames++) {
		lib = dlopen(*sonames, RTLD_NOW | RTLD_LOCAL);
		if (!lib) {
			size_t n = strlen(why);
			snprintf(why + n, size - n, "%s%s", n ? "; " : "", dlerror());
		}
	}
	return lib;
}

// cuInit opens the driver. The binding calls it before main and ends the process if it
// fails. So it never fails; delay_status returns the actual status.
int cuInit(unsigned flags) {
	static const char *const sonames[] = {"libcuda.so.1", NULL};
	if (status != delay_not_loaded) {
		return 0;
	}
	void *lib = delay_open("SPECMATCH_LIBCUDA", sonames, message, sizeof message);
	if (!lib) {
		return 0;
	}
	int (*init)(unsigned) = (int (*)(unsigned))dlsym(lib, "cuInit");
	if (!init) {
		snprintf(message, sizeof message, "it has no cuInit");
		return 0;
	}
	for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
		void *f = dlsym(lib, slots[i].name);
		if (f) {
			*slots[i].slot = f;
		}
	}
	status = init(flags);
	return 0;
}
