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
        if prefix + ".edge_label" in tensors:
            self.label = torch.from_numpy(get("edge_label").astype(np.int64))
        if prefix + ".category" in tensors:
            self.x = F.one_hot(torch.from_numpy(get("category").astype(np.int64)), width).to(dtype)
        else:
            self.x = torch.from_numpy(get("dense").reshape(n, width).copy()).to(dtype)


def linear(params, name, x):
    return x @ params[name + ".weight"] + params[name + ".bias"]


class Encoder:
    """The encoders of package gnn; call one with the batch and its views."""

    def __init__(self, params, meta, dtype):
        self.params, self.layers, self.dtype = params, int(meta["layers"]), dtype
        self.forward = getattr(self, meta.get("encoder", "gin"))
        self.residual = meta.get("residual") == "1"
        self.stats = {}
        for name, p in params.items():
            if name.endswith(".weight") and p.shape[0] == 1:  # a norm
                norm = name[:-len(".weight")]
                self.stats[norm + ".running_mean"] = torch.zeros(p.numel(), dtype=dtype)
                self.stats[norm + ".running_var"] = torch.ones(p.numel(), dtype=dtype)

    def __call__(self, g, views):
        """views is into how many equal numbers of graphs the batch is cut to be
        normalised by themselves; None evaluates."""
        self.node_groups = self.graph_groups = None
        if views is not None:
            cuts = [v * g.count // views for v in range(views + 1)]
            self.graph_groups = list(zip(cuts, cuts[1:]))
            self.node_groups = [(g.first_node[lo], g.first_node[hi]) for lo, hi in self.graph_groups]
        return self.forward(g)

    def norm(self, name, x, groups):
        def part(x, training):
            name_ = "encoder." + name
            return F.batch_norm(x, self.stats[name_ + ".running_mean"], self.stats[name_ + ".running_var"],
                                self.params[name_ + ".weight"].ravel(), self.params[name_ + ".bias"].ravel(),
                                training=training, momentum=0.1, eps=1e-5)

        if groups is None:
            return part(x, False)
        return torch.cat([part(x[lo:hi], True) for lo, hi in groups])

    def linear(self, name, x):
        return linear(self.params, "encoder." + name, x)

    def add_pool(self, g, x):
        return torch.zeros(g.count, x.shape[1], dtype=x.dtype).index_add(0, g.graph, x)

    def gin(self, g):
        x, readouts = g.x, []
        for l in range(self.layers):
            x = x + torch.zeros_like(x).index_add(0, g.target, x[g.source])
            x = torch.relu(self.linear(f"convs.{l}.nn.2", torch.relu(self.linear(f"convs.{l}.nn.0", x))))
            x = self.norm(f"bns.{l}", x, self.node_groups)
            readouts.append(self.add_pool(g, x))
        return torch.cat(readouts, 1)

    def resgcn(self, g):
        n = len(g.x)
        edge = g.source != g.target  # self-loops are replaced
        source, target = torch.cat([g.source[edge], torch.arange(n)]), torch.cat([g.target[edge], torch.arange(n)])
        r = torch.zeros(n, dtype=self.dtype).index_add(0, source, torch.ones(len(source), dtype=self.dtype)).rsqrt()
        weight = (r[source] * r[target])[:, None]
        x = torch.relu(self.norm("bn_feat", g.x, self.node_groups) @ self.params["encoder.conv_feat.weight"])
        for l in range(self.layers):
            y = self.norm(f"bns_conv.{l}", x, self.node_groups) @ self.params[f"encoder.convs.{l}.weight"]
            y = torch.zeros_like(y).index_add(0, target, weight * y[source])
            y = torch.relu(y + self.params[f"encoder.convs.{l}.bias"])
            x = x + y if self.residual else y
        h = torch.relu(self.linear("lins.0", self.norm("bns_fc.0", self.add_pool(g, x), self.graph_groups)))
        return self.norm("bn_hidden", h, self.graph_groups)

    def mean_pool(self, g, x):
        return self.add_pool(g, x) / torch.from_numpy(np.diff(g.first_node))[:, None]

    def with_self_loops(self, g, loop):
        n = torch.arange(len(g.x))
        return torch.cat([g.source, n]), torch.cat([g.target, n]), torch.cat([g.label, torch.full_like(n, loop)])

    def chemgin(self, g):
        source, target, label = self.with_self_loops(g, 4 * 3)  # type·3 + direction
        category = g.x.argmax(1)
        x = self.params["encoder.x_embedding1.weight"][category // 3] + self.params["encoder.x_embedding2.weight"][category % 3]
        for l in range(self.layers):
            name = f"gnns.{l}."
            edge = (self.params["encoder." + name + "edge_embedding1.weight"][label // 3]
                    + self.params["encoder." + name + "edge_embedding2.weight"][label % 3])
            x = torch.zeros_like(x).index_add(0, target, x[source] + edge)
            x = self.linear(name + "mlp.2", torch.relu(self.linear(name + "mlp.0", x)))
            x = self.norm(f"batch_norms.{l}", x, self.node_groups)
            if l < self.layers - 1:
                x = torch.relu(x)
        return self.mean_pool(g, x)

    def biogin(self, g):
        source, target, label = self.with_self_loops(g, 1 << 7)
        bits = (label[:, None] >> torch.arange(9) & 1).to(self.dtype)
        x = self.params["encoder.input_node_embeddings.weight"][g.x.argmax(1)]
        for l in range(self.layers):
            name = f"gnns.{l}."
            message = torch.cat([x[source], self.linear(name + "edge_encoder", bits)], 1)
            y = torch.zeros(len(x), message.shape[1], dtype=self.dtype).index_add(0, target, message)
            y = torch.relu(self.norm(name + "mlp.1", self.linear(name + "mlp.0", y), self.node_groups))
            x = self.linear(name + "mlp.3", y)
            if l < self.layers - 1:
                x = torch.relu(x)
        return torch.cat([self.mean_pool(g, x), x[torch.from_numpy(g.first_node[:-1])]], 1)


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
    views = Graphs(tensors, "views", width, dtype)
    graphs = Graphs(tensors, "graphs", width, dtype)
    params = {k: torch.from_numpy(v.copy()).to(dtype).requires_grad_()
              for k, v in tensors.items() if not k.startswith(("views.", "graphs."))}
    encode = Encoder(params, meta, dtype)
    stats = encode.stats
    n = views.count // 2
    # Parameters that stay as they are: see TestPyTorch.
    still = [p for p in params if p.endswith(tuple(meta.get("still", "").split()))]
    optimizer = torch.optim.Adam([p for name, p in params.items() if name not in still], lr=number("rate"))
    out, curve = {}, {"loss": [], "loss_c": [], "loss_g": []}
    keep = lambda group, name, v: out.__setitem__(f"{group}/{name}", v.detach().numpy().astype(np.float64).ravel().copy())
    for step in range(int(meta["steps"])):
        h = encode(views, 2)
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
                if name not in still or not name.endswith(".bias"):
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
        keep("embeddings", "h", encode(graphs, None))
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
