#pragma once

// nvrtc_compile sets out to the PTX of source and returns 0; or to what is wrong,
// and returns nvrtc_absent, if the compiler was not found, or its nvrtcResult. The
// caller frees out, which may be null.
enum { nvrtc_absent = -1 };
int nvrtc_compile(const char *source, const char *const *options, int count, char **out);
