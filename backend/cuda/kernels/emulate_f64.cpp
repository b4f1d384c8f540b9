//go:build emulate

#include "emulate.h"

#define REAL double
namespace emu_f64 {
#include "kernels.cu"
}
