#!/usr/bin/env python3
"""Times the products of a transfer step on a GPU, by PyTorch and cuBLAS, in microseconds.

    python3 products.py

A column each for float32; TF32; TF32 with three times as many terms, as three products of split operands have;
and, for the gradients of weights, float32 in eight parts and their sum. Each is the mean of 30 replays of a CUDA graph of ten.
"""
import torch

ROWS = 11000
PARTS = 8


def microseconds(call, replays=30, calls=10):
    for _ in range(5):
        call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(True), torch.cuda.Event(True)
    start.record()
    for _ in range(replays):
        graph.replay()
    end.record()
    torch.cuda.synchronize()
    return 1e3 * start.elapsed_time(end) / replays / calls


def operands(m, n, k, transposed_a, transposed_b):
    a = torch.randn((k, m) if transposed_a else (m, k), device="cuda")
    b = torch.randn((n, k) if transposed_b else (k, n), device="cuda")
    return a.t() if transposed_a else a, b.t() if transposed_b else b


def product(name, m, n, k, transposed_a, transposed_b):
    a, b = operands(m, n, k, transposed_a, transposed_b)
    a3, b3 = operands(m, n, 3 * k, transposed_a, transposed_b)
    c = torch.empty(m, n, device="cuda")
    tf32 = torch.backends.cuda.matmul
    tf32.allow_tf32 = False
    times = [microseconds(lambda: torch.mm(a, b, out=c))]
    tf32.allow_tf32 = True
    times += [microseconds(lambda: torch.mm(a, b, out=c)), microseconds(lambda: torch.mm(a3, b3, out=c))]
    if transposed_a:
        tf32.allow_tf32 = False
        left = a.t().contiguous().view(PARTS, -1, m)
        right = b.contiguous().view(PARTS, -1, n)
        times.append(microseconds(lambda: torch.bmm(left.transpose(1, 2), right).sum(0)))
    print(f"| {name} | " + " | ".join(f"{t:.0f}" for t in times) + " |")


product("[N×300]·[300×600]", ROWS, 600, 300, False, False)
product("[N×600]·[600×300]", ROWS, 300, 600, False, False)
product("[N×600]·[300×600]ᵀ", ROWS, 300, 600, False, True)
product("[N×300]·[600×300]ᵀ", ROWS, 600, 300, False, True)
product("[N×300]ᵀ·[N×600]", 300, 600, ROWS, True, False)
product("[N×600]ᵀ·[N×300]", 600, 300, ROWS, True, False)
