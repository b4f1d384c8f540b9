#pragma once
#include <stddef.h>

// delay_status returns the status of the driver's cuInit, or delay_not_loaded with the
// reason in delay_message.
enum { delay_not_loaded = -1 };
int delay_status(void);
const char *delay_message(void);

// delay_open opens the library that an environment variable names or, if it is unset, the
// first of sonames that exists. On failure it returns null and writes the reason.
void *delay_open(const char *variable, const char *const *sonames, char *why, size_t size);
