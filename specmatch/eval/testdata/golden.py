#!/usr/bin/env python3
"""Writes golden.json: what scikit-learn says of the problems in golden_test.go.

  /usr/bin/python3 golden.py > golden.json        (about a minute)

The features are not stored. Both sides compute them from a counter-based
generator by additions and multiplications in the same order, so that they agree
to the last bit. Versions used are in the file itself.
"""
import json, os, sys, warnings
os.environ['OMP_NUM_THREADS'] = os.environ['OPENBLAS_NUM_THREADS'] = '1'
import numpy as np, sklearn, scipy
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC, LinearSVC
warnings.filterwarnings('ignore')

CS = [1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0]


def uniform(seed, i):
    """SplitMix64 of seed·2^32 + i, as a multiple of 2^-52 in [-1, 1)."""
    with np.errstate(over='ignore'):
        z = (np.uint64(seed) << np.uint64(32)) + np.asarray(i, np.uint64)
        z = (z + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    return (z >> np.uint64(11)).astype(np.float64) * 2.0 ** -52 - 1.0


def bell(seed, i):
    i = np.asarray(i, np.uint64) * np.uint64(4)
    return ((uniform(seed, i) + uniform(seed, i + np.uint64(1))) + uniform(seed, i + np.uint64(2))) + uniform(seed, i + np.uint64(3))


def labels(seed, sizes):
    y = np.repeat(np.arange(len(sizes)), sizes)
    return y[np.argsort(uniform(seed, np.arange(len(y))), kind='stable')]


def problem(seed, sizes, d, spread, kind):
    y = labels(seed, sizes)
    n = len(y)
    if kind == 'equal':
        return np.full((n, d), 3.0), y
    x = bell(seed + 1, np.arange(n * d)).reshape(n, d) + spread * bell(seed + 2, np.arange(len(sizes) * d)).reshape(-1, d)[y]
    if kind == 'heavy':        # sum-pooled graphs of very different sizes
        size = np.abs(bell(seed + 3, np.arange(n)))[:, None]
        x = (x + 1.5) * (0.1 + 20.0 * (size * size))
    elif kind == 'duplicates':  # a quarter of the points, each four times, labels as they come
        x = x[np.arange(n) % (n // 4)]
    elif kind == 'constant':    # constant, equal and collinear columns
        x[:, 0], x[:, 1], x[:, 2] = 0.0, 1.0, 50.0
        x[:, 4], x[:, 5] = x[:, 3], 2.0 * x[:, 3]
    return x, y


PROBLEMS = [
    ('two', 10, [75, 75], 8, 0.35, ''),
    ('three heavy', 20, [70, 60, 50], 6, 0.5, 'heavy'),
    ('five imbalanced', 30, [80, 50, 30, 20, 12], 10, 0.5, ''),
    ('duplicates', 40, [60, 60], 4, 0.5, 'duplicates'),
    ('constant', 50, [50, 50], 7, 0.5, 'constant'),
    ('small', 60, [10, 10], 3, 0.5, ''),
    ('rare class', 70, [40, 30, 4], 5, 0.6, ''),
    ('equal points', 80, [25, 15], 2, 0.0, 'equal'),
    ('medium', 90, [320, 280], 32, 0.12, ''),
]


def nested(make, x, y, outer):
    acc, chosen, inner = [], [], []
    for tr, te in outer:
        g = GridSearchCV(make(), {'C': CS}, cv=5, scoring='accuracy').fit(x[tr], y[tr])
        acc.append(g.score(x[te], y[te]))
        chosen.append(g.best_params_['C'])
        inner.append(list(g.cv_results_['mean_test_score']))
    return {'accuracies': acc, 'chosen': chosen, 'inner': inner}


def run(name, seed, sizes, d, spread, kind):
    x, y = problem(seed, sizes, d, spread, kind)
    outer = list(StratifiedKFold(10, shuffle=True, random_state=seed).split(x, y))
    fold = np.zeros(len(y), int)
    for f, (_, te) in enumerate(outer):
        fold[te] = f
    out = {'name': name, 'seed': seed, 'sizes': sizes, 'dim': d, 'spread': spread, 'kind': kind,
           'labels': ''.join(map(str, y)), 'folds': ''.join(map(str, fold)), 'checksum': float(x.sum(1).sum()),
           'graphcl': nested(SVC, x, y, outer),
           'linear': nested(lambda: LinearSVC(dual=False, max_iter=100000), x, y, outer),
           'linear_converged': nested(lambda: LinearSVC(dual=False, max_iter=100000, tol=1e-12), x, y, outer),
           'svc': [], 'linear_svc': []}
    tr, te = slice(0, None, 2), slice(1, 24, 2)
    for c in CS:
        m = SVC(C=c, decision_function_shape='ovo').fit(x[tr], y[tr])
        dec = m.decision_function(x[te])
        if len(sizes) == 2:
            dec = -dec  # libsvm's sign
        out['svc'].append({'c': c, 'gamma': m._gamma, 'iterations': [int(i) for i in m.n_iter_],
                           'support': int(m.n_support_.sum()), 'decision': [float('%.10g' % v) for v in dec.ravel()],
                           'predicted': ''.join(map(str, m.predict(x[te])))})
        m = LinearSVC(C=c, dual=False, max_iter=1000000, tol=1e-12).fit(x[tr], y[tr])
        out['linear_svc'].append({'c': c, 'decision': [float('%.10g' % v) for v in m.decision_function(x[te]).ravel()],
                                  'predicted': ''.join(map(str, m.predict(x[te])))})
    return out


def auc(seed, n, levels, rate):
    """n scores on a few levels (0: all distinct), positives at about a rate."""
    s = uniform(seed, np.arange(n))
    if levels:
        s = np.floor(s * levels)
    y = (uniform(seed + 1, np.arange(n)) + 0.3 * uniform(seed, np.arange(n)) < 2 * rate - 1).astype(int)
    return {'seed': seed, 'n': n, 'levels': levels, 'rate': rate, 'auc': roc_auc_score(y, s)}


golden = {
    'versions': {'python': sys.version.split()[0], 'scikit-learn': sklearn.__version__, 'numpy': np.__version__, 'scipy': scipy.__version__},
    'cs': CS,
    'problems': [run(*p) for p in PROBLEMS],
    'auc': [auc(1, 50, 0, .5), auc(3, 400, 3, .5), auc(5, 400, 20, .1), auc(7, 1000, 0, .03), auc(9, 999, 1, .4)],
}
json.dump(golden, sys.stdout, indent=None, separators=(',', ':'))
sys.stdout.write('\n')
