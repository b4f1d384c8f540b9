#!/usr/bin/env python3
"""Times both protocols in scikit-learn and in Go on the same features and folds,
one thread each, taking turns, and prints the medians of wall-clock time and of
processor time, which other work on the machine disturbs less.

  env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE /usr/bin/python3 testdata/bench.py [rounds [problem ...]]

to be run in specmatch/eval. Problems: skewed (4110 x 96, two classes, clipped
correlated normals, about 80 % accuracy; takes two minutes a round), skewed-small (1113 x 96),
pooled (2000 x 96, two classes, unscaled, sizes log-normal as after sum pooling).
"""
import os, re, resource, struct, subprocess, sys, tempfile, time, warnings
os.environ['OMP_NUM_THREADS'] = os.environ['OPENBLAS_NUM_THREADS'] = '1'
import numpy as np, sklearn
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.svm import SVC, LinearSVC
warnings.filterwarnings('ignore')


def skewed(n, d=96):
    rng = np.random.default_rng(0)
    y = np.arange(n) % 2
    w = rng.standard_normal((d, d)) * (1 / (1 + np.arange(d)))[None, :] ** 0.5
    lat = rng.standard_normal((n, d))
    lat[:, 0] += (2 * y - 1) * .8
    lat[:, 3] += (2 * y - 1) * .35
    x = lat @ w.T
    x = np.maximum(x, -.5 * x.std(0))
    x = (x - x.mean(0)) / x.std(0)
    p = rng.permutation(n)
    return x[p], y[p]


def pooled(n, d=96):
    rng = np.random.default_rng(1)
    y = np.arange(n) % 2
    size = np.exp(rng.normal(np.log(200) + .35 * (y - 1), .9))[:, None]
    w = rng.standard_normal((8, d))
    lat = rng.standard_normal((n, 8)) * .3
    lat[:, 0] += .3 * y
    lat[:, 1] += .2 * y
    x = size * np.maximum(lat @ w + rng.standard_normal(d) * .5, 0)
    x = x / np.maximum(x.std(0), 1e-9) * rng.uniform(.2, 3, d)
    p = rng.permutation(n)
    return x[p], y[p]


PROBLEMS = {'skewed': lambda: skewed(4110), 'skewed-small': lambda: skewed(1113), 'pooled': lambda: pooled(2000)}


def reference(make, x, y):
    t, cpu = time.perf_counter(), time.process_time()
    acc = []
    for tr, te in StratifiedKFold(10, shuffle=True, random_state=1).split(x, y):
        g = GridSearchCV(make(), {'C': [1e-3, 1e-2, 1e-1, 1., 10., 100., 1000.]}, cv=5, scoring='accuracy').fit(x[tr], y[tr])
        acc.append(g.score(x[te], y[te]))
    return time.perf_counter() - t, time.process_time() - cpu, float(np.mean(acc))


def children():
    u = resource.getrusage(resource.RUSAGE_CHILDREN)
    return u.ru_utime + u.ru_stime


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    names = sys.argv[2:] or ['skewed-small', 'pooled']
    print('scikit-learn', sklearn.__version__, 'numpy', np.__version__)
    with tempfile.TemporaryDirectory() as tmp:
        subprocess.run(['go', 'test', '-c', '-o', tmp + '/eval.test', '.'], check=True)
        for name in names:
            x, y = PROBLEMS[name]()
            with open(f'{tmp}/{name}', 'wb') as f:
                f.write(struct.pack('<qq', *x.shape) + x.astype('<f8').tobytes() + y.astype('<i8').tobytes())
            env = dict(os.environ, SPECMATCH_EVAL_BENCH=f'{tmp}/{name}')
            for protocol, make in (('graphcl', lambda: SVC(cache_size=500)), ('linear', lambda: LinearSVC(dual=False))):
                ours, theirs = [], []
                for _ in range(rounds):
                    cpu = children()
                    out = subprocess.run([tmp + '/eval.test', '-test.run', '^$', '-test.bench', f'Evaluate/{protocol}', '-test.benchtime', '1x', '-test.cpu', '1'],
                                         env=env, check=True, capture_output=True, text=True).stdout
                    m = re.search(r'([\d.]+) ns/op\s+([\d.]+) accuracy', out)
                    ours.append((float(m[1]) / 1e9, children() - cpu, float(m[2]) / 1e10))
                    theirs.append(reference(make, x, y))
                (a, ca, acc), (b, cb, ref) = np.median(ours, 0), np.median(theirs, 0)
                print(f'{name:12s} {protocol:7s} Go {a:6.2f} s, cpu {ca:6.2f} ({acc:.10f})   scikit-learn {b:6.2f} s, cpu {cb:6.2f} ({ref:.10f})   {b / a:.1f}x, cpu {cb / ca:.1f}x', flush=True)


main()
