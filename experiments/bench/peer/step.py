#!/usr/bin/env python3
"""One training step of experiments/bench in PyTorch, to be timed in turn with it.

    python3 step.py --workload unsupervised --layers pyg --threads 1

prints one line of JSON: the medians in milliseconds of the whole step ("total":
both views augmented and collated, forward, losses, backward, Adam) and of its
parts; the mean of steps on batches that are ready, with one wait behind the last
(train_ms), and with --mode graph of replays alone (device_ms); the device, the
versions. The models, the losses, the batch and the
statistics of the synthetic graphs are those of experiments/bench; the random
numbers are not, so the losses are alike, not equal.

--layers pyg     torch_geometric's GINConv, GCNConv, MessagePassing and pooling,
                 torch.quantile: what most people write
--layers sparse  products with sparse matrices and a backward pass by hand for
                 the symmetric adjacency, the k-th value instead of a sort: what
                 somebody in a hurry to have it fast writes (CPU only)
--mode compile   torch.compile(mode="reduce-overhead") of model and losses
--mode graph     the step as one CUDA graph, replayed on inputs of a fixed size:
                 nodes and edges are filled up with isolated nodes of one more
                 graph, whose embedding is left out of the losses
--tf32           allow TF32 in products (CUDA)

Needs numpy, torch and, for pyg and CUDA, torch_geometric. It restarts itself with
the environment in which PyTorch is fastest on a CPU; see tuned_environment.
"""
import argparse
import copy
import json
import resource
import time

from environment import tuned_environment

WORKLOADS = ('unsupervised', 'semisupervised', 'transfer')


def parse():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--workload', default='unsupervised', choices=WORKLOADS)
    p.add_argument('--layers', default='pyg', choices=('pyg', 'sparse'))
    p.add_argument('--device', default='cpu', choices=('cpu', 'cuda'))
    p.add_argument('--mode', default='eager', choices=('eager', 'compile', 'graph'))
    p.add_argument('--tf32', action='store_true')
    p.add_argument('--threads', type=int, default=1)
    p.add_argument('--batch', type=int, help="graphs of a mini-batch, the workload's if not given")
    p.add_argument('--features', type=int, help='of a node')
    p.add_argument('--steps', type=int, default=40)
    p.add_argument('--warmup', type=int, default=6)
    p.add_argument('--width', type=int, default=32, help="of unsupervised's layers")
    p.add_argument('--brief', action='store_true', help='print processor_ms of a step and peak_rss_mb only')
    a = p.parse_args()
    if a.mode == 'graph' and a.device == 'cpu':
        p.error('--mode graph needs --device cuda')
    if a.layers == 'sparse' and (a.device == 'cuda' or a.mode != 'eager'):
        p.error('--layers sparse is for --device cpu --mode eager')
    return a


args = parse()
tuned_environment(args.threads)

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

BATCH = args.batch or (256 if args.workload == 'transfer' else 512)
TAU, KAPPA, PERCENTILE, BETA = 0.2, 10.0, 0.8, 0.01
LABELS, BONDS = (120, 4) if args.workload == 'transfer' else (args.features or 37, 1)
SELF_LOOP = 3  # its bond
DEVICE = torch.device(args.device)

torch.manual_seed(0)
torch.set_num_threads(args.threads)
torch.backends.cuda.matmul.allow_tf32 = args.tf32
torch.backends.cudnn.allow_tf32 = args.tf32
rng = np.random.default_rng(0)


# ---------------------------------------------------------------------- graphs

def molecules(count, mean, deviation, least, most, edges):
    """Random trees of small degree with a few rings, one after the other:
    node and edge pointers, sources, targets, bonds and labels. Both directions
    of an edge are there, sorted by target."""
    n = np.clip(np.round(rng.normal(mean, deviation, count)), least, most).astype(np.int64)
    source, target, bond, size = [], [], [], []
    for k in n:
        pairs = {(max(0, i - 1 - int(rng.integers(0, 3))), i) for i in range(1, k)}
        for _ in range(max(0, int(round(k * edges / mean)) - (k - 1))):
            i = int(rng.integers(0, k))
            if i != min(k - 1, i + 5):
                pairs.add((i, min(k - 1, i + 5)))
        e = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
        kind = np.tile(rng.integers(0, 3, len(e)), 2)
        s, t = np.concatenate([e[:, 0], e[:, 1]]), np.concatenate([e[:, 1], e[:, 0]])
        order = np.lexsort((s, t))
        source.append(s[order]); target.append(t[order]); bond.append(kind[order]); size.append(len(s))
    share = 1 / (1 + np.arange(LABELS)) ** 1.6
    return dict(n=n, edges=np.array(size), nodes=np.concatenate([[0], np.cumsum(n)]),
                at=np.concatenate([[0], np.cumsum(size)]), source=np.concatenate(source), target=np.concatenate(target),
                bond=np.concatenate(bond), label=rng.choice(LABELS, n.sum(), p=share / share.sum()))


DATA = None  # jobs.py has real graphs
if __name__ == '__main__':
    DATA = (molecules(max(4000, BATCH), 26.6, 6, 6, 50, 28.9) if args.workload == 'transfer' else
            molecules(max(4110, BATCH), 29.87, 13.5, 3, 111, 32.3))


def ranges(start, count):
    """start[0], start[0]+1, … count[0] of them, then those of start[1], …"""
    return np.arange(count.sum()) + np.repeat(start - (np.cumsum(count) - count), count)


def mini_batch(ids):
    n, m = DATA['n'][ids], DATA['edges'][ids]
    first = np.cumsum(n) - n
    e = ranges(DATA['at'][ids], m)
    return dict(n=n, graph=np.repeat(np.arange(len(ids)), n), label=DATA['label'][ranges(DATA['nodes'][ids], n)],
                source=DATA['source'][e] + np.repeat(first, m), target=DATA['target'][e] + np.repeat(first, m), bond=DATA['bond'][e])


def induced(b, keep):
    place = np.cumsum(keep) - 1
    e = keep[b['source']] & keep[b['target']]
    graph = b['graph'][keep]
    return dict(n=np.bincount(graph, minlength=len(b['n'])), graph=graph, label=b['label'][keep],
                source=place[b['source'][e]], target=place[b['target'][e]], bond=b['bond'][e])


def lowest(b, key, ratio=0.8):
    """Keeps the share ratio of the nodes of every graph with the lowest keys, which lie in [0, 1)."""
    order = np.argsort(b['graph'] + key)
    rank = np.arange(len(order)) - np.repeat(np.cumsum(b['n']) - b['n'], b['n'])
    kept = np.maximum(b['n'] - ((1 - ratio) * b['n'] + 1e-9).astype(np.int64), 1)
    keep = np.zeros(len(order), bool)
    keep[order] = rank < np.repeat(kept, b['n'])
    return induced(b, keep)


def drop_nodes(b):
    return lowest(b, rng.random(len(b['graph'])))


def subgraph(b):
    """Breadth first from a random node of every graph, in random order within a layer."""
    nodes = len(b['graph'])
    start = np.cumsum(b['n']) - b['n'] + (rng.random(len(b['n'])) * b['n']).astype(np.int64)
    depth = np.full(nodes, 255.0)
    depth[start] = 0
    front = np.zeros(nodes, bool)
    front[start] = True
    for layer in range(1, 250):
        reached = b['target'][front[b['source']]]
        reached = reached[depth[reached] == 255]
        if not reached.size:
            break
        depth[reached] = layer
        front[:] = False
        front[reached] = True
    return lowest(b, (depth + rng.random(nodes)) / 257)


# ---------------------------------------------------------------------- inputs

# GCNConv looks for self-loops before it adds them, and a CUDA graph cannot wait
# for the answer: there they come with the edges.
LOOPS = args.mode == 'graph' and args.workload == 'semisupervised'


class View:
    """The tensors of one view. With nodes and edges given, it is filled up to
    those numbers by isolated nodes of graph BATCH."""

    def __init__(self, b, nodes=0, edges=0):
        n, m = len(b['graph']), len(b['source'])
        fill, more = max(0, nodes - n), max(0, edges - m)
        if nodes and (n > nodes - 1 or m > edges):
            raise SystemExit(f'a view of {n} nodes and {m} edges does not fit {nodes} and {edges}')
        pad = lambda x, value, count: torch.from_numpy(np.concatenate([x, np.full(count, value)]))
        self.graph = pad(b['graph'], BATCH, fill)
        self.label = pad(b['label'], 0, fill)
        self.edges = torch.stack([pad(b['source'], n, more), pad(b['target'], n, more)])
        if LOOPS:
            self.edges = torch.cat([self.edges, torch.arange(n + fill).expand(2, -1)], 1)
        self.bond = pad(b['bond'], 0, more)
        self.graphs = BATCH + (nodes > 0)
        if args.layers == 'sparse':
            self.sparse(b, n)

    def sparse(self, b, n):
        source, target = self.edges
        own = torch.arange(n)
        if args.workload == 'semisupervised':
            scale = (torch.bincount(target, minlength=n).float() + 1).rsqrt()
            weight = torch.cat([scale[source] * scale[target], scale * scale])
            self.adjacency = coo(torch.cat([target, own]), torch.cat([source, own]), weight, (n, n))
        else:
            self.adjacency = coo(target, source, torch.ones(len(source)), (n, n))
        self.pool = coo(self.graph, own, torch.ones(n), (BATCH, n))
        count = np.bincount(b['target'] * BONDS + b['bond'] % BONDS, minlength=BONDS * n).reshape(n, BONDS)
        if BONDS > 1:
            count[:, SELF_LOOP] = 1
        self.bonds = torch.from_numpy(count.astype(np.float32))
        self.size = torch.from_numpy(np.maximum(b['n'], 1).astype(np.float32))[:, None]

    def tensors(self):
        return [self.graph, self.label, self.edges, self.bond]

    def pin(self):
        """Moves the tensors to memory that the device copies from by itself."""
        if DEVICE.type != 'cpu':
            self.graph, self.label, self.edges, self.bond = (x.pin_memory() for x in self.tensors())
        return self

    def to(self, device):
        if device.type == 'cpu':
            return self
        v = copy.copy(self)
        v.graph, v.label, v.edges, v.bond = (x.to(device, non_blocking=True) for x in self.tensors())
        return v


def coo(i, j, values, shape):
    return torch.sparse_coo_tensor(torch.stack([i, j]), values, shape)._coalesced_(True)


class Propagate(torch.autograd.Function):
    """A·x + own·x for a symmetric A."""

    @staticmethod
    def forward(ctx, a, x, own):
        ctx.a, ctx.own = a, own
        return torch.sparse.addmm(x, a, x, beta=own) if own else torch.sparse.mm(a, x)

    @staticmethod
    def backward(ctx, g):
        if not ctx.needs_input_grad[1]:
            return None, None, None
        g = g.contiguous()
        return None, torch.sparse.addmm(g, ctx.a, g, beta=ctx.own) if ctx.own else torch.sparse.mm(ctx.a, g), None


class Pool(torch.autograd.Function):
    @staticmethod
    def forward(ctx, p, graph, x):
        ctx.graph = graph
        return torch.sparse.mm(p, x)

    @staticmethod
    def backward(ctx, g):
        return None, None, g.contiguous().index_select(0, ctx.graph)


# ---------------------------------------------------------------------- models

if args.layers == 'pyg':
    import torch_geometric
    from torch_geometric.nn import GCNConv, GINConv, MessagePassing, global_add_pool, global_mean_pool

    class BondGINConv(MessagePassing):
        """The convolution of Hu et al. (2020): an MLP of Σ (x_j + bond_ij), the node itself included."""

        def __init__(self, width):
            super().__init__(aggr='add')
            self.bond = nn.Embedding(BONDS, width)
            self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(), nn.Linear(2 * width, width))

        def forward(self, x, edges, bond):
            return self.mlp(self.propagate(edges, x=x, bond=self.bond(bond)) + x + self.bond.weight[SELF_LOOP])

        def message(self, x_j, bond):
            return x_j + bond

    def pool_sum(v, x):
        return global_add_pool(x, v.graph, v.graphs)

    def pool_mean(v, x):
        return global_mean_pool(x, v.graph, v.graphs)
else:
    class GINConv(nn.Module):
        def __init__(self, mlp):
            super().__init__()
            self.mlp = mlp

        def forward(self, x, v):
            return self.mlp(Propagate.apply(v.adjacency, x, 1))

    class GCNConv(nn.Module):
        def __init__(self, i, o):
            super().__init__()
            self.lin = nn.Linear(i, o)

        def forward(self, x, v):
            return Propagate.apply(v.adjacency, self.lin(x), 0)

    class BondGINConv(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.bond = nn.Embedding(BONDS, width)
            self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.ReLU(inplace=True), nn.Linear(2 * width, width))

        def forward(self, x, v, _):
            return self.mlp(torch.addmm(Propagate.apply(v.adjacency, x, 1), v.bonds, self.bond.weight))

    def pool_sum(v, x):
        return Pool.apply(v.pool, v.graph, x)

    def pool_mean(v, x):
        return pool_sum(v, x) / v.size


def where(v):
    """What a convolution takes as the graph."""
    return v.edges if args.layers == 'pyg' else v


def head(width):
    return nn.Sequential(nn.Linear(width, width), nn.ReLU(inplace=True), nn.Linear(width, width))


def one_hot(v):
    return torch.zeros(len(v.label), LABELS, device=DEVICE).scatter_(1, v.label[:, None], 1)


class GIN(nn.Module):
    """Three layers, sums of all of them."""

    def __init__(self, width=args.width, layers=3):
        super().__init__()
        mlp = lambda i: nn.Sequential(nn.Linear(i, width), nn.ReLU(inplace=True), nn.Linear(width, width), nn.ReLU(inplace=True))
        self.convs = nn.ModuleList(GINConv(mlp(width if i else LABELS)) for i in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(layers))
        self.head = head(layers * width)

    def forward(self, v):
        x, out = one_hot(v), []
        for conv, norm in zip(self.convs, self.norms):
            x = norm(conv(x, where(v)))
            out.append(pool_sum(v, x))
        return self.head(torch.cat(out, 1))


class ResGCN(nn.Module):
    """A feature layer and five residual graph convolutions of 128, sum of the last."""

    def __init__(self, width=128, layers=5):
        super().__init__()
        self.norm, self.features = nn.BatchNorm1d(LABELS), nn.Linear(LABELS, width)
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(layers))
        self.convs = nn.ModuleList(GCNConv(width, width, **({'add_self_loops': False} if LOOPS else {})) for _ in range(layers))
        self.head = head(width)

    def forward(self, v):
        x = F.relu(self.features(self.norm(one_hot(v))))
        for norm, conv in zip(self.norms, self.convs):
            x = x + F.relu(conv(norm(x), where(v)))
        return self.head(pool_sum(v, x))


class ChemGIN(nn.Module):
    """Five layers of 300 with bond embeddings, mean of the last."""

    def __init__(self, width=300, layers=5):
        super().__init__()
        self.atom = nn.Embedding(LABELS, width)
        self.convs = nn.ModuleList(BondGINConv(width) for _ in range(layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(layers))
        self.head = head(width)

    def forward(self, v):
        x = self.atom(v.label)
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            x = norm(conv(x, where(v), v.bond))
            if i + 1 < len(self.convs):
                x = F.relu(x)
        return self.head(pool_mean(v, x))


# ---------------------------------------------------------------------- losses

OFF_DIAGONAL = (1 - torch.eye(BATCH)).to(DEVICE)
SELF = torch.eye(2 * BATCH, dtype=torch.bool, device=DEVICE)
UPPER = (lambda i: i[0] * BATCH + i[1])(torch.triu_indices(BATCH, BATCH, 1)).to(DEVICE)
POSITIVE = torch.cat([torch.arange(BATCH, 2 * BATCH), torch.arange(BATCH)]).to(DEVICE)


def threshold(s):
    t = s.detach().reshape(-1).index_select(0, UPPER)
    if args.layers == 'pyg':
        return torch.quantile(t, PERCENTILE)
    place = PERCENTILE * (len(t) - 1)
    k = int(place)
    low = torch.kthvalue(t, k + 1)[0]
    return low if place - k < 1e-9 else low + (place - k) * (torch.kthvalue(t, k + 2)[0] - low)


def normalised_adjacency(z):
    s = z @ z.t()
    a = torch.sigmoid(KAPPA * (s - threshold(s))) * OFF_DIAGONAL
    r = a.sum(1).rsqrt()
    return a * r[:, None] * r[None, :]


def losses(z1, z2):
    z1, z2 = F.normalize(z1[:BATCH], dim=1), F.normalize(z2[:BATCH], dim=1)
    z = torch.cat([z1, z2])
    contrast = F.cross_entropy((z @ z.t()).div_(TAU).masked_fill_(SELF, -1e9), POSITIVE)
    return contrast + BETA * (normalised_adjacency(z1) - normalised_adjacency(z2)).pow(2).sum()


# ---------------------------------------------------------------------- steps

model = {'unsupervised': GIN, 'semisupervised': ResGCN, 'transfer': ChemGIN}[args.workload]().to(DEVICE)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **(
    dict(foreach=True) if DEVICE.type == 'cpu' else dict(fused=True, capturable=args.mode == 'graph')))
order, at = (), 0


def next_views():
    """Both views of the next mini-batch, in NumPy."""
    global order, at
    if at + BATCH > len(order):
        order, at = rng.permutation(len(DATA['n'])), 0
    b = mini_batch(order[at:at + BATCH])
    at += BATCH
    return drop_nodes(b), subgraph(b)


def objective(v1, v2):
    return losses(model(v1), model(v2))


def train(v1, v2):
    optimizer.zero_grad(set_to_none=True)
    loss = objective(v1, v2)
    loss.backward()
    optimizer.step()
    return loss.detach()


class Captured:
    """The step as a CUDA graph on views of a fixed size."""

    def __init__(self, nodes, edges):
        self.nodes, self.edges = nodes, edges
        self.views = [View(v, nodes, edges).to(DEVICE) for v in next_views()]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                train(*self.views)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.loss = train(*self.views)

    def __call__(self, v1, v2):
        for mine, new in zip(self.views, (v1, v2)):
            for x, y in zip(mine.tensors(), new.tensors()):
                x.copy_(y, non_blocking=True)
        self.graph.replay()
        return self.loss


def wait():
    if DEVICE.type == 'cuda':
        torch.cuda.synchronize()


def peak_mb():
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def main():
    global objective
    fixed = (0, 0)
    if args.mode != 'eager':
        # One size for all: 8 % more than the largest of a few views. A margin on
        # their mean would not do: a subgraph has a quarter more edges than a view
        # with dropped nodes.
        some = [v for _ in range(8) for v in next_views()]
        fixed = tuple(int(1.08 * max(len(v[k]) for v in some)) for k in ('graph', 'source'))
    run = train
    if args.mode == 'compile':
        objective = torch.compile(objective, mode='reduce-overhead')
    if args.mode == 'graph':
        run = Captured(*fixed)
    times = {'augment': [], 'compute': [], 'total': [], 'processor': []}
    for i in range(args.warmup + args.steps):
        wait()
        processor = time.process_time()
        t0 = time.perf_counter()
        arrays = next_views()
        views = [View(v, *fixed) for v in arrays]
        t1 = time.perf_counter()
        loss = float(run(*(v.pin().to(DEVICE) for v in views)))  # waits
        wait()
        t2 = time.perf_counter()
        if i >= args.warmup:
            spent = time.process_time() - processor
            for name, t in (('augment', t1 - t0), ('compute', t2 - t1), ('total', t2 - t0), ('processor', spent)):
                times[name].append(1e3 * t)

    if args.brief:
        print(json.dumps(dict(processor_ms=float(np.median(times['processor'])), peak_rss_mb=peak_mb())))
        return

    def mean(step):
        wait()
        t0 = time.perf_counter()
        for i in range(args.steps):
            step(i)
        wait()
        return round(1e3 * (time.perf_counter() - t0) / args.steps, 3)

    ready = [[View(v, *fixed).pin() for v in next_views()] for _ in range(8)]
    for views in ready:  # compiles what is new
        run(*(v.to(DEVICE) for v in views))
    train_ms = mean(lambda i: run(*(v.to(DEVICE) for v in ready[i % len(ready)])))
    device_ms = mean(lambda i: run.graph.replay()) if args.mode == 'graph' else None
    name = torch.cuda.get_device_name() if DEVICE.type == 'cuda' else 'cpu'
    print(json.dumps(dict(
        workload=args.workload, layers=args.layers, mode=args.mode, device=name, threads=args.threads, tf32=args.tf32, batch=BATCH,
        torch=torch.__version__, torch_geometric=torch_geometric.__version__ if args.layers == 'pyg' else None,
        train_ms=train_ms, device_ms=device_ms, median_ms={k: round(float(np.median(v)), 3) for k, v in times.items()}, steps=args.steps, loss=round(loss, 4),
        nodes=sum(len(v.graph) for v in views), peak_rss_mb=peak_mb())))


if __name__ == '__main__':
    main()
