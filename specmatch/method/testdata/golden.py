"""The methods written down once more in PyTorch, float64: python golden.py > golden.json.

The encoder is a table: a node is the row of its category, a graph the sum of its
nodes. Parameters start as 0.5*sin(1.3*i + 0.01*i*i + k + 0.7) for entry i, counted in this
project's order ([in x out] for linear layers), of the k-th parameter of a module.
"""
import json
import math

import torch
from torch import nn
from torch.nn import functional as F

torch.set_default_dtype(torch.float64)

ROWS, WIDTH = 6, 4
RAW = [[0, 1, 2], [3, 4], [5, 0, 0, 1]]
PARTS = [[0, 1], [4], [5, 0, 1]]
OTHERS = [[1, 2], [3], [0, 0, 1]]
LONG = [[0, 1, 2, 3], [4, 5, 0], [1, 2, 3, 4, 5, 0], [2, 2, 4]]
ROOTS = [[3, 2, 0, 2], [0, 2, 0, 2], [1, 2, 5, 1]]  # of each step; the middle one of three nodes has no context
SCALES = [
    [[0, 1, 2], [3, 4], [5, 0, 0, 1], [2, 2, 3], [4, 5, 1], [0, 3, 3, 5], [1, 1, 2, 4], [5, 5, 3]],
    [[1, 2], [3, 4], [0, 0, 1], [2, 3], [4, 5], [3, 3, 5], [1, 2, 4], [5, 3]],
    [[0, 1], [4], [5, 0, 1], [2], [5, 1], [0, 3], [1, 1], [5, 5]],
    [[2], [3], [5, 0], [3], [4], [3, 5], [2, 4], [3, 5]],
]


def number(p, k):
    i = torch.arange(p.numel())
    v = 0.5 * torch.sin(1.3 * i + 0.01 * (i * i) + k + 0.7)
    return v.view(p.shape[::-1]).T.clone() if p.dim() == 2 and not getattr(p, "table", False) else v.view(p.shape)


def wave(module):
    for k, p in enumerate(module.parameters()):
        p.data = number(p, k)


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(ROWS, WIDTH)
        self.table.weight.table = True

    def nodes(self, paths):
        return self.table(torch.tensor([c for p in paths for c in p]))

    def forward(self, paths):
        return torch.stack([self.table(torch.tensor(p)).sum(0) for p in paths])


def head():
    return nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.proj_head = Table(), head()
        wave(self)

    def forward(self, paths):
        return self.proj_head(self.encoder(paths))


def nce(x, y, tau):
    """GraphCL's: rows of x are anchors, the positive is not in the denominator."""
    s = torch.exp(F.normalize(x) @ F.normalize(y).T / tau)
    positive = s.diagonal()
    return -torch.log(positive / (s.sum(1) - positive)).mean()


def train(module, loss, trained=None, rate=0.05, steps=3):
    adam = torch.optim.Adam((trained or module).parameters(), rate)
    loss(0).backward()
    gradients = {n: p.grad.flatten().tolist() for n, p in module.named_parameters() if p.grad is not None}
    losses = []
    for step in range(steps):
        adam.zero_grad(set_to_none=True)
        value = loss(step)
        value.backward()
        adam.step()
        losses.append(value.item())
    return {
        "Losses": losses, "Gradients": gradients,
        "Parameters": {n: p.flatten().tolist() for n, p in module.named_parameters()},
    }


def simgrace(perturbed_rows):
    model, eta, tau = Model(), 0.3, 0.2

    def loss(step):
        noisy = Model()
        noisy.load_state_dict(model.state_dict())
        w = noisy.encoder.table.weight
        eps = torch.cos(2.1 * torch.arange(1, w.numel() + 1) + step).view(w.shape)
        w.data = w + eta * w.std() * eps
        z, other = model(RAW), noisy(RAW).detach()
        return nce(other, z, tau) if perturbed_rows else nce(z, other, tau)

    return train(model, loss)


class Shortcut(nn.Module):
    def __init__(self):
        super().__init__()
        layers = [nn.Linear(WIDTH, WIDTH) if k % 2 == 0 else nn.ReLU() for k in range(6)]
        self.block, self.linear_shortcut = nn.Sequential(*layers), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.block(x) + self.linear_shortcut(x)


def infograph():
    model = nn.Module()
    model.encoder = Table()
    setattr(model, "local", Shortcut())
    setattr(model, "global", Shortcut())
    wave(model)
    owner = torch.tensor([k for k, p in enumerate(RAW) for _ in p])

    def loss(step):
        s = model.local(model.encoder.nodes(RAW)) @ getattr(model, "global")(model.encoder(RAW)).T
        own = F.one_hot(owner).bool()
        n, b = s.shape
        positive = (math.log(2) - F.softplus(-s))[own].sum() / n
        negative = (F.softplus(-s) + s - math.log(2))[~own].sum() / (n * (b - 1))
        return negative - positive

    return train(model, loss)


def joao():
    model = Model()
    return train(model, lambda step: nce(model(RAW), model(PARTS), 0.2))


def joaov2():
    model = nn.Module()
    model.encoder, model.proj_head = Table(), nn.ModuleList(head() for _ in range(5))
    wave(model)

    def loss(step):
        views = [torch.stack([model.proj_head[k](h) for k, h in zip(arms, model.encoder(paths))])
                 for paths, arms in ((RAW, (4, 4, 4)), (PARTS, (0, 2, 0)))]
        return nce(*views, 0.2)

    return train(model, loss)


def cuco():
    model = Model()
    memory = F.normalize(torch.sin(2.9 * torch.arange(5 * WIDTH) + 0.3).view(5, WIDTH))

    def loss(step):
        q, view = F.normalize(model(RAW)), F.normalize(model(PARTS))
        similarity = (q @ memory.T).sort(1).values[:, [1, 3, 3]]
        positive = torch.exp((q * view).sum(1) / 0.2)
        return -torch.log(positive / (positive + torch.exp(similarity / 0.2).sum(1))).mean()

    return train(model, loss)


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        width = 4 * WIDTH
        self.layers = nn.ModuleList(nn.Linear(width if k else 2 * WIDTH, width) for k in range(5))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(5))
        self.last = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 1))
        for k, p in enumerate(self.ordered()):
            p.data = number(p, k)

    def ordered(self):
        for layer, norm in zip(self.layers, self.norms):
            yield from layer.parameters()
            yield from norm.parameters()
        yield from self.last.parameters()

    def forward(self, a, b):
        x = torch.cat([a, b], 1)
        for layer, norm in zip(self.layers, self.norms):
            x = norm(torch.relu(layer(x)))
        return torch.sigmoid(self.last(x)).mean()


def mssgcl():
    model, critic = Model(), Critic()
    critics_adam = torch.optim.Adam(critic.parameters(), 0.05)

    def loss(step):
        critic.requires_grad_(True)
        g1, g2, l1, l2 = (model(v) for v in SCALES)
        critics_adam.zero_grad(set_to_none=True)
        a, b = l1.detach(), l2.detach()
        (critic(a, b[[1, 2, 0, 4, 7, 5, 3, 6]]) - critic(a, b)).backward()
        critics_adam.step()
        critics_adam.zero_grad(set_to_none=True)
        critic.requires_grad_(False)
        mixed = sum(nce(g, l, 0.2) for g in (g1, g2) for l in (l1, l2))
        return nce(g1, g2, 0.2) + 0.8 / 4 * mixed + 0.4 * critic(l1, l2)

    both = nn.Module()
    both.encoder, both.proj_head, both.critic = model.encoder, model.proj_head, critic
    return train(both, loss, trained=model)


def gae():
    model = Model()

    def loss(step):
        z, at, total = model.proj_head(model.encoder.nodes(RAW)), 0, 0
        for path in RAW:
            n = len(path)
            s = z[at:at + n] @ z[at:at + n].T
            want = torch.diag(torch.ones(n - 1), 1) + torch.diag(torch.ones(n - 1), -1)
            total = total + F.binary_cross_entropy_with_logits(s, want, reduction="none")[~torch.eye(n).bool()].mean()
            at += n
        return total / len(RAW)

    return train(model, loss)


def taught(term):
    """InfoNCE of two views beside a term of a teacher, which follows after every step."""
    model, teacher, beta = Model(), Model(), [0.0]
    memory = F.normalize(torch.sin(2.9 * torch.arange(5 * WIDTH) + 0.3).view(5, WIDTH))
    own = [3, 1, 4]  # the batch's places in the memory

    def infonce(x, y):
        u = F.normalize(torch.cat([x, y]))
        s = (u @ u.T / 0.2).masked_fill(torch.eye(len(u)).bool(), -math.inf)
        positives = torch.cat([(s.diagonal(len(x))), s.diagonal(-len(x))])
        return (s.logsumexp(1) - positives).mean()

    def walk(s, tau, leave):
        return torch.log_softmax((s / tau).masked_fill(leave, -math.inf), 1)

    def kl(target, student, leave):
        keep = ~leave
        return sum((target[i][k].exp() * (target[i][k] - student[i][k])).sum() for i, k in enumerate(keep)) / len(keep)

    def terms(views, t):
        if term == "ema":
            return sum(((u - t) ** 2).sum() for u in views) / len(t)
        if term == "ema-batch":
            leave = torch.eye(len(t)).bool()
            return sum(kl(walk(t @ t.T, 0.1, leave), walk(u @ u.T, 0.2, leave), leave) for u in views)
        memory[own] = t
        leave = F.one_hot(torch.tensor(own), len(memory)).bool()
        return sum(kl(walk(t @ memory.T, 0.1, leave), walk(u @ memory.T, 0.2, leave), leave) for u in views)

    def norm(value):
        g = torch.autograd.grad(value, list(model.parameters()), retain_graph=True, allow_unused=True)
        return math.sqrt(sum((x ** 2).sum().item() for x in g if x is not None))

    def loss(step):
        if step > 0:
            for a, b in zip(teacher.parameters(), model.parameters()):
                a.data = 0.9 * a.data + 0.1 * b.data
        z1, z2 = model(PARTS), model(OTHERS)
        t = F.normalize(teacher(RAW)).detach()
        c, g = infonce(z1, z2), terms((F.normalize(z1), F.normalize(z2)), t)
        if step == 0:
            beta[0] = 0.3 * norm(c) / norm(g)
        return c + beta[0] * g

    return train(model, loss)


def contextpred():
    """A node's row against the mean of the context's rows two steps away, on paths."""
    model = nn.Module()
    model.encoder, model.context = Table(), nn.Module()
    model.context.encoder = Table()
    wave(model)

    def loss(step):
        h, c = [], []
        for path, root in zip(LONG, ROOTS[step]):
            anchors = [path[i] for i in (root - 2, root + 2) if 0 <= i < len(path)]
            if anchors:
                h.append(model.encoder.table.weight[path[root]])
                c.append(model.context.encoder.table.weight[anchors].mean(0))
        h, c = torch.stack(h), torch.stack(c)
        own, other = (h * c).sum(1), (h * c.roll(-1, 0)).sum(1)
        bce = F.binary_cross_entropy_with_logits
        return bce(own, torch.ones_like(own)) + bce(other, torch.zeros_like(other))

    return train(model, loss)


# What the masking tasks draw in each step: the hidden nodes, of which a token stands for the
# first four and another node's features for the last; hidden arcs, and pairs of nodes.
HIDDEN = [([1, 0, 2, 4, 6, 8], 3), ([8, 4, 0, 2, 5, 7], 7), ([0, 6, 5, 2, 4, 7], 3)]
ARCS = [
    ([[0, 1], [1, 0], [1, 2], [2, 1], [4, 3], [5, 6]], [[1, 1], [0, 0], [1, 0], [1, 0], [3, 3], [8, 7]]),
    ([[0, 1], [1, 2], [2, 1], [7, 6], [7, 8], [8, 7]], [[2, 0], [1, 0], [1, 2], [8, 7], [6, 5], [5, 7]]),
    ([[0, 1], [1, 0], [1, 2], [4, 3], [5, 6], [6, 7]], [[1, 1], [1, 2], [1, 1], [3, 4], [8, 5], [5, 5]]),
]


def graphmae():
    model = nn.Module()
    model.encoder, model.pretext = nn.Linear(ROWS, WIDTH), nn.Module()
    model.pretext.token = nn.Parameter(torch.zeros(1, ROWS))
    model.pretext.bridge = nn.Linear(WIDTH, WIDTH, bias=False)
    model.pretext.decoder = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, ROWS))
    wave(model)
    x = F.one_hot(torch.tensor([c for p in RAW for c in p]), ROWS).double()
    blocks = [torch.diag(torch.ones(len(p) - 1), 1) + torch.diag(torch.ones(len(p) - 1), -1) for p in RAW]
    sums = torch.block_diag(*blocks) + torch.eye(len(x))

    def loss(step):
        hidden, other = HIDDEN[step]
        shown = x.clone()
        shown[hidden[5]] = x[other]
        shown[hidden[:4]] = 0
        token = torch.zeros(len(x), 1)
        token[hidden[:4]] = 1
        h = model.pretext.bridge(model.encoder(shown + token * model.pretext.token))
        visible = torch.ones(len(x), 1)
        visible[hidden] = 0
        guess = model.pretext.decoder(sums @ (h * visible))
        return ((1 - F.cosine_similarity(guess[hidden], x[hidden])) ** 2).mean()

    return train(model, loss)


def s2gae():
    model = nn.Module()
    model.encoder, model.pretext = Table(), nn.Module()
    model.pretext.decoder = nn.Sequential(nn.Linear(4 * WIDTH // 2, 128), nn.ReLU(), nn.Linear(128, 1))
    wave(model)

    def logits(h, pairs):
        ends = [h[[p[k] for p in pairs]].view(-1, 2, WIDTH // 2) for k in range(2)]
        return model.pretext.decoder(torch.einsum("ekw,elw->eklw", *ends).flatten(1))

    def loss(step):
        h, (arcs, pairs) = model.encoder.nodes(RAW), ARCS[step]
        return -(F.logsigmoid(logits(h, arcs)).mean() + F.logsigmoid(-logits(h, pairs)).mean())

    return train(model, loss)


# The graphs of each step among the 60 that have targets.
TARGETS = [[17, 3, 40], [5, 17, 9], [0, 1, 59]]


def descriptors():
    """Smooth L1 of standardised targets of two kinds, one of them counts; of three of the first kind one is
    always equal, one has a gap and one an outlier beyond six deviations."""
    i = torch.arange(60)
    many = torch.stack([torch.sin(0.7 * i), torch.cos(1.1 * i), torch.full((60,), 5.0)], 1)
    many[17, 0], many[3, 1] = 40, math.nan
    counts = torch.stack([(i % 4) * (i % 3 == 0), (i % 5 == 0) * 2], 1).double()
    kinds = []
    for y in (many, counts):
        y = y.float().double()
        present = ~y.isnan()
        mean = y.nansum(0) / present.sum(0)
        std = torch.sqrt(((y - mean) ** 2).nansum(0) / present.sum(0))
        z = (y - mean) / torch.where(std > 0, std, 1.0)
        kinds.append(torch.where(present, z, 0.0).clamp(-6, 6))
    model = nn.Module()
    model.encoder, model.pretext = Table(), nn.Module()
    model.pretext.outputs = nn.ModuleList(nn.Linear(WIDTH, y.shape[1]) for y in kinds)
    wave(model)

    def loss(step):
        h = model.encoder(RAW)
        return sum(F.smooth_l1_loss(out(h), y[TARGETS[step]]) for out, y in zip(model.pretext.outputs, kinds))

    return train(model, loss)


def assays():
    """Two tables of labels next to a kind of descriptors. In the first, tasks 0 and 2 have labels from 0 to 1, some
    soft, task 1 others with an outlier, and task 3 too few; the second has no labels for the graphs of the last
    step. A task with n labels weighs the square root of n."""
    i = torch.arange(60)
    gap = math.nan
    first = torch.full((60, 4), gap)
    first[::2, 0] = (i[::2] % 3 == 0).double()
    first[1::2, 1] = 3 * torch.sin(0.9 * i[1::2]) + 2
    first[::3, 2] = 0.5 + 0.5 * torch.cos(0.4 * i[::3])
    first[17, 1] = 90
    first[:4, 3] = 1.0
    second = torch.full((60, 1), gap)
    second[3:20, 0] = (i[3:20] % 2).double()
    described = torch.sin(0.7 * i)[:, None].float().double()
    described = (described - described.mean(0)) / torch.sqrt(((described - described.mean(0)) ** 2).mean(0))
    model = nn.Module()
    model.encoder, model.pretext = Table(), nn.Module()
    model.pretext.outputs = nn.ModuleList([nn.Linear(WIDTH, 1)])
    # binary tasks come first, and the task with few labels is dropped
    tables = [(first[:, [0, 2, 1]], 2), (second, 1)]
    model.pretext.tasks = nn.ModuleList(nn.Embedding(y.shape[1], WIDTH) for y, _ in tables)
    for t in model.pretext.tasks:
        t.weight.table = True
    wave(model)

    def loss(step):
        h = model.encoder(RAW)
        samples = TARGETS[step]
        total = 0.5 * F.smooth_l1_loss(model.pretext.outputs[0](h), described[samples])
        for (y, binary), t in zip(tables, model.pretext.tasks):
            if not y[samples].isnan().all():
                total = total + table_loss(h, y, binary, t.weight, samples)
        return total

    def table_loss(h, y, binary, weight, samples):
        present = ~y.isnan()
        n = present.sum(0)
        y = y.float().double()
        mean = y.nansum(0) / n
        std = torch.sqrt(((y - mean) ** 2).nansum(0) / n)
        is_binary = torch.arange(y.shape[1]) < binary
        z = torch.where(is_binary, y, ((y - mean) / std).clamp(-6, 6)).nan_to_num(0.0)[samples]
        s = h @ weight.T + torch.where(is_binary, torch.log(mean / (1 - mean)), 0.0)
        cross = F.softplus(s) - z * s
        each = torch.where(is_binary, cross, F.smooth_l1_loss(s, z, reduction="none"))
        w = present[samples] * n ** -0.5
        return (each * w).sum() / w.sum()

    return train(model, loss)


goldens = {
    "descriptors": descriptors(),
    "assays": assays(),
    "graphmae": graphmae(),
    "s2gae": s2gae(),
    "ema": taught("ema"),
    "ema-batch": taught("ema-batch"),
    "ema-memory": taught("ema-memory"),
    "contextpred": contextpred(),
    "gae": gae(),
    "mssgcl": mssgcl(),
    "cuco": cuco(),
    "joao": joao(),
    "joaov2": joaov2(),
    "infograph": infograph(),
    "simgrace": simgrace(False),
    "simgrace, perturbed rows": simgrace(True),
}
lines = (f"{json.dumps(name)}: {json.dumps(golden)}" for name, golden in goldens.items())
print("{\n" + ",\n".join(lines) + "\n}")
