"""Encoders as modules of PyTorch, with the names of a model file."""
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor, nn

from . import tool

PREDICTING = ("head", "beside", "forest", "shares", "calibration", "domain")  # of a card, what predictions need
LOOPS = {2: (4, 0), 4: (6, 0, 0, 0)}  # of so many categories of a bond, those that an atom has to itself

def layer(name: str, tensors: dict[str, Tensor]) -> nn.Module:
    """The layer of a model file with these tensors, among which are those of its children."""
    if "running_mean" in tensors:
        return nn.BatchNorm1d(len(tensors["weight"]))
    if "weight" in tensors:
        rows, columns = tensors["weight"].shape
        return nn.Embedding(rows, columns) if "embedding" in name else nn.Linear(columns, rows, "bias" in tensors)
    module = nn.Module()
    for own in {"bias", "eps"} & tensors.keys():  # of which eps is not learned
        module.register_parameter(own, nn.Parameter(tensors[own], requires_grad=own == "bias"))
    return module

def neighbors(x: Tensor, edges: Tensor) -> Tensor:
    """The sum of what the neighbours of each node have."""
    return torch.zeros_like(x).index_add(0, edges[1], x[edges[0]])

def mlp(x: Tensor, of: nn.Module) -> Tensor:
    first, second = of.children()
    return second(torch.relu(first(x)))

def categories(x: Tensor, of: nn.Module) -> Tensor:
    """The sum of the embeddings of the categories in the columns."""
    tables = [table for table in of.children() if isinstance(table, nn.Embedding)]
    return torch.stack([table(x[:, k]) for k, table in enumerate(tables)]).sum(0)

class Encoder(nn.Module):
    """An encoder. Its input is that of PyG's: x are features [nodes×width], or of molecules the
    categories of atoms as whole numbers [nodes×columns]; edge_index [2×edges] lists both
    directions; edge_attr are the categories of bonds [edges×columns]; batch [nodes] says of
    which graph a node is. The result is the vectors [graphs×width]."""

    def __init__(self, card: dict[str, Any], weights: dict[str, Tensor], readout: str = "auto") -> None:
        super().__init__()
        self.card, about = card, card["encoder"]
        self.kind: str = about["kind"]
        own = {"gin": "all:sum", "resgcn": "", "chemgin": "last:sum" if about.get("sum") else "last:mean"}
        if self.kind not in own:
            raise ValueError(f"an encoder {self.kind} has no module")
        if about.get("edge_labels") or about.get("edge_weights"):
            raise ValueError("an encoder that reads labels or weights of edges has no module")
        kinds = {"own": own[self.kind], "auto": "all:sum,mean,max" if self.kind == "chemgin" else own[self.kind]}
        self.readout: str = about.get("readout", kinds[readout]) if readout in kinds else readout
        paths = {name[:i] for name in weights for i, c in enumerate(name) if c == "."}
        for path in sorted(paths, key=lambda path: (len(path), path)):  # parents first, 10 behind 9
            parent, _, last = path.rpartition(".")
            below = {name[len(path) + 1:]: w for name, w in weights.items() if name.startswith(path + ".")}
            self.get_submodule(parent).add_module(last, layer(last, below))
        self.load_state_dict(weights)

    def layers(self, *names: str) -> Iterator[tuple[nn.Module, ...]]:
        return zip(*(self.get_submodule(name).children() for name in names))

    def gin(self, x: Tensor, edges: Tensor, batch: Tensor) -> Iterator[Tensor]:
        if self.card.get("self_loops"):  # up to the last node with an edge, as GraphCL's code has it
            ends, nodes = edges.flatten(), torch.arange(len(x), device=x.device)
            last = torch.zeros_like(nodes).scatter_reduce(0, batch[ends], ends, "amax")
            edges = torch.cat([edges, nodes[nodes < last[batch]].repeat(2, 1)], 1)
        for conv, bn in self.layers("convs", "bns"):
            own = (1 + conv.get_parameter("eps")) * x
            x = bn(torch.relu(mlp(own + neighbors(x, edges), conv.get_submodule("nn"))))
            yield x

    def resgcn(self, x: Tensor, edges: Tensor) -> Iterator[Tensor]:
        x = torch.relu(self.get_submodule("conv_feat")(self.get_submodule("bn_feat")(x)))
        edges = edges[:, edges[0] != edges[1]]  # each node gets a self-loop, and has no other
        scale = (torch.bincount(edges[0], minlength=len(x)) + 1).to(x.dtype).rsqrt()[:, None]
        for conv, bn in self.layers("convs", "bns_conv"):
            y = conv.get_submodule("lin")(bn(x)) * scale
            y = torch.relu((y + neighbors(y, edges)) * scale + conv.get_parameter("bias"))
            x = x + y if self.card["encoder"].get("residual") else y
            yield x

    def chemgin(self, x: Tensor, edges: Tensor, bonds: Tensor) -> Iterator[Tensor]:
        x, last = categories(x, self), self.card["encoder"]["layers"] - 1
        loop = bonds.new_tensor([LOOPS[bonds.shape[1]]])
        for k, (conv, bn) in enumerate(self.layers("gnns", "batch_norms")):
            own = x + categories(loop, conv) + neighbors(x, edges)
            x = bn(mlp(own.index_add(0, edges[1], categories(bonds, conv)), conv.get_submodule("mlp")))
            yield (x := torch.relu(x) if k < last else x)

    def pool(self, x: Tensor, batch: Tensor, kind: str) -> Tensor:
        how = {"sum": "sum", "mean": "mean", "max": "amax"}[kind]
        y = x.new_zeros(int(batch.max()) + 1, x.shape[1])
        y = y.scatter_reduce(0, batch[:, None].expand_as(x), x, how, include_self=False)
        return y / 20 if kind == "sum" and self.kind == "chemgin" else y

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None,
                edge_attr: Tensor | None = None) -> Tensor:
        if batch is None:
            batch = torch.zeros(len(x), dtype=torch.long, device=x.device)
        if self.kind == "chemgin":
            if edge_attr is None:
                raise ValueError("molecules have categories of bonds, edge_attr")
            layers = list(self.chemgin(x, edge_index, edge_attr))
        else:
            layers = list(self.gin(x, edge_index, batch) if self.kind == "gin" else self.resgcn(x, edge_index))
        if not self.readout:  # ResGCN's own
            (bn, linear), = self.layers("bns_fc", "lins")
            return self.get_submodule("bn_hidden")(torch.relu(linear(bn(self.pool(layers[-1], batch, "sum")))))
        which, kinds = self.readout.split(":")
        chosen = {"all": layers, "last": layers[-1:]}.get(which) or [layers[int(k) - 1] for k in which.split(",")]
        return torch.cat([self.pool(y, batch, kind) for y in chosen for kind in kinds.split(",")], 1)

def to_torch(model: tool.Source = None, readout: str = "auto") -> Encoder:
    """The encoder of a model file, None being that of the program, in evaluation mode; readout
    is as ``-readout`` of ``specmatch embed``. A head and dropout are left out."""
    data = tool.load(model)
    card = {k: v for k, v in tool.read_card(data).items() if k not in PREDICTING}
    weights = {name: w for name, w in load(data).items() if not name.startswith(("predictor.", "beside."))}
    return Encoder(card, weights, readout).eval()

def from_torch(module: Encoder, path: str) -> None:
    """Writes a module of to_torch, perhaps trained on, as a model file."""
    weights = {name: w.detach().cpu().contiguous() for name, w in module.state_dict().items()}
    Path(path).write_bytes(save(weights, {"specmatch_model": json.dumps(module.card)}))
