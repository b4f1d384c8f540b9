"""The encoders of package gnn as PyTorch modules.

Their state_dict has the names and shapes of a model file. GIN and ResGCN take
their convolutions from a namespace: PyTorch Geometric's torch_geometric.nn, or
this file, which has the same written out.
"""
import sys

import torch
from torch import nn


class Graphs:
    """A batch of graphs: edges source -> target with their labels or none,
    features, and how many nodes each graph has."""

    def __init__(self, nodes, edge_index, label, x):
        self.count, self.graph = len(nodes), torch.repeat_interleave(torch.arange(len(nodes)), nodes)
        self.first = nodes.cumsum(0) - nodes
        self.edge_index, self.label, self.x, self.category = edge_index, label, x, x.argmax(1)

    def with_self_loops(self, label):
        n = torch.arange(len(self.graph))
        return torch.cat([self.edge_index, torch.stack([n, n])], 1), torch.cat([self.label, torch.full_like(n, label)])


def add_neighbors(x, edge_index):
    return torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])


class GINConv(nn.Module):
    def __init__(self, mlp):
        super().__init__()
        self.nn = mlp
        self.register_buffer("eps", torch.zeros(1))

    def forward(self, x, edge_index):
        return self.nn((1 + self.eps) * x + add_neighbors(x, edge_index))


class GCNConv(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.lin = nn.Linear(width, out, bias=False)
        self.bias = nn.Parameter(torch.zeros(out))

    def forward(self, x, edge_index):
        loops = torch.arange(len(x)).repeat(2, 1)
        edge_index = edge_index[:, edge_index[0] != edge_index[1]]  # self-loops are replaced
        source, target = torch.cat([edge_index, loops], 1)
        r = torch.zeros(len(x), dtype=x.dtype).index_add(0, source, torch.ones(len(source), dtype=x.dtype)).rsqrt()
        y = self.lin(x)
        return torch.zeros_like(y).index_add(0, target, (r[source] * r[target])[:, None] * y[source]) + self.bias


def mlp(*widths):
    layers = []
    for width, out in zip(widths, widths[1:]):
        layers += [nn.Linear(width, out), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def add_pool(g, x):
    return torch.zeros(g.count, x.shape[1], dtype=x.dtype).index_add(0, g.graph, x)


def mean_pool(g, x):
    return add_pool(g, x) / torch.bincount(g.graph)[:, None]


class GIN(nn.Module):
    def __init__(self, a, layers):
        super().__init__()
        widths = [a["in"]] + a["layers"] * [a["hidden"]]
        self.convs = nn.ModuleList(layers.GINConv(mlp(w, h, h)) for w, h in zip(widths, widths[1:]))
        self.bns = nn.ModuleList(nn.BatchNorm1d(h) for h in widths[1:])

    def forward(self, g):
        x, readouts = g.x, []
        for conv, bn in zip(self.convs, self.bns):
            x = bn(torch.relu(conv(x, g.edge_index)))
            readouts.append(add_pool(g, x))
        return torch.cat(readouts, 1)


class ResGCN(nn.Module):
    def __init__(self, a, layers):
        super().__init__()
        width, hidden = a["in"], a["hidden"]
        self.residual = a.get("residual", False)
        self.bn_feat, self.conv_feat = nn.BatchNorm1d(width), nn.Linear(width, hidden, bias=False)
        self.bns_conv = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(a["layers"]))
        self.convs = nn.ModuleList(layers.GCNConv(hidden, hidden) for _ in range(a["layers"]))
        self.bns_fc, self.lins = nn.ModuleList([nn.BatchNorm1d(hidden)]), nn.ModuleList([nn.Linear(hidden, hidden)])
        self.bn_hidden = nn.BatchNorm1d(hidden)

    def forward(self, g):
        x = torch.relu(self.conv_feat(self.bn_feat(g.x)))
        for conv, bn in zip(self.convs, self.bns_conv):
            y = torch.relu(conv(bn(x), g.edge_index))
            x = x + y if self.residual else y
        return self.bn_hidden(torch.relu(self.lins[0](self.bns_fc[0](add_pool(g, x)))))


class GINEConv(nn.Module):
    """Hu et al.'s layer of molecules."""

    def __init__(self, width):
        super().__init__()
        self.mlp = mlp(width, 2 * width, width)
        self.edge_embedding1, self.edge_embedding2 = nn.Embedding(6, width), nn.Embedding(3, width)

    def forward(self, x, g):
        (source, target), label = g.with_self_loops(4 * 3)
        edge = self.edge_embedding1(label // 3) + self.edge_embedding2(label % 3)
        return self.mlp(torch.zeros_like(x).index_add(0, target, x[source] + edge))


class ChemGIN(nn.Module):
    def __init__(self, a, _):
        super().__init__()
        hidden, self.sum = a["hidden"], a.get("sum", False)
        self.x_embedding1, self.x_embedding2 = nn.Embedding(120, hidden), nn.Embedding(3, hidden)
        self.gnns = nn.ModuleList(GINEConv(hidden) for _ in range(a["layers"]))
        self.batch_norms = nn.ModuleList(nn.BatchNorm1d(hidden) for _ in range(a["layers"]))

    def forward(self, g):
        x = self.x_embedding1(g.category // 3) + self.x_embedding2(g.category % 3)
        for l, (conv, bn) in enumerate(zip(self.gnns, self.batch_norms)):
            x = bn(conv(x, g))
            if l < len(self.gnns) - 1:
                x = torch.relu(x)
        return add_pool(g, x) / 20 if self.sum else mean_pool(g, x)


class BioConv(nn.Module):
    """Hu et al.'s layer of proteins."""

    def __init__(self, width, first):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(2 * width, 2 * width), nn.BatchNorm1d(2 * width), nn.ReLU(), nn.Linear(2 * width, width))
        self.edge_encoder = nn.Linear(9, width)
        if first:
            self.input_node_embeddings = nn.Embedding(2, width)

    def forward(self, x, g):
        if hasattr(self, "input_node_embeddings"):
            x = self.input_node_embeddings(x)
        (source, target), label = g.with_self_loops(1 << 7)
        bits = (label[:, None] >> torch.arange(9) & 1).to(x.dtype)
        message = torch.cat([x[source], self.edge_encoder(bits)], 1)
        return self.mlp(torch.zeros(len(x), message.shape[1], dtype=x.dtype).index_add(0, target, message))


class BioGIN(nn.Module):
    def __init__(self, a, _):
        super().__init__()
        self.center = a.get("center", False)
        self.gnns = nn.ModuleList(BioConv(a["hidden"], l == 0) for l in range(a["layers"]))

    def forward(self, g):
        x = g.category
        for l, conv in enumerate(self.gnns):
            x = conv(x, g)
            if l < len(self.gnns) - 1:
                x = torch.relu(x)
        h = mean_pool(g, x)
        return torch.cat([h, x[g.first]], 1) if self.center else h


def build(architecture, layers=sys.modules[__name__]):
    """The encoder that a model file's card describes."""
    kinds = {"gin": GIN, "resgcn": ResGCN, "chemgin": ChemGIN, "biogin": BioGIN}
    return kinds[architecture["kind"]](architecture, layers)
