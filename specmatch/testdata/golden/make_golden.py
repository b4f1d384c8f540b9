#!/usr/bin/env python3
"""Trains the problems of this folder with PyTorch, for TestPyTorch to compare.

    python3 make_golden.py

reads NAME.problem.safetensors, which `go test ./specmatch -run TestPyTorch
-update` writes, and writes NAME.pytorch.safetensors: losses, gradients, running
statistics, weights after training and embeddings in float64, and how far the
same run in float32 is from them.

Everything is written from the formulas with PyTorch's own operators, optimizer
and automatic differentiation; nothing is taken from the Go code but the names
of the parameters and that a linear weight of a problem is stored [in, out].
"""
import json
import pathlib
import re
import struct
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import encoders

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


def read_graphs(tensors, prefix, width, dtype):
    get = lambda name: tensors[prefix + "." + name].ravel().astype(np.int64)
    ptr = get("ptr")
    edge_index = torch.from_numpy(np.stack([get("adj"), np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))]))
    label = torch.from_numpy(get("edge_label")) if prefix + ".edge_label" in tensors else None
    if prefix + ".category" in tensors:
        x = F.one_hot(torch.from_numpy(get("category")), width).to(dtype)
    else:
        x = torch.from_numpy(tensors[prefix + ".dense"].reshape(-1, width).copy()).to(dtype)
    return encoders.Graphs(torch.from_numpy(np.diff(get("graph_ptr"))), edge_index, label, x)


class Model(nn.Module):
    """An encoder with its projection head. Parameters have the names and shapes of
    the problem: see stored."""

    def __init__(self, params, meta, width, dtype):
        super().__init__()
        head = params["proj_head.0.weight"].shape
        hidden = next(v.shape[1] for k, v in params.items() if k.endswith(HIDDEN[meta.get("encoder", "gin")]))
        self.encoder = encoders.build({
            "kind": meta.get("encoder", "gin"), "in": width, "hidden": hidden, "layers": int(meta["layers"]),
            "residual": meta.get("residual") == "1", "center": True,
        })
        self.proj_head = encoders.mlp(head[0], head[0], head[0])
        self.to(dtype)
        self.by_name = {name: self.get_parameter(state_name(name)) for name in params}
        assert len(self.by_name) == len(list(self.parameters()))
        with torch.no_grad():
            for name, p in self.by_name.items():
                p.copy_(stored(name, torch.from_numpy(params[name].copy())).reshape(p.shape))

    def encode_views(self, g, views):
        """Encodes a batch that is cut into equal numbers of graphs, which are
        normalised by themselves."""
        cuts = [v * g.count // views for v in range(views + 1)]
        nodes = g.first.tolist() + [len(g.graph)]
        self.train()
        for name, norm in self.encoder.named_modules():
            if isinstance(norm, nn.BatchNorm1d):
                at = cuts if name.startswith(("bns_fc", "bn_hidden")) else [nodes[c] for c in cuts]
                norm.forward = lambda x, norm=norm, at=at: torch.cat(
                    [nn.BatchNorm1d.forward(norm, x[lo:hi]) for lo, hi in zip(at, at[1:])])
        h = self.encoder(g)
        for norm in self.encoder.modules():
            vars(norm).pop("forward", None)
        return h

    def statistics(self):
        return {k: v for k, v in self.named_buffers() if k.endswith((".running_mean", ".running_var"))}


# The parameter of an encoder that has as many columns as its layers are wide.
HIDDEN = {"gin": "convs.0.nn.0.weight", "resgcn": "conv_feat.weight", "chemgin": "x_embedding1.weight", "biogin": "input_node_embeddings.weight"}


def state_name(name):
    """The name in a state_dict of a parameter of a program."""
    name = re.sub(r"^(encoder\.convs\.\d+)\.weight$", r"\1.lin.weight", name)
    return name.replace("encoder.input_node_embeddings", "encoder.gnns.0.input_node_embeddings")


def stored(name, value):
    """A program's weight [in, out] as PyTorch has it, and back."""
    return value.T if value.ndim == 2 and "embedding" not in name else value


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
    width, beta = int(meta["width"]), number("beta")
    views = read_graphs(tensors, "views", width, dtype)
    graphs = read_graphs(tensors, "graphs", width, dtype)
    model = Model({k: v for k, v in tensors.items() if not k.startswith(("views.", "graphs."))}, meta, width, dtype)
    params, stats = model.by_name, model.statistics()
    n = views.count // 2
    # Parameters that stay as they are: see TestPyTorch.
    still = [p for p in params if p.endswith(tuple(meta.get("still", "").split()))]
    optimizer = torch.optim.Adam([p for name, p in params.items() if name not in still], lr=number("rate"))
    out, curve = {}, {"loss": [], "loss_c": [], "loss_g": []}
    keep = lambda group, name, v: out.__setitem__(f"{group}/{name}", v.detach().numpy().astype(np.float64).ravel().copy())
    for step in range(int(meta["steps"])):
        z = model.proj_head(model.encode_views(views, 2))
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
                if name not in still or not name.endswith(".bias"):
                    keep("gradients of step 0", name, stored(name, p.grad))
            for name, v in stats.items():
                keep("statistics of step 0", name, v)
        optimizer.step()
    for name, v in curve.items():
        if v:
            out["loss curve/" + name] = np.array(v)
    for name, p in params.items():
        keep("parameters", name, stored(name, p))
    for name, v in stats.items():
        keep("statistics", name, v)
    with torch.no_grad():
        keep("embeddings", "h", model.eval().encoder(graphs))
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
