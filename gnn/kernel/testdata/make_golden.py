#!/usr/bin/env python3
"""Writes grakel.txt: what GraKeL says of the eight sets of TUDataset.

  python3 make_golden.py DIR > grakel.txt     (ten minutes; needs numpy and grakel)

DIR has NAME.zip for every set. One line per kernel, set and number of rounds h:
the trace of the Gram matrix, the sum of its elements, and wᵀKw with w_i = cos(i).
"""
import sys, time, warnings, zipfile
warnings.filterwarnings('ignore')
import numpy as np
from grakel import Graph
from grakel.kernels import VertexHistogram, WeisfeilerLehman, WeisfeilerLehmanOptimalAssignment

SETS = ['MUTAG', 'PROTEINS', 'IMDB-BINARY', 'NCI1', 'DD', 'REDDIT-BINARY', 'COLLAB', 'REDDIT-MULTI-5K']


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


for name in SETS:
    graphs = load(name)
    for h in range(6):
        kernels = {'wl': WeisfeilerLehman(n_iter=h, base_graph_kernel=VertexHistogram) if h else VertexHistogram()}
        if h and name == 'MUTAG':
            kernels['wloa'] = WeisfeilerLehmanOptimalAssignment(n_iter=h)
        for kind, kernel in kernels.items():
            start = time.time()
            k = np.asarray(kernel.fit_transform([Graph(a, node_labels=l) for a, l in graphs]), dtype=np.float64)
            w = np.cos(np.arange(len(k)))
            print(kind, name, h, '%.0f %.0f %.13g' % (np.trace(k), k.sum(), w @ k @ w), flush=True)
            print('%s %s %d: %.1f s' % (kind, name, h, time.time() - start), file=sys.stderr)
