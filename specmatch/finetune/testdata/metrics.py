"""Writes metrics.json: metrics of 500 random predictions, with ties, constants and gaps, by
scikit-learn and SciPy, beside those of scikit-learn's dummies as baselines.

Run by hand: pip install scikit-learn==1.9.1 scipy==1.17.1; python3 -W ignore metrics.py > metrics.json
"""
import json

import numpy as np
from scipy.stats import spearmanr
from sklearn import metrics as m
from sklearn.dummy import DummyClassifier, DummyRegressor

rng = np.random.default_rng(33)


def defined(value, sound):
    return float(value) if sound else None


def regression(p, y):
    varied = len(set(y)) > 1
    return {
        "rmse": float(m.root_mean_squared_error(y, p)), "mae": float(m.mean_absolute_error(y, p)),
        "r2": defined(m.r2_score(y, p), varied),
        "spearman": defined(spearmanr(p, y).statistic if varied and len(set(p)) > 1 else 0, varied and len(set(p)) > 1)}


def binary(p, y):
    yes, both = p >= 0.5, len(set(y)) > 1
    return {
        "roc_auc": defined(100 * m.roc_auc_score(y, p) if both else 0, both),
        "average_precision": defined(100 * m.average_precision_score(y, p), max(y) > 0),
        "accuracy": 100 * m.accuracy_score(y, yes), "f1": 100 * m.f1_score(y, yes),
        "mcc": float(m.matthews_corrcoef(y, yes)), "confusion": m.confusion_matrix(y, yes, labels=[0, 1]).tolist()}


def classes(p, y):
    best, labels = p.argmax(1), range(p.shape[1])
    return {
        "accuracy": 100 * m.accuracy_score(y, best), "f1": 100 * m.f1_score(y, best, average="macro"),
        "mcc": float(m.matthews_corrcoef(y, best)), "loss": float(m.log_loss(y, p, labels=labels)),
        "confusion": m.confusion_matrix(y, best, labels=labels).tolist()}


def few(x, decimals):
    return [float(f"{v:.{decimals}g}") for v in x]


cases = []
for k in range(500):
    kind = ["regression", "binary", "classes"][k % 3]
    n = int(rng.integers(2, 24)) if k >= 9 else 120
    constant = rng.random() < 0.08
    if kind == "regression":
        scale = 10.0 ** rng.integers(-6, 7)
        y = rng.normal(size=n) * scale
        p = y + rng.normal(size=n) * scale * rng.choice([0.1, 1, 3])
        if k % 2:  # ties
            y, p = np.round(y / scale, 1) * scale, np.round(p / scale) * scale
        y, p = np.array(few(y, 5)), np.array(few(p, 4))
        if constant:
            (y if k % 2 else p)[:] = y[0]
        train = few(rng.normal(size=7) * scale, 5)
        dummy, of, outputs = DummyRegressor(), regression, 1
    elif kind == "binary":
        y = (rng.random(n) < rng.choice([0.1, 0.5, 0.8])).astype(int)
        if constant:
            y[:] = k % 2
        p = np.array(few(np.clip(0.3 * y + 0.7 * rng.random(n), 0, 1), 2 if k % 2 else 5))
        train = (rng.random(7) < 0.3).astype(int).tolist()
        train[:2] = 0, 1
        dummy, of, outputs = DummyClassifier(strategy="prior"), binary, 1
    else:
        outputs = int(rng.integers(2, 6))
        y = rng.integers(0, max(1, outputs - k % 2), n)
        if constant:
            y[:] = 0
        p = np.round(rng.dirichlet(np.ones(outputs), n) * 20 + 1)  # with ties
        p /= p.sum(1, keepdims=True)
        train = [*range(outputs), *rng.integers(0, outputs, 5).tolist()]
        dummy, of = DummyClassifier(strategy="prior"), classes
    gap = np.zeros(n, bool) if kind == "classes" else rng.random(n) < rng.choice([0, 0, 0.3])
    if gap.all():
        gap[:] = False
    values = of(p[~gap], y[~gap])
    x = np.zeros((len(train), 1))
    dummy.fit(x, train)
    x = np.zeros((n, 1))
    base = dummy.predict_proba(x) if outputs > 1 else dummy.predict_proba(x)[:, 1] if kind == "binary" else dummy.predict(x)
    cases.append({
        "Kind": kind, "Outputs": outputs, "P": np.ravel(p).tolist(), "Y": [None if g else v for g, v in zip(gap, y.tolist())],
        "Metrics": values, "Train": train, "Baseline": of(base[~gap], y[~gap])})
print(json.dumps(cases, separators=(",", ":")).replace("},{", "},\n{"))
