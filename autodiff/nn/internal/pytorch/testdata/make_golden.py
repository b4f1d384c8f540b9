#!/usr/bin/env python3
"""Writes zip.pth, legacy.pth and tensors.json: a state_dict in both forms of torch.save,
and what is in it. Made with PyTorch 1.13.

    python3 make_golden.py
"""
import collections
import json

import torch

torch.manual_seed(7)
base = torch.randn(5, 4)
state = collections.OrderedDict(
    [
        ("linear.weight", torch.randn(3, 4)),
        ("linear.bias", torch.nn.Parameter(torch.randn(3))),
        ("transposed", base.T),  # strides that are not a matrix's
        ("part", base[1:4:2, 1:]),  # of the same storage
        ("double", torch.tensor([[1.5, -2.25e-300]], dtype=torch.float64)),
        ("special", torch.tensor([float("inf"), -0.0, 1e-45])),
        ("half", torch.tensor([0.5, -3.0], dtype=torch.float16)),
        ("norm.num_batches_tracked", torch.tensor(17)),
        ("nothing", torch.zeros(0, 4)),
    ]
)
state._metadata = collections.OrderedDict([("", {"version": 1})])
torch.save(state, "zip.pth")
torch.save(state, "legacy.pth", _use_new_zipfile_serialization=False)
dtypes = {torch.float32: "F32", torch.float64: "F64", torch.float16: "F16", torch.int64: "I64"}
with open("tensors.json", "w") as f:
    tensors = [
        {"Name": k, "DType": dtypes[v.dtype], "Shape": list(v.shape), "Data": list(v.detach().contiguous().numpy().tobytes())}
        for k, v in state.items()
    ]
    f.write("[\n" + ",\n".join(json.dumps(t, separators=(",", ":")) for t in tensors) + "\n]\n")
