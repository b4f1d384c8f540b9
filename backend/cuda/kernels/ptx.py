#!/usr/bin/env python3
"""Compiles kernels.cu to kernels_f32.ptx and kernels_f64.ptx, and writes statistics of
the machine code to sass.txt (go generate). With -check it compares all three files with
fresh ones instead. Fails if a kernel spills. Uses the NVRTC, ptxas and nvdisasm that
toolkit.sh fetches; equal sources give equal bytes. Needs no GPU."""

import ctypes
import difflib
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
OPTIONS = ["--gpu-architecture=compute_80", "--std=c++17", "--device-as-default-execution-space"]
MAX_SHARED = 48 << 10  # bytes a block, what every device gives without asking
PTXAS_ARCH = "sm_90"
# Of a multiprocessor of sm_90.
REGISTERS, WARPS, SHARED, BLOCKS = 64 << 10, 64, 227 << 10, 32
HEADER = f"""\
# The machine code of the kernels for {PTXAS_ARCH}: go generate writes it, .ci/cuda compares.
#
# Columns: registers a thread; bytes of shared memory a block; blocks that a
# multiprocessor can run at a time; instructions that load or store local memory (spills,
# arrays out of registers); divisions of integers and doubles within loops; and loads
# from global memory by their width in bits.
#
# kernel                   registers  shared  blocks  local  divisions  loads: 32   64  128
"""

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


def machine_code(kit, file):
    """Returns the lines of sass.txt for the kernels of a PTX file, and what must not be."""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as cubin:
        command = [kit / "bin/ptxas", f"-arch={PTXAS_ARCH}", "-v", "-o", cubin.name, file]
        report = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=True).stderr
        command = [kit / "bin/nvdisasm", "-c", cubin.name]
        code = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    bounds = {}
    for name, threads in re.findall(r"\.entry (\w+)\([^)]*\)\s*\.maxntid (\d+)", file.read_text()):
        bounds[name] = int(threads) // 32
    bodies = dict(re.findall(r"\.text\.(\w+):\n(.*?)(?=\n//-----|\Z)", code, re.DOTALL))
    lines, bad = [], []
    for part in report.split("Compiling entry function ")[1:]:
        name = part.split("'")[1]
        registers = int(re.search(r"Used (\d+) registers", part).group(1))
        shared = int((re.search(r"(\d+) bytes smem", part) or [0, 0])[1])
        warps = bounds[name]
        blocks = min(BLOCKS, WARPS // warps, REGISTERS // (-registers % 8 + registers) // 32 // warps, SHARED // (shared + 1024))
        local, divisions, loads = counts(bodies[name])
        lines.append(f"{name:26} {registers:9} {shared:7} {blocks:7} {local:6} {divisions:10}       {loads[32]:5} {loads[64]:4} {loads[128]:4}\n")
        if local or re.search(r"[1-9]\d* bytes (?:spill|stack)", part):
            bad.append(f"{file.name}: {name} spills registers, or has arrays out of registers")
        if shared > MAX_SHARED:
            bad.append(f"{file.name}: {name} shares more than {MAX_SHARED} bytes")
    return lines, bad


def counts(body):
    """Counts instructions of a kernel: those on local memory, divisions within loops,
    and global loads by width."""
    labels, code = {}, []
    for line in body.splitlines():
        if m := re.match(r"\s*(\.L_x_\d+):", line):
            labels[m[1]] = len(code)
        elif m := re.match(r"\s*/\*[0-9a-f]+\*/\s+(.*?) ;", line):
            code.append(m[1])
    inside = set()
    for at, instruction in enumerate(code):
        if m := re.search(r"BRA.* `\((\.L_x_\d+)\)", instruction):
            inside.update(range(labels.get(m[1], at + 1), at + 1))
    loads = {32: 0, 64: 0, 128: 0}
    local = divisions = 0
    for at, instruction in enumerate(code):
        local += bool(re.search(r"\b(LDL|STL)\b", instruction))
        # A division of 32-bit integers begins with a conversion that rounds up, others
        # are calls.
        divisions += at in inside and bool(re.search(r"\bI2F\S*\.RP\b|CALL.*(div_[su]64|div_rn_f64)", instruction))
        if m := re.search(r"\bLDG\S*", instruction):
            loads[int((re.search(r"\.(64|128)\b", m[0]) or [0, 32])[1])] += 1
    return local, divisions, loads


def main():
    check = sys.argv[1:] == ["-check"]
    if sys.argv[1:] and not check:
        sys.exit("usage: ptx.py [-check]")
    kit = pathlib.Path(subprocess.run([HERE / "toolkit.sh"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip())
    ctypes.CDLL(str(kit / "lib/libnvrtc-builtins.so.12.6"), ctypes.RTLD_GLOBAL)
    nvrtc = ctypes.CDLL(str(kit / "lib/libnvrtc.so.12"))
    bad, table = [], HEADER
    for name, real in ("f32", "float"), ("f64", "double"):
        file = HERE / f"kernels_{name}.ptx"
        ptx = compile(nvrtc, real)
        if not check:
            file.write_text(ptx)
        elif not file.exists() or file.read_text() != ptx:
            bad.append(f"{file.name} is not what kernels.cu compiles to: run go generate ./backend/cuda/kernels")
            continue
        lines, wrong = machine_code(kit, file)
        table += f"{name}\n" + "".join(lines)
        bad += wrong
    kept = HERE / "sass.txt"
    if not check:
        kept.write_text(table)
    elif not bad and (not kept.exists() or kept.read_text() != table):
        changes = difflib.unified_diff(kept.read_text().splitlines() if kept.exists() else [], table.splitlines(), "sass.txt", "now", lineterm="", n=0)
        bad.append("\n".join([*changes, "sass.txt is not what the kernels become: run go generate ./backend/cuda/kernels, and look at what changed"]))
    if bad:
        sys.exit("\n".join(bad))


main()
