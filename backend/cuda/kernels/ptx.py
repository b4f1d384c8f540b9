#!/usr/bin/env python3
"""Compiles kernels.cu to kernels_f32.ptx and kernels_f64.ptx (go generate), or,
with -check, compares them with a fresh compilation and holds ptxas's report
against a limit of spilled bytes. Uses the NVRTC and ptxas that toolkit.sh
fetches; equal sources give equal bytes. Needs no GPU."""

import ctypes
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
OPTIONS = ["--gpu-architecture=compute_80", "--std=c++17", "--device-as-default-execution-space"]
MAX_SPILLED = 0  # bytes a thread, of any kernel: spilled registers, arrays out of registers
MAX_SHARED = 48 << 10  # bytes a block, what every device gives without asking
PTXAS_ARCH = "sm_90"


def compile(nvrtc, real):
    """Returns the PTX of kernels.cu for elements of type real."""

    def call(name, *args):
        status = getattr(nvrtc, "nvrtc" + name)(*args)
        return status and nvrtc.nvrtcGetErrorString(status).decode()

    def text(what):
        size = ctypes.c_size_t()
        call(f"Get{what}Size", program, ctypes.byref(size))
        data = ctypes.create_string_buffer(size.value)
        call(f"Get{what}", program, data)
        return data.value.decode()

    nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
    program = ctypes.c_void_p()
    source = (HERE / "kernels.cu").read_bytes()
    options = [o.encode() for o in OPTIONS + [f"--define-macro=REAL={real}"]]
    wrong = call("CreateProgram", ctypes.byref(program), source, b"kernels.cu", 0, None, None)
    wrong = wrong or call("CompileProgram", program, len(options), (ctypes.c_char_p * len(options))(*options))
    log = text("ProgramLog").strip()
    if wrong or log:
        sys.exit(f"{log}\nkernels.cu for {real}: {wrong or 'warnings count as errors'}")
    return text("PTX")


def report(ptxas, file):
    """Prints registers, shared memory and spills of every kernel; returns the
    kernels beyond the limits."""
    out = subprocess.run(
        [ptxas, f"-arch={PTXAS_ARCH}", "-v", "-o", "/dev/null", str(file)], stderr=subprocess.PIPE, text=True, check=True
    ).stderr
    beyond = []
    print(f"{file.name}, {PTXAS_ARCH}:  registers  shared  spilled")
    for part in out.split("Compiling entry function ")[1:]:
        name = part.split("'")[1]
        spilled = sum(int(n) for n in re.findall(r"(\d+) bytes (?:spill|stack)", part))
        registers = re.search(r"Used (\d+) registers", part).group(1)
        shared = re.search(r"(\d+) bytes smem", part)
        shared = int(shared.group(1)) if shared else 0
        print(f"  {name:24} {registers:>9} {shared:>7} {spilled:>8}")
        if spilled > MAX_SPILLED or shared > MAX_SHARED:
            beyond.append(name)
    return beyond


def main():
    check = sys.argv[1:] == ["-check"]
    if sys.argv[1:] and not check:
        sys.exit("usage: ptx.py [-check]")
    kit = pathlib.Path(subprocess.run([HERE / "toolkit.sh"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
    ctypes.CDLL(str(kit / "lib/libnvrtc-builtins.so.12.6"), ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(kit / "lib/libnvrtc.so.12"))
    bad = []
    for name, real in ("f32", "float"), ("f64", "double"):
        file = HERE / f"kernels_{name}.ptx"
        ptx = compile(nvrtc, real)
        if not check:
            file.write_text(ptx)
            continue
        if not file.exists() or file.read_text() != ptx:
            bad.append(f"{file.name} is not what kernels.cu compiles to: run go generate ./backend/cuda/kernels")
            continue
        for kernel in report(kit / "bin/ptxas", file):
            bad.append(f"{file.name}: {kernel} spills more than {MAX_SPILLED} bytes a thread or shares more than {MAX_SHARED} bytes")
    if bad:
        sys.exit("\n".join(bad))


main()
