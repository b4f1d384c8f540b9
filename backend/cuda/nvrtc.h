#pragma once

// nvrtc_compile sets out to the PTX of source and returns 0. On failure it sets out to the
// message and returns the nvrtcResult, or nvrtc_absent if the compiler was not found. The
// caller frees out, which may be null.
enum { nvrtc_absent = -1 };
int nvrtc_compile(const char *source, const char *const *options, int count, char **out);
