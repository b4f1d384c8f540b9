"""Encoders as modules of PyTorch, with the names of a model file."""
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from . import models, tool

LOOPS = {"hu": (4, 0), "rich": (6, 0, 0, 0)}  # the categories of the bond that an atom has to itself

def _mlp(*widths: int) -> nn.Sequential:
    return nn.Sequential(*(m for a, b in zip(widths, widths[1:]) for m in (nn.Linear(a, b), nn.ReLU())))[:-1]

def _neighbors(x: Tensor, edges: Tensor) -> Tensor:
    return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])

class GINConv(nn.Module):
    eps: Tensor

    def __init__(self, width: int, out: int) -> None:
        super().__init__()
        self.nn = _mlp(width, out, out)
        self.register_buffer("eps", torch.zeros(1))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        return self.nn((1 + self.eps) * x + _neighbors(x, edges))

class GCNConv(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.lin, self.bias = nn.Linear(width, width, bias=False), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        edges = edges[:, edges[0] != edges[1]]  # self-loops are replaced
        scale = (torch.bincount(edges[0], minlength=len(x)) + 1).to(x.dtype).rsqrt()[:, None]
        y = self.lin(x) * scale
        return (y + _neighbors(y, edges)) * scale + self.bias

class GINEConv(nn.Module):
    def __init__(self, width: int, sizes: list[int], loops: tuple[int, ...]) -> None:
        super().__init__()
        self.mlp, self.loops = _mlp(width, 2 * width, width), loops
        self.names = [f"edge_embedding{k + 1}" for k in range(len(sizes))]
        for name, size in zip(self.names, sizes):
            self.add_module(name, nn.Embedding(size, width))

    def forward(self, x: Tensor, edges: Tensor, labels: Tensor) -> Tensor:
        tables = [self.get_submodule(name) for name in self.names]
        loops = labels.new_tensor(self.loops).expand(len(x), -1)
        own, bonds = (torch.stack([t(of[:, k]) for k, t in enumerate(tables)]).sum(0) for of in (loops, labels))
        return self.mlp((x + own + _neighbors(x, edges)).index_add(0, edges[1], bonds))

class Encoder(nn.Module):
    """An encoder. Its input is that of PyG's: x are features [nodes×width], or of molecules the
    categories of atoms as whole numbers [nodes×columns]; edge_index [2×edges] lists both
    directions; edge_attr are the categories of bonds [edges×columns]; batch [nodes] says of
    which graph a node is. The result is the vectors [graphs×width]."""

    def __init__(self, card: dict[str, Any], shapes: dict[str, tuple[int, ...]], readout: str) -> None:
        super().__init__()
        a = card["encoder"]
        kind, hidden, depth = a["kind"], a["hidden"], a["layers"]
        self.card, self.kind, self.residual, self.sum = card, kind, a.get("residual", False), a.get("sum", False)
        self.readout: str = a.get("readout", "") if readout in ("auto", "own") else readout
        if kind == "chemgin" and readout == "auto":
            self.readout = self.readout or "all:sum,mean,max"

        def norms() -> nn.ModuleList:
            return nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(depth))

        if kind == "gin":
            self.convs, self.bns = nn.ModuleList(GINConv(hidden if k else a["in"], hidden) for k in range(depth)), norms()
        elif kind == "resgcn":
            self.bn_feat, self.conv_feat = nn.BatchNorm1d(a["in"]), nn.Linear(a["in"], hidden, bias=False)
            self.bns_conv, self.convs = norms(), nn.ModuleList(GCNConv(hidden) for _ in range(depth))
            self.bns_fc, self.lins = nn.ModuleList([nn.BatchNorm1d(hidden)]), nn.ModuleList([nn.Linear(hidden, hidden)])
            self.bn_hidden = nn.BatchNorm1d(hidden)
        elif kind == "chemgin" and a.get("atoms", "hu") in LOOPS:
            sizes = {of: [s[0] for name, s in sorted(shapes.items()) if name.startswith(of)] for of in ("x_embedding", "gnns.0.edge_embedding")}
            self.atoms = [f"x_embedding{k + 1}" for k in range(len(sizes["x_embedding"]))]
            for name, size in zip(self.atoms, sizes["x_embedding"]):
                self.add_module(name, nn.Embedding(size, hidden))
            loops = LOOPS[a.get("atoms", "hu")]
            self.gnns, self.batch_norms = nn.ModuleList(GINEConv(hidden, sizes["gnns.0.edge_embedding"], loops) for _ in range(depth)), norms()
        else:
            raise ValueError(f"an encoder {kind} of {a.get('atoms', 'graphs')} has no module")

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None, edge_attr: Tensor | None = None) -> Tensor:
        if batch is None:
            batch = torch.zeros(len(x), dtype=torch.long, device=x.device)
        graphs, layers = int(batch.max()) + 1, list[Tensor]()
        if self.kind == "gin":
            if self.card.get("self_loops"):  # up to the last node with an edge, as GraphCL's code has it
                ends, nodes = edge_index.flatten(), torch.arange(len(x), device=x.device)
                last = torch.zeros_like(nodes[:graphs]).scatter_reduce(0, batch[ends], ends, "amax")
                edge_index = torch.cat([edge_index, nodes[nodes < last[batch]].repeat(2, 1)], 1)
            for conv, bn in zip(self.convs, self.bns):
                layers.append(x := bn(torch.relu(conv(x, edge_index))))
        elif self.kind == "resgcn":
            x = torch.relu(self.conv_feat(self.bn_feat(x)))
            for conv, bn in zip(self.convs, self.bns_conv):
                y = torch.relu(conv(bn(x), edge_index))
                layers.append(x := x + y if self.residual else y)
        else:
            assert edge_attr is not None, "molecules have categories of bonds"
            x = torch.stack([self.get_submodule(name)(x[:, k]) for k, name in enumerate(self.atoms)]).sum(0)
            for k, (conv, bn) in enumerate(zip(self.gnns, self.batch_norms)):
                x = bn(conv(x, edge_index, edge_attr))
                layers.append(x := torch.relu(x) if k < len(self.gnns) - 1 else x)

        def pool(x: Tensor, kind: str) -> Tensor:
            how = {"sum": "sum", "mean": "mean", "max": "amax"}[kind]
            y = x.new_zeros(graphs, x.shape[1]).scatter_reduce(0, batch[:, None].expand_as(x), x, how, include_self=False)
            return y / 20 if kind == "sum" and self.kind == "chemgin" else y

        if self.readout:
            which, kinds = self.readout.split(":")
            chosen = layers if which == "all" else layers[-1:] if which == "last" else [layers[int(k) - 1] for k in which.split(",")]
            return torch.cat([pool(x, kind) for x in chosen for kind in kinds.split(",")], 1)
        if self.kind == "resgcn":
            return self.bn_hidden(torch.relu(self.lins[0](self.bns_fc[0](pool(layers[-1], "sum")))))
        if self.kind == "gin":
            return torch.cat([pool(x, "sum") for x in layers], 1)
        return pool(layers[-1], "sum" if self.sum else "mean")

def to_torch(model: models.Source = None, readout: str = "auto") -> Encoder:
    """The encoder of a model file, None being that of the program, in evaluation mode; readout
    is as ``-readout`` of ``specmatch embed``. A head and dropout are left out."""
    data = models.load(model)
    if data is None:  # of the program
        with tempfile.TemporaryDirectory() as folder:
            tool.run(["convert", "-in=pretrained", f"-out={folder}/model.safetensors"])
            data = (Path(folder) / "model.safetensors").read_bytes()
    card: dict[str, Any] = {k: v for k, v in models.card(data).items() if k != "head"}
    if models.load(model) is None:
        card["encoder"]["readout"] = "all:sum,mean,max"  # its own, in the program
    tensors = {k: v for k, v in models.read(data).items() if not k.startswith("predictor.")}
    module = Encoder(card, {k: v.shape for k, v in tensors.items()}, readout)
    module.load_state_dict({k: torch.from_numpy(np.array(v)) for k, v in tensors.items()})
    return module.eval()

def from_torch(module: Encoder, path: str) -> None:
    """Writes a module of to_torch, perhaps trained on, as a model file."""
    Path(path).write_bytes(models.write({k: v.detach().cpu().numpy() for k, v in module.state_dict().items()}, module.card))
