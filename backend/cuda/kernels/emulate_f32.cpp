//go:build emulate

#include "emulate.h"

#define REAL float
namespace emu_f32 {
#include "kernels.cu"
}
