"""Prints the golden values of TestScikitLearn. Needs numpy and scikit-learn 1.9.1."""
import numpy as np
from sklearn.manifold import TSNE


def points(n, state, d=5):
    x = np.zeros((n, d))
    for i in range(n):
        for j in range(d):
            x[i, j] = -2 + 4 * (j == i % 4)
            for _ in range(4):
                state = (state * 1103515245 + 12345) % 2**31
                x[i, j] += state / 2**31
    return x


for n in 20, 30, 60, 120:
    kl = []
    for seed in range(12):
        t = TSNE(perplexity=min(30, (n - 1) / 3), init="pca", method="exact", max_iter=750, min_grad_norm=0,
                 n_iter_without_progress=750)
        kl.append(t.fit(points(n, seed * 7919 + 7920)).kl_divergence_)
    print(f"{{{n}, {np.mean(kl):.4f}, {np.min(kl):.4f}}},")
