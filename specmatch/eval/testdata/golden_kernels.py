#!/usr/bin/env python3
"""Writes golden_kernels.json: what scikit-learn says of the kernels in precomputed_test.go.

  python3 golden_kernels.py > golden_kernels.json        (about a minute)

The kernels are products of rows of counts, which both sides compute from the
generator of golden.py without rounding.
"""
import json, os, sys, warnings
os.environ['OMP_NUM_THREADS'] = os.environ['OPENBLAS_NUM_THREADS'] = '1'
import numpy as np, sklearn
from sklearn.model_selection import StratifiedKFold
from sklearn.svm import SVC, LinearSVC
warnings.filterwarnings('ignore')

CS = [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0]
ROUNDS = 3


def uniform(seed, i):
    with np.errstate(over='ignore'):
        z = (np.uint64(seed) << np.uint64(32)) + np.asarray(i, np.uint64)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0 ** -52 - 1.0


def labels(seed, sizes):
    y = np.repeat(np.arange(len(sizes)), sizes)
    return y[np.argsort(uniform(seed, np.arange(len(y))), kind='stable')]


def counts(seed, y, width, spread):
    """Whole numbers, more of some columns in some classes; column 0 is at least 1."""
    n, classes = len(y), y.max() + 1
    centre = uniform(seed, np.arange(classes * width)).reshape(classes, width)
    noise = uniform(seed + 1, np.arange(n * width)).reshape(n, width)
    x = np.maximum(np.floor((noise + spread * centre[y]) * 4.0), 0.0)
    x[:, 0] += 1.0
    return x


def normalized(k):
    s = 1 / np.sqrt(np.diag(k))
    k = k * np.outer(s, s)
    np.fill_diagonal(k, 1.0)
    return k


def accuracies(k, y, train, test, cs=CS):
    return [SVC(C=c, kernel='precomputed').fit(k[np.ix_(train, train)], y[train]).score(k[np.ix_(test, train)], y[test]) for c in cs]


def linear(x, y, train, test, cs=CS):
    return [LinearSVC(C=c, dual=False, tol=1e-10, max_iter=100000).fit(x[train], y[train]).score(x[test], y[test]) for c in cs]


def search(fit, inputs, y, outer, held=None, cs=CS):
    out = {'accuracies': [], 'input': [], 'c': [], 'inner': []}
    cs = cs if held is None else cs[::-1]
    for o, (train, test) in enumerate(outer):
        if held is None:
            inner = [(train[a], train[b]) for a, b in StratifiedKFold(5).split(train, y[train])]
        else:
            inner = [held[o]]
            train = held[o][0]
        mean = np.array([[fit(k, y, a, b, cs) for a, b in inner] for k in inputs]).mean(1).ravel()
        best = int(mean.argmax())
        h, c = divmod(best, len(cs))
        out['accuracies'].append(fit(inputs[h], y, train, test, [cs[c]])[0])
        out['input'].append(h)
        out['c'].append(cs[c])
        out['inner'].append(list(mean))
    return out


def run(name, seed, sizes, width, spread):
    y = labels(seed, sizes)
    rounds = [counts(seed + 10 * r, y, width, spread) for r in range(1, ROUNDS + 1)]
    outer = list(StratifiedKFold(10, shuffle=True, random_state=seed).split(y, y))
    fold = np.zeros(len(y), int)
    for f, (_, test) in enumerate(outer):
        fold[test] = f
    held = [(np.array([p for i, p in enumerate(train) if i % 10]), train[::10]) for train, _ in outer]
    raw = [sum(x @ x.T for x in rounds[:h + 1]) for h in range(ROUNDS)]
    subtree = [normalized(k) for k in raw]
    assignment = [normalized(sum(np.minimum(x[:, None], x[None]).sum(2) for x in rounds[:h + 1])) for h in range(ROUNDS)]
    joined = [np.concatenate(rounds[:h + 1], 1) for h in range(ROUNDS)]
    joined = [x / np.sqrt((x * x).sum(1, keepdims=True)) for x in joined]
    return {'name': name, 'seed': seed, 'sizes': sizes, 'width': width, 'spread': spread,
            'labels': ''.join(map(str, y)), 'folds': ''.join(map(str, fold)),
            'subtree': search(accuracies, subtree, y, outer), 'assignment': search(accuracies, assignment, y, outer),
            'held': search(accuracies, subtree, y, outer, held), 'raw': search(accuracies, raw, y, outer, cs=CS[:4]),
            'linear': search(linear, joined, y, outer, cs=CS[:5])}


json.dump({'scikit-learn': sklearn.__version__, 'numpy': np.__version__, 'problems': [
    run('two', 100, [70, 60], 12, 0.4),
    run('three', 200, [60, 50, 25], 10, 0.5),
    run('five', 300, [50, 40, 30, 25, 15], 30, 0.5),
]}, sys.stdout, separators=(',', ':'))
sys.stdout.write('\n')
