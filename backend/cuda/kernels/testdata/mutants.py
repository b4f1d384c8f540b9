#!/usr/bin/env python3
"""Breaks kernels.cu in so many ways and sees whether the tests find each:

    python3 mutants.py [NAME…]

Needs what .ci/cuda needs, and about an hour. A mutant is a name, what to replace
and by what, and the tests that must fail; those of BLIND are such that the
emulator's tests pass."""

import pathlib
import subprocess
import sys
import tempfile

BLIND = {"unwritten", "blocks race", "misaligned", "tail", "restrict", "bounds"}
KERNELS, ENGINE = "./backend/cuda/kernels", "./backend/cuda"
MUTANTS = [
    ("unwritten", "i += flat_step()) {\n		d[i] = x;", "i += flat_step()) {\n		if (d[i] != x) {\n			d[i] = x;\n		}", KERNELS, "TestElementwise"),
    ("blocks race", "		atomicAdd(out, first);", "		*out += first;", KERNELS, "TestPercentile"),
    ("misaligned", "	const int end = graphs[g + 1], v = view_of(views, nviews, first);\n	real scale",
     "	struct alignas(8) Pair { int first, end; };\n	const Pair pair = *(const Pair *)(graphs + g);\n	const int end = pair.end, v = view_of(views, nviews, pair.first);\n	real scale", KERNELS, "TestNorm"),
    ("tail", "		i += n & ~3u;\n	}\n	for (; i < n; i += flat_step()) {\n		d[i] = unary_op", "		i += n & ~3u;\n#ifdef __CUDACC_RTC__\n		return;\n#endif\n	}\n	for (; i < n; i += flat_step()) {\n		d[i] = unary_op", KERNELS, "TestElementwise"),
    ("restrict", "KERNEL(bias_relu, real *d, const real *a,", "KERNEL(bias_relu, real *__restrict__ d, const real *__restrict__ a,", ENGINE, "TestInterpretedEveryKernel"),
    ("bounds", "__launch_bounds__(256, 1)", "__launch_bounds__(128, 1)", KERNELS, "TestElementwise"),
    ("barrier before a sum", "	v = warp_sum(v, c.lanes);\n	__syncthreads();", "	v = warp_sum(v, c.lanes);", KERNELS, "TestNorm"),
    ("barrier within a sum", "		block_part[t / 32] = v;\n	}\n	__syncthreads();", "		block_part[t / 32] = v;\n	}", KERNELS, "TestReductions"),
    ("search", "		if (ptr[mid] <= i) {", "		if (ptr[mid] < i) {", KERNELS, "TestGroups"),
    ("transposed tile", "			tile[33 * i + tx] = s", "			tile[33 * tx + i] = s", KERNELS, "TestMoves"),
    ("half a warp", "	if (op == ROW_SUM) {\n		sum = warp_sum(sum);", "	if (op == ROW_SUM && lane < 16) {\n		sum = warp_sum(sum);", KERNELS, "TestReductions"),
    ("hub twice", "k += groups * HUB", "k += HUB", KERNELS, "TestSpMM"),
    ("beyond the rows", "{ return r < here && col() < cols; }", "{ return col() < cols; }", KERNELS, "TestGINLayer"),
    ("barrier of a tile", "			tile_product<COLS, false>(acc, tile, ws, slice, w1, in, hid);\n			__syncthreads();", "			tile_product<COLS, false>(acc, tile, ws, slice, w1, in, hid);", KERNELS, "TestGINLayer"),
    ("edge of a gradient", "e < n2 ? db1", "e <= n2 ? db1", KERNELS, "TestGINLayer"),
    ("prefix sum", "before += lane >= d ? below : 0;", "before += lane > d ? below : 0;", KERNELS, "TestPercentile"),
    ("plain counts", "				atomicAdd(&counts[(int)(k & 255)], 1u);\n			} else", "				counts[(int)(k & 255)] = counts[(int)(k & 255)] + 1u;\n			} else", KERNELS, "TestPercentile"),
    ("sign", "(v ? -4 : 4) * diff", "4 * diff", KERNELS, "TestContrast"),
    ("padding", "	zero_behind(c, d, graphs[ngraphs], rows);\n", "", KERNELS, "TestNorm"),
    ("constants of Adam", "		corrected[1] = sqrt(1 - pow(beta2, t));\n	}\n	__syncthreads();", "		corrected[1] = sqrt(1 - pow(beta2, t));\n	}", KERNELS, "TestTraining"),
    ("a step of Newton's", "sizeof(real) == 8 ? 2 : 0", "sizeof(real) == 8 ? 1 : 0", KERNELS, "TestReciprocal"),
    ("last table", "k = kind + STAGED * kinds_at_once; k < kinds;", "k = kind + STAGED * kinds_at_once; k < kinds - 1;", KERNELS, "TestSpMM"),
    ("barrier of the tables", "	__syncthreads();\n	if (EDGES && mine) {", "	if (!EDGES) {\n		__syncthreads();\n	}\n	if (EDGES && mine) {", KERNELS, "TestSpMM"),
    ("one chunk less", "int first = g * chunks, n = chunks;", "int first = g * chunks, n = chunks - chunks / 3;", KERNELS, "TestSegments"),
]


def main():
    root = pathlib.Path(__file__).resolve().parents[4]
    wrong = 0
    with tempfile.TemporaryDirectory() as copy:
        files = subprocess.run(["git", "ls-files", "-z"], cwd=root, stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(["xargs", "-0", "cp", "--parents", "-t", copy], input=files, cwd=root, check=True)
        source = pathlib.Path(copy, "backend/cuda/kernels/kernels.cu")
        text = source.read_text()

        def test(package, tests):
            command = ["go", "test", "-tags", "emulate", "-short", "-failfast", "-run", tests, package]
            return subprocess.run(command, cwd=copy, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

        for name, old, new, package, tests in MUTANTS:
            if sys.argv[1:] and name not in sys.argv[1:]:
                continue
            if text.count(old) != 1:
                sys.exit(f"{name}: kernels.cu has what is to be replaced {text.count(old)} times")
            source.write_text(text.replace(old, new))
            subprocess.run([sys.executable, source.parent / "ptx.py"], cwd=copy, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            out = test(package, tests)
            verdict = "found" if out.returncode and "build failed" not in out.stdout else "NOT FOUND"
            if name in BLIND:
                for blind in (KERNELS, "/./^emulated$"), (ENGINE, "^TestEmulated"):
                    if test(*blind).returncode:
                        verdict += f", but by the emulator too ({blind[0]})"
            wrong += verdict != "found"
            what = next((line.strip() for line in out.stdout.splitlines() if "_test.go:" in line or "panic" in line), out.stdout[-200:])
            print(f"{name}: {verdict}: {what[:200]}", flush=True)
    sys.exit(wrong > 0)


main()
