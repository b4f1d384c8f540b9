#!/usr/bin/env python3
"""Writes grakel.txt: what GraKeL says of the eight sets of TUDataset.

  python3 make_golden.py DIR [NAME...] > grakel.txt     (needs numpy, scipy and grakel)

DIR has NAME.zip for every set. One line per set and round h: the colors of the round,
how many pairs of a graph and a color in it there are, and the SHA-256 of the upper
triangles of the Gram matrices of rounds 0 to h, of the WL subtree kernel and of optimal
assignment. Their elements are whole numbers, so that equal means equal in all digits.

The matrices are put together from GraKeL's counts, since its WL-OA takes hours on the
large sets; on small ones they are compared with its own.
"""
import hashlib, sys, time, warnings, zipfile
warnings.filterwarnings('ignore')
import numpy as np
from scipy import sparse
from grakel import Graph
from grakel.kernels import VertexHistogram, WeisfeilerLehman, WeisfeilerLehmanOptimalAssignment

SETS = ['MUTAG', 'PROTEINS', 'IMDB-BINARY', 'NCI1', 'DD', 'REDDIT-BINARY', 'COLLAB', 'REDDIT-MULTI-5K']
ROUNDS = 5


def load(name):
    z = zipfile.ZipFile('%s/%s.zip' % (sys.argv[1], name))
    def read(part):
        text = z.read('%s/%s_%s.txt' % (name, name, part)).decode().replace(',', ' ')
        return np.array(text.split(), dtype=np.int64)
    edges, owner = read('A').reshape(-1, 2) - 1, read('graph_indicator') - 1
    edges = edges[edges[:, 0] != edges[:, 1]]
    code = np.unique(edges[:, 0] * len(owner) + edges[:, 1])
    edges = np.stack([code // len(owner), code % len(owner)], 1)
    try:
        labels = read('node_labels')
    except KeyError:
        labels = np.bincount(edges[:, 0], minlength=len(owner))
    nodes = np.bincount(owner)
    first = np.concatenate([[0], np.cumsum(nodes)])
    cut = np.searchsorted(owner[edges[:, 0]], np.arange(len(nodes) + 1))
    graphs = []
    for g, n in enumerate(nodes):
        adjacency = {i: [] for i in range(n)}
        for a, b in edges[cut[g]:cut[g + 1]] - first[g]:
            adjacency[int(a)].append(int(b))
        graphs.append((adjacency, {i: int(l) for i, l in enumerate(labels[first[g]:first[g + 1]])}))
    return graphs


def digest(k):
    """The SHA-256 of the elements on and above the diagonal, row by row, as int64."""
    sha = hashlib.sha256()
    for i in range(len(k)):
        assert (k[i, i:] == np.rint(k[i, i:])).all() and abs(k[i]).max() < 2.0**53
        sha.update(k[i, i:].astype('<i8').tobytes())
    return sha.hexdigest()


def minima(x):
    """The sums of the smaller ones of the counts of two rows."""
    x, k = sparse.csc_matrix(x), np.zeros((x.shape[0],) * 2)
    for c in range(x.shape[1]):
        rows, counts = x.indices[x.indptr[c]:x.indptr[c + 1]], x.data[x.indptr[c]:x.indptr[c + 1]]
        k[np.ix_(rows, rows)] += np.minimum.outer(counts, counts)
    return k


for name in sys.argv[2:] or SETS:
    start = time.time()
    graphs = [Graph(a, node_labels=l) for a, l in load(name)]
    wl = WeisfeilerLehman(n_iter=ROUNDS, base_graph_kernel=VertexHistogram).fit(graphs)
    k = oa = 0
    for h in range(ROUNDS + 1):
        x = sparse.csr_matrix(wl.X[h].X)
        k, oa = k + (x @ x.T).toarray(), oa + minima(x)
        print(name, h, x.shape[1], x.nnz, digest(k), digest(oa), flush=True)
    if len(graphs) <= 1200:  # what was put together here is what GraKeL gives
        assert (k == WeisfeilerLehman(n_iter=ROUNDS, base_graph_kernel=VertexHistogram).fit_transform(graphs)).all()
        if name in ('MUTAG', 'IMDB-BINARY'):
            assert (oa == WeisfeilerLehmanOptimalAssignment(n_iter=ROUNDS).fit_transform(graphs)).all()
    print('%s: %.0f s' % (name, time.time() - start), file=sys.stderr, flush=True)
