//go:build cuda && linux && amd64 && cgo

// NVIDIA's run-time compiler, opened on demand. The prototypes of its functions are the
// same from CUDA 11 to 13.

#define _GNU_SOURCE
#include "nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "delay.h"

typedef void *program;

// text returns a text of a program, by a pair of functions for its size and the text, or
// null.
static char *text(int (*size)(program, size_t *), int (*get)(program, char *), program p) {
	size_t n = 0;
	char *s = NULL;
	if (size(p, &n) == 0 && (s = calloc(n + 1, 1)) && get(p, s) != 0) {
		free(s);
		s = NULL;
	}
	return s;
}

int nvrtc_compile(const char *source, const char *const *options, int count, char **out) {
	static const char *const sonames[] = {"libnvrtc.so.13", "libnvrtc.so.12", NULL};
	char why[1024];
	*out = NULL;
	void *lib = delay_open("SPECMATCH_LIBNVRTC", sonames, why, sizeof why);
	if (!lib) {
		if (asprintf(out, "%s", why) < 0) *out = NULL;
		return nvrtc_absent;
	}
	int (*create)(program *, const char *, const char *, int, const char *const *, const char *const *) = dlsym(lib, "nvrtcCreateProgram");
	int (*compile)(program, int, const char *const *) = dlsym(lib, "nvrtcCompileProgram");
	int (*destroy)(program *) = dlsym(lib, "nvrtcDestroyProgram");
	int (*log_size)(program, size_t *) = dlsym(lib, "nvrtcGetProgramLogSize");
	int (*get_log)(program, char *) = dlsym(lib, "nvrtcGetProgramLog");
	int (*ptx_size)(program, size_t *) = dlsym(lib, "nvrtcGetPTXSize");
	int (*get_ptx)(program, char *) = dlsym(lib, "nvrtcGetPTX");
	int r = nvrtc_absent;
	if (create && compile && destroy && log_size && get_log && ptx_size && get_ptx) {
		program p = NULL;
		r = create(&p, source, "kernels.cu", 0, NULL, NULL);
		if (r == 0) {
			r = compile(p, count, options);
			*out = r == 0 ? text(ptx_size, get_ptx, p) : text(log_size, get_log, p);
			destroy(&p);
		}
	} else if (asprintf(out, "it is not NVRTC") < 0) {
		*out = NULL;
	}
	dlclose(lib);
	return r;
}
