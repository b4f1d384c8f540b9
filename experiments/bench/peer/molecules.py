#!/usr/bin/env python3
"""Whole jobs on molecules in RDKit and PyTorch, to be timed in turn with the experiments.

    python3 molecules.py embed --smiles FILE --out FILE --threads 1

pretrain  an epoch of contrastive learning, a chem GIN of five layers of 300 in batches of 256
embed     the vectors of all molecules, of the shape of the encoder that is built in: five layers of
          128, and of each the sum, mean and maximum over atoms

The layers, losses and augmentations are those of step.py --layers sparse. Where the encoder has
a table for every property of an atom or bond, this has one for the combinations that occur, which
is less work. FILE is a table whose first column is a SMILES. Prints one line of JSON. Needs
numpy, torch and rdkit.
"""
import argparse
import json
import sys

from environment import tuned_environment

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument('job', choices=('pretrain', 'embed'))
p.add_argument('--smiles', required=True)
p.add_argument('--out')
p.add_argument('--threads', type=int, default=1)
args = p.parse_args()
tuned_environment(args.threads)
sys.argv = ['step.py', '--workload', 'transfer', '--layers', 'sparse', '--threads', str(args.threads)]

import numpy as np  # noqa: E402
import step  # noqa: E402
import torch  # noqa: E402
from rdkit import Chem, RDLogger  # noqa: E402
from torch.nn import functional as F  # noqa: E402

RDLogger.DisableLog('rdApp.*')
ATOMS, BONDS = {}, {}  # numbers of the combinations of properties


def atom(a):
    if args.job == 'pretrain':  # what Hu et al. see
        key = a.GetAtomicNum(), a.GetChiralTag()
    else:
        key = (a.GetAtomicNum(), a.GetDegree(), a.GetFormalCharge(), a.GetTotalNumHs(), a.GetIsAromatic(), a.IsInRing(),
               a.GetHybridization(), a.GetChiralTag(), a.GetIsotope())
    return ATOMS.setdefault(key, len(ATOMS))


def bond(b):
    if args.job == 'pretrain':
        key = b.GetBondType(), b.GetBondDir()
    else:
        key = b.GetBondType(), b.GetIsConjugated(), b.IsInRing(), b.GetStereo()
    return BONDS.setdefault(key, len(BONDS))


def read(lines):
    """The molecules as step.py has graphs."""
    n, edges, label, source, target, kind = [], [], [], [], [], []
    for line in lines:
        m = Chem.MolFromSmiles(line)
        if m is None:
            continue
        label += [atom(a) for a in m.GetAtoms()]
        e = [x for b in m.GetBonds() for x in (b.GetBeginAtomIdx(), b.GetEndAtomIdx(), bond(b))]
        source += e[::3] + e[1::3]
        target += e[1::3] + e[::3]
        kind += e[2::3] * 2
        n.append(m.GetNumAtoms())
        edges.append(2 * m.GetNumBonds())
    n, edges, source, target, kind = map(np.array, (n, edges, source, target, kind))
    order = np.lexsort((source, target, np.repeat(np.arange(len(n)), edges)))
    return dict(n=n, edges=edges, nodes=np.concatenate([[0], np.cumsum(n)]), at=np.concatenate([[0], np.cumsum(edges)]),
                source=source[order], target=target[order], bond=kind[order], label=np.array(label))


def smiles():
    with open(args.smiles) as f:
        next(f)
        for line in f:
            yield line.split(',')[0].strip()


def encoder(width, atoms, bonds):
    step.LABELS, step.BONDS, step.SELF_LOOP = atoms, bonds + 1, bonds
    return step.ChemGIN(width)


def pretrain():
    step.DATA = read(smiles())
    step.model = encoder(300, len(ATOMS), len(BONDS))
    step.optimizer = torch.optim.Adam(step.model.parameters(), lr=1e-3, foreach=True)
    for _ in range(len(step.DATA['n']) // step.BATCH):
        loss = step.train(*(step.View(v) for v in step.next_views()))
    return dict(molecules=len(step.DATA['n']), loss=float(loss))


def pooled(model, v, longest):
    """Sums, means and maxima of all layers, side by side. The rows of a graph are put side by
    side for the maxima."""
    x, out = model.atom(v.label), []
    place = v.graph * longest + torch.arange(len(v.graph)) - v.first[v.graph]
    for i, (conv, norm) in enumerate(zip(model.convs, model.norms)):
        x = norm(conv(x, v, v.bond))
        if i + 1 < len(model.convs):
            x = F.relu(x)
        total = step.pool_sum(v, x)
        table = torch.full((len(v.size) * longest, x.shape[1]), -torch.inf).index_copy_(0, place, x)
        out += [total, total / v.size, table.view(len(v.size), longest, -1).amax(1)]
    return torch.cat(out, 1)


def embed():
    model = encoder(128, 1000, 30)  # rows enough: combinations come as the file is read
    model.eval()
    lines, vectors, count = smiles(), [], 512
    while part := [line for _, line in zip(range(count), lines)]:
        step.DATA = read(part)
        step.BATCH = len(step.DATA['n'])
        v = step.View(step.mini_batch(np.arange(step.BATCH)))
        v.first = torch.from_numpy(step.DATA['nodes'][:-1])
        with torch.no_grad():
            vectors.append(pooled(model, v, int(step.DATA['n'].max())).numpy())
    x = np.concatenate(vectors)
    np.save(args.out, x)
    return dict(vectors=x.shape)


print(json.dumps({'pretrain': pretrain, 'embed': embed}[args.job]()))
