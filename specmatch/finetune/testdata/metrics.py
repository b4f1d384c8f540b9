"""Writes metrics.json: metrics of random predictions, with ties, by scikit-learn and SciPy.

Run by hand: pip install scikit-learn==1.9.1 scipy==1.17.1; python3 metrics.py > metrics.json
"""
import json

import numpy as np
from scipy.stats import spearmanr
from sklearn import metrics as m

rng = np.random.default_rng(33)
cases = []


def add(kind, outputs, p, y, values):
    cases.append({"Kind": kind, "Outputs": outputs, "P": np.ravel(p).tolist(), "Y": y.tolist(), "Metrics": {k: float(v) for k, v in values.items()}})


for n in 5, 30, 200:
    y = rng.normal(size=n) * 10.0 ** rng.integers(-6, 7)
    p = np.round(y + rng.normal(size=n) * y.std(), 1 - int(np.log10(y.std())))
    add("regression", 1, p, y, {
        "rmse": m.root_mean_squared_error(y, p), "mae": m.mean_absolute_error(y, p),
        "r2": m.r2_score(y, p), "spearman": spearmanr(p, y).statistic})
    y = rng.integers(0, 2, n)
    y[:2] = 0, 1
    p = np.round(np.clip(0.3 * y + 0.6 * rng.random(n), 0, 1), 2)
    yes = p >= 0.5
    add("binary", 1, p, y, {
        "roc_auc": 100 * m.roc_auc_score(y, p), "average_precision": 100 * m.average_precision_score(y, p),
        "accuracy": 100 * m.accuracy_score(y, yes), "f1": 100 * m.f1_score(y, yes), "mcc": m.matthews_corrcoef(y, yes)})
    y = rng.integers(0, 4, n)
    p = rng.dirichlet(np.ones(5), n)  # the fifth class does not occur
    p[np.arange(n), y] += 0.3
    p /= p.sum(1, keepdims=True)
    best = p.argmax(1)
    add("classes", 5, p, y, {
        "accuracy": 100 * m.accuracy_score(y, best), "f1": 100 * m.f1_score(y, best, average="macro"),
        "mcc": m.matthews_corrcoef(y, best), "loss": m.log_loss(y, p, labels=range(5))})
print(json.dumps(cases))
