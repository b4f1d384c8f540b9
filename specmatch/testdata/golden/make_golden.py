#!/usr/bin/env python3
"""Trains the problems of this folder with PyTorch, for TestPyTorch to compare.

    python3 make_golden.py

reads NAME.problem.safetensors, which `go test ./specmatch -run TestPyTorch
-update` writes, and writes NAME.pytorch.safetensors: losses, gradients, running
statistics, weights after training and embeddings in float64, and how far the
same run in float32 is from them.

Everything is written from the formulas with PyTorch's own operators, optimizer
and automatic differentiation; nothing is taken from the Go code but the names
of the parameters and that a linear weight is stored [in, out].
"""
import json
import pathlib
import struct

import numpy as np
import torch
import torch.nn.functional as F

torch.set_num_threads(1)  # so that the files do not depend on the machine's cores


def read(path):
    """The tensors and the metadata of a safetensors file."""
    raw = path.read_bytes()
    (n,) = struct.unpack("<Q", raw[:8])
    header, data = json.loads(raw[8:8 + n]), raw[8 + n:]
    meta = header.pop("__metadata__")
    kinds = {"F32": "<f4", "F64": "<f8"}
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        tensors[name] = np.frombuffer(data[begin:end], kinds[t["dtype"]]).reshape(t["shape"])
    return tensors, meta


def write(path, tensors, meta):
    header, data = {"__metadata__": meta}, b""
    for name in sorted(tensors):
        raw = tensors[name].astype("<f8").tobytes()
        header[name] = {"dtype": "F64", "shape": [1, tensors[name].size], "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header, sort_keys=True).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)


class Graphs:
    """A batch of graphs: edges source -> target, features, graph of each node."""

    def __init__(self, tensors, prefix, width, dtype):
        get = lambda name: tensors[prefix + "." + name].ravel()
        ptr, graph_ptr = get("ptr").astype(np.int64), get("graph_ptr").astype(np.int64)
        n = len(ptr) - 1
        self.source = torch.from_numpy(get("adj").astype(np.int64))
        self.target = torch.from_numpy(np.repeat(np.arange(n), np.diff(ptr)))
        self.graph = torch.from_numpy(np.repeat(np.arange(len(graph_ptr) - 1), np.diff(graph_ptr)))
        self.count = len(graph_ptr) - 1
        self.first_node = graph_ptr
        if prefix + ".category" in tensors:
            self.x = F.one_hot(torch.from_numpy(get("category").astype(np.int64)), width).to(dtype)
        else:
            self.x = torch.from_numpy(get("dense").reshape(n, width).copy()).to(dtype)


def linear(params, name, x):
    return x @ params[name + ".weight"] + params[name + ".bias"]


def encode(params, stats, layers, g, view_nodes):
    """GIN; view_nodes are the node ranges normalised by themselves, None evaluates."""
    x, readouts = g.x, []
    for l in range(layers):
        x = x + torch.zeros_like(x).index_add(0, g.target, x[g.source])
        conv, norm = f"encoder.convs.{l}.nn", f"encoder.bns.{l}"
        x = torch.relu(linear(params, conv + ".2", torch.relu(linear(params, conv + ".0", x))))

        def batch_norm(part, training):
            return F.batch_norm(part, stats[norm + ".running_mean"], stats[norm + ".running_var"],
                                params[norm + ".weight"].ravel(), params[norm + ".bias"].ravel(),
                                training=training, momentum=0.1, eps=1e-5)

        if view_nodes is None:
            x = batch_norm(x, False)
        else:
            x = torch.cat([batch_norm(x[lo:hi], True) for lo, hi in view_nodes])
        readouts.append(torch.zeros(g.count, x.shape[1], dtype=x.dtype).index_add(0, g.graph, x))
    return torch.cat(readouts, 1)


def contrast(variant, tau, z1, z2):
    u1, u2 = F.normalize(z1), F.normalize(z2)
    n = len(u1)
    if variant == "cross-view":  # as GraphCL's code writes it
        s = torch.exp(u1 @ u2.T / tau)
        positive = s.diagonal()
        return -torch.log(positive / (s.sum(1) - positive)).mean()
    u = torch.cat([u1, u2])
    logits = (u @ u.T / tau).masked_fill(torch.eye(2 * n, dtype=torch.bool), -torch.inf)
    return F.cross_entropy(logits, torch.arange(2 * n).roll(n))


def normalized_adjacency(kappa, percentile, z):
    u = F.normalize(z)
    s = u @ u.T
    n = len(s)
    i, j = torch.triu_indices(n, n, 1)
    theta = torch.quantile(s[i, j].detach(), percentile / 100)
    a = torch.sigmoid(kappa * (s - theta)) * (1 - torch.eye(n, dtype=s.dtype))
    r = a.sum(1).rsqrt()
    return r[:, None] * a * r[None, :]


def run(tensors, meta, dtype):
    number = lambda key: float(meta[key])
    width, layers, beta = int(meta["width"]), int(meta["layers"]), number("beta")
    views = Graphs(tensors, "views", width, dtype)
    graphs = Graphs(tensors, "graphs", width, dtype)
    params = {k: torch.from_numpy(v.copy()).to(dtype).requires_grad_()
              for k, v in tensors.items() if not k.startswith(("views.", "graphs."))}
    stats = {}
    for l in range(layers):
        f = params[f"encoder.bns.{l}.weight"].numel()
        stats[f"encoder.bns.{l}.running_mean"] = torch.zeros(f, dtype=dtype)
        stats[f"encoder.bns.{l}.running_var"] = torch.ones(f, dtype=dtype)
    n = views.count // 2
    middle, end = views.first_node[n], views.first_node[-1]
    optimizer = torch.optim.Adam(params.values(), lr=number("rate"))
    out, curve = {}, {"loss": [], "loss_c": [], "loss_g": []}
    keep = lambda group, name, v: out.__setitem__(f"{group}/{name}", v.detach().numpy().astype(np.float64).ravel().copy())
    for step in range(int(meta["steps"])):
        h = encode(params, stats, layers, views, [(0, middle), (middle, end)])
        z = linear(params, "proj_head.2", torch.relu(linear(params, "proj_head.0", h)))
        losses = {"loss_c": contrast(meta["contrast"], number("temperature"), z[:n], z[n:])}
        loss = losses["loss_c"]
        if beta > 0:
            m1, m2 = (normalized_adjacency(number("kappa"), number("percentile"), v) for v in (z[:n], z[n:]))
            losses["loss_g"] = ((m1 - m2) ** 2).sum()
            loss = loss + beta * losses["loss_g"]
        losses["loss"] = loss
        optimizer.zero_grad()
        loss.backward()
        for name, v in losses.items():
            curve[name].append(v.item())
        if step == 0:
            for name, v in losses.items():
                keep("losses of step 0", name, v)
            for name, p in params.items():
                keep("gradients of step 0", name, p.grad)
            for name, v in stats.items():
                keep("statistics of step 0", name, v)
        optimizer.step()
    for name, v in curve.items():
        if v:
            out["loss curve/" + name] = np.array(v)
    for name, p in params.items():
        keep("parameters", name, p)
    for name, v in stats.items():
        keep("statistics", name, v)
    with torch.no_grad():
        keep("embeddings", "h", encode(params, stats, layers, graphs, None))
    return out


def relative_errors(got, want):
    """The largest error of an entry relative to the largest of its tensor, by group."""
    errors = {}
    for name, w in want.items():
        group = name.split("/")[0]
        e = np.abs(got[name] - w).max() / np.abs(w).max()
        errors[group] = max(errors.get(group, 0), float(f"{e:.2e}"))
    return errors


def norm_errors(got, want):
    """The length of the error of all tensors of a group relative to that of the tensors."""
    errors = {}
    for group in {name.split("/")[0] for name in want}:
        names = [n for n in want if n.startswith(group + "/")]
        e, w = np.concatenate([got[n] - want[n] for n in names]), np.concatenate([want[n] for n in names])
        errors[group] = float(f"{np.linalg.norm(e) / np.linalg.norm(w):.2e}")
    return errors


def main():
    folder = pathlib.Path(__file__).parent
    for path in sorted(folder.glob("*.problem.safetensors")):
        name = path.name.split(".")[0]
        tensors, meta = read(path)
        want = run(tensors, meta, torch.float64)
        single = run(tensors, meta, torch.float32)
        errors = relative_errors(single, want)
        write(folder / f"{name}.pytorch.safetensors", want, {
            "specmatch_format": "1",
            "made_by": f"make_golden.py, PyTorch {torch.__version__}, NumPy {np.__version__}",
            "float32_errors": json.dumps(errors, sort_keys=True),
            "float32_norm_errors": json.dumps(norm_errors(single, want), sort_keys=True),
        })
        print(f"{name}: loss {want['loss curve/loss'][0]:.4f} -> {want['loss curve/loss'][-1]:.4f}; errors of float32: {errors}")


if __name__ == "__main__":
    main()
