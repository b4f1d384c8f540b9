"""Both sides of Theorems 4.2 and 4.3 on a small fixed problem, in PyTorch float64.

    python3 specmatch/theory/testdata/make_golden.py > specmatch/theory/testdata/golden.json

Written from the formulas of the paper, with torch.matrix_exp for the heat kernels
and torch.linalg.eigvalsh for the spectra. The draws come from sines, so that every
run of any version writes the same problem.
"""

import json
import math

import torch

torch.set_default_dtype(torch.float64)

N, D, DRAWS = 10, 4, 6
# At 55 % no similarity is the threshold itself, where rounding would decide.
P, KAPPA, TAU, T = 55, 10.0, 0.2, 2.0


def draw(k):
    i = torch.arange(N * D, dtype=torch.float64)
    base = torch.sin(1 + 7.3 * i).reshape(N, D)
    noise = torch.sin(2 + 3.1 * i + 11.7 * (k + 1)).reshape(N, D)
    return base + 0.25 * noise


def unit(z):
    return z / z.norm(dim=1, keepdim=True)


def adjacency(z, soft):
    u = unit(z)
    s = u @ u.T
    upper = s[torch.triu(torch.ones(N, N), 1).bool()]
    theta = torch.quantile(upper, P / 100)
    a = torch.sigmoid(KAPPA * (s - theta)) if soft else (s > theta).double()
    return a * (1 - torch.eye(N))


def laplacian(a):
    d = a.sum(1)
    r = torch.where(d > 0, d ** -0.5, torch.zeros_like(d))
    return torch.eye(N) - r[:, None] * a * r[None, :]


def contrast(u1, u2, aligned=False):
    s = torch.cat([u1, u2]) @ torch.cat([u1, u2]).T
    idx = torch.arange(2 * N)
    if aligned:
        s[idx, (idx + N) % (2 * N)] = 1
    logits = (s / TAU).masked_fill(torch.eye(2 * N).bool(), -math.inf)
    return torch.nn.functional.cross_entropy(logits, (idx + N) % (2 * N), reduction="sum")


def theorem42(z1, z2, soft, td):
    u1, u2 = unit(z1), unit(z2)
    l1, l2 = laplacian(adjacency(z1, soft)), laplacian(adjacency(z2, soft))
    loss_g = ((l1 - l2) ** 2).sum()
    heat = ((torch.matrix_exp(-td * l1) - torch.matrix_exp(-td * l2)) ** 2).sum()
    distance = ((u1 - u2) ** 2).sum()
    c = distance / heat
    middle = unit(u1 + u2)
    loss = contrast(u1, u2)
    return {
        "t_d": td, "loss_g": loss_g, "heat": heat, "distance": distance, "c": c, "bound": td**2 * c * loss_g / TAU,
        "fixed": (loss - contrast(u1, u2, aligned=True)).abs(),
        "view1": (loss - contrast(u1, u1)).abs(),
        "midpoint": (loss - contrast(middle, middle)).abs(),
    }


def theorem43(draws, soft):
    laps, lam2, mu2, edge, pair, pot = [], [], [], [], [], []
    off = 1 - torch.eye(N)
    for z in draws:
        u, a = unit(z), adjacency(z, soft)
        l = laplacian(a)
        d = a.sum(1)
        dist = torch.cdist(u, u, compute_mode="donot_use_mm_for_euclid_dist") ** 2
        mu = (d[:, None] * u).sum(0) / d.sum()
        laps.append(l)
        lam2.append(torch.linalg.eigvalsh(l)[1])
        mu2.append((mu**2).sum())
        edge.append((a * dist).sum() / a.sum())
        pair.append((off * dist).sum() / off.sum())
        pot.append((off * torch.exp(-T * dist)).sum() / off.sum())
    lam2, mu2, laps = torch.stack(lam2), torch.stack(mu2), torch.stack(laps)
    assert lam2.min() > 1e-6, "every draw must be connected"
    # E[L_G] as the mean over all ordered pairs of draws, which is what independence means.
    loss_g = torch.stack([((x - y) ** 2).sum() for x in laps for y in laps]).mean()
    values = torch.linalg.eigvalsh(laps.mean(0))
    a = 1 - math.exp(-4 * T)
    bar, bar_nonzero = values[1], values[values > 1e-10][0]
    right = lambda lam: a / (2 * math.sqrt(2)) * (1.5 - mu2.mean()) * loss_g.sqrt() - a / 2 * lam * (1 - mu2.mean())
    return {
        "lambda2": lam2, "mu2": mu2, "edge_mean": torch.stack(edge), "pair_mean": torch.stack(pair),
        "unif": torch.stack(pot).mean().log(), "loss_g": loss_g, "direct": -a / 2 * (lam2 * (1 - mu2)).mean(),
        "lambda_bar": bar, "bound": right(bar), "lambda_bar_nonzero": bar_nonzero, "bound_nonzero": right(bar_nonzero),
        "hoffman": max((x - bar) ** 2 / ((l - laps.mean(0)) ** 2).sum() for x, l in zip(lam2, laps)),
        "hoffman_nonzero": max((x - bar_nonzero) ** 2 / ((l - laps.mean(0)) ** 2).sum() for x, l in zip(lam2, laps)),
    }


def plain(x):
    if isinstance(x, torch.Tensor):
        return x.tolist()
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    if isinstance(x, list):
        return [plain(v) for v in x]
    return x


draws = [draw(k) for k in range(DRAWS)]
print(json.dumps(plain({
    "pytorch": torch.__version__, "n": N, "d": D, "percentile": P, "kappa": KAPPA, "tau": TAU, "t": T,
    "draws": [z.flatten() for z in draws],
    "theorem42": {name: [theorem42(draws[0], draws[1], soft, td) for td in (0.1, 1.0, 5.0)] for name, soft in (("hard", False), ("sigmoid", True))},
    "theorem43": {name: theorem43(draws, soft) for name, soft in (("hard", False), ("sigmoid", True))},
}), indent=1))
