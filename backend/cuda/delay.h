#pragma once
#include <stddef.h>

// delay_status returns what cuInit of the driver returned, or delay_not_loaded,
// with the reason in delay_message.
enum { delay_not_loaded = -1 };
int delay_status(void);
const char *delay_message(void);

// delay_open opens the library that an environment variable names or, without
// it, the first that there is of sonames. On failure it returns null and says
// why.
void *delay_open(const char *variable, const char *const *sonames, char *why, size_t size);
