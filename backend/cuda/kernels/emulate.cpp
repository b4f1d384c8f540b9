//go:build emulate

#include "emulate.h"

// emu_launch runs a kernel for elements of the given size. It returns 0, or 1 with a
// message.
extern "C" int emu_launch(int bytes, const char *name, const unsigned *grid, const unsigned *block, unsigned shared,
	const uint64_t *words, size_t count, unsigned order, char *message, size_t size) {
	std::lock_guard<std::mutex> lock(emu::dev.mutex);
	emu::dev.order = order;
	const char *wrong = emu::launch(bytes, name, {grid[0], grid[1], grid[2]}, {block[0], block[1], block[2]}, shared, words, count);
	if (wrong) {
		snprintf(message, size, "%s", wrong);
	}
	return wrong != nullptr;
}
