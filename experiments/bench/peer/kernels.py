#!/usr/bin/env python3
"""Matrix products and sums over neighbours in PyTorch, one at a time, for
the benchmark PeerKernels of experiments/bench to time in turn with its own.

    python3 kernels.py --threads 1

answers each line of JSON with one:

    {"op": "gemm", "ta": false, "tb": true, "m": 2, "n": 3, "k": 4}
    {"op": "spmm", "ptr": [0, 1, 2], "adj": [1, 0], "width": 32}
        prepares op(A)·op(B), or x + A·x for a sparse A of ones in compressed
        rows, multiplied in coordinate form, and tells the sum of the result
        times the numbers that the operands are made of
    {"op": "time", "ms": 200}
        repeats it for so long and tells the median time of a call

The first line, unasked, is the versions. A matrix of n numbers holds
((i·7919) mod 1009 - 504)/1009 for i from 0 to n-1, row by row.

Needs torch and numpy; restarts itself in the environment of environment.py.
"""
import argparse
import json
import os
import sys
import time

from environment import tuned_environment

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('--threads', type=int, default=1)
args = parser.parse_args()
tuned_environment(args.threads)

import numpy as np  # noqa: E402
import torch  # noqa: E402

torch.set_num_threads(args.threads)
torch.set_grad_enabled(False)


def numbers(rows, cols):
    i = np.arange(rows * cols, dtype=np.int64)
    return torch.from_numpy((((i * 7919) % 1009 - 504) / 1009).astype(np.float32).reshape(rows, cols))


def gemm(q):
    m, n, k = q['m'], q['n'], q['k']
    a = numbers(k, m).t() if q['ta'] else numbers(m, k)
    b = numbers(n, k).t() if q['tb'] else numbers(k, n)
    c = torch.zeros(m, n)
    return lambda: torch.mm(a, b, out=c)


def spmm(q):
    ptr, adj, n = torch.tensor(q['ptr']), torch.tensor(q['adj']), len(q['ptr']) - 1
    rows = torch.repeat_interleave(torch.arange(n), ptr.diff())
    a = torch.sparse_coo_tensor(torch.stack([rows, adj]), torch.ones(len(adj)), (n, n)).coalesce()
    x = numbers(n, q['width'])
    return lambda: torch.sparse.addmm(x, a, x)


def median_ms(f, ms):
    for _ in range(2):
        f()
    start = time.perf_counter()
    f()
    inner = max(1, int(0.004 / (time.perf_counter() - start)))
    times, end = [], time.perf_counter() + ms / 1e3
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        for _ in range(inner):
            f()
        times.append((time.perf_counter() - start) / inner)
    return 1e3 * float(np.median(times))


def answer(x):
    print(json.dumps(x), flush=True)


def blas():
    """The library that computes the products, by its file or PyTorch's word."""
    torch.mm(torch.ones(2, 2), torch.ones(2, 2))
    with open('/proc/self/maps') as maps:
        files = {os.path.realpath(line.split()[-1]) for line in maps if '/' in line}
    for f in sorted(files):
        if os.path.basename(f).startswith(('libopenblas', 'libmkl_core', 'libblas')):
            return '/'.join(f.split('/')[-2:])
    return 'MKL inside PyTorch' if torch.backends.mkl.is_available() else 'unknown BLAS'


answer({'versions': 'PyTorch %s, %s' % (torch.__version__, blas())})
f = None
for line in sys.stdin:
    q = json.loads(line)
    if q['op'] == 'time':
        answer({'ms': median_ms(f, q['ms'])})
        continue
    f = {'gemm': gemm, 'spmm': spmm}[q['op']](q)
    y = f()
    answer({'sum': float((y.double() * numbers(*y.shape).double()).sum())})
