"""Linear models by scikit-learn: python golden.py > golden.json. Row i, column f of the vectors is
sin(1.7*i + 0.9*f + 0.37*i*f), a wave that the test computes anew."""
import json

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

N, D = 60, 5
i, f = np.arange(N)[:, None], np.arange(D)[None, :]
x = np.sin(1.7 * i + 0.9 * f + 0.37 * i * f)
target = x @ np.array([1.0, -2.0, 0.5, 0.0, 3.0]) + 4 + 0.3 * np.sin(7.1 * np.arange(N))
answer = (target > 3.5).astype(float)
out = {}
for strength in (1.0, 0.1, 0.001):
    mean, std = target.mean(), target.std()
    ridge = Ridge(strength * N, solver="cholesky").fit(x, (target - mean) / std)
    logistic = LogisticRegression(C=1 / (strength * N), tol=1e-12, max_iter=10000).fit(x, answer)
    out[str(strength)] = {
        "Squares": (mean + std * ridge.predict(x)).tolist(),
        "Logistic": logistic.predict_proba(x)[:, 1].tolist(),
    }
print(json.dumps(out))
