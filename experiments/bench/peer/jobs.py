#!/usr/bin/env python3
"""Whole jobs of the experiments in PyTorch and scikit-learn, to be timed in turn with them.

    python3 jobs.py unsupervised --data DIR --dataset NCI1 --threads 1

unsupervised  trains a GIN on two views, embeds all graphs and evaluates the embeddings in
              nested cross-validation, by SVC and by LinearSVC
pretrain      trains a ResGCN on two views
finetune      trains a ResGCN on the labels of a tenth of the graphs, and looks at two
              other tenths after every epoch, of the first of ten folds

The layers, the losses and the collation are those of step.py --layers sparse, the settings
those of the experiments. DIR/NAME.zip is a data set as TUDataset has it. Prints one line of
JSON. Needs numpy, torch and scikit-learn.
"""
import argparse
import json
import sys
import warnings
import zipfile

from environment import tuned_environment

p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
p.add_argument('job', choices=('unsupervised', 'pretrain', 'finetune'))
p.add_argument('--data', required=True)
p.add_argument('--dataset', default='NCI1')
p.add_argument('--epochs', type=int)
p.add_argument('--folds', type=int, default=10, help='how many of the ten outer folds to evaluate')
p.add_argument('--protocols', default='graphcl,linear')
p.add_argument('--threads', type=int, default=1)
args = p.parse_args()
tuned_environment(args.threads)

import numpy as np  # noqa: E402


def read(name):
    """The graphs as step.py has them, where a label is the row of its node in the table of
    features, which comes second; and the classes."""
    with zipfile.ZipFile(f'{args.data}/{name}.zip') as z:
        def numbers(what):
            return np.array(z.read(f'{name}/{name}_{what}.txt').decode().replace(',', ' ').split(), dtype=np.int64)
        graph, label = numbers('graph_indicator') - 1, np.unique(numbers('node_labels'), return_inverse=True)[1]
        source, target = numbers('A').reshape(-1, 2).T - 1
        y = np.unique(numbers('graph_labels'), return_inverse=True)[1]
    order = np.lexsort((source, target))
    source, target = source[order], target[order]
    n, edges = np.bincount(graph), np.bincount(graph[target], minlength=len(y))
    nodes, at = np.concatenate([[0], np.cumsum(n)]), np.concatenate([[0], np.cumsum(edges)])
    first = nodes[graph[target]]
    table = np.eye(label.max() + 1, dtype=np.float32)
    if args.job != 'unsupervised':  # the degree, and one of cap + 1 columns for it
        cap = 10 if name == 'DD' else 100
        degree = np.bincount(target, minlength=len(graph))
        kinds, label = np.unique(np.stack([label, degree], 1), axis=0, return_inverse=True)
        label = label.reshape(-1)
        table = np.concatenate([table[kinds[:, 0]], kinds[:, 1:], np.eye(cap + 1)[np.minimum(kinds[:, 1], cap)]], 1).astype(np.float32)
    return dict(n=n, edges=edges, nodes=nodes, at=at, source=source - first, target=target - first,
                bond=np.zeros_like(source), label=label), table, y


DATA, TABLE, Y = read(args.dataset)
BATCH = 128
sys.argv = ['step.py', '--workload', 'unsupervised' if args.job == 'unsupervised' else 'semisupervised', '--layers', 'sparse',
            '--threads', str(args.threads), '--batch', str(BATCH), '--features', str(TABLE.shape[1])]
import step  # noqa: E402
import torch  # noqa: E402

step.DATA = DATA
TABLE = torch.from_numpy(TABLE)
step.one_hot = lambda v: TABLE[v.label]


def adam(rate):
    return torch.optim.Adam(step.model.parameters(), lr=rate, foreach=True)


def pretrain(epochs):
    step.BATCH = BATCH
    for _ in range(epochs * (len(Y) // BATCH)):
        loss = float(step.train(*(step.View(v) for v in step.next_views())))
    return loss


def views(ids):
    """All graphs in mini-batches."""
    for k in range(0, len(ids), BATCH):
        step.BATCH = len(ids[k:k + BATCH])
        yield step.View(step.mini_batch(ids[k:k + BATCH])), torch.from_numpy(Y[ids[k:k + BATCH]])


def unsupervised():
    from sklearn.model_selection import GridSearchCV, StratifiedKFold
    from sklearn.svm import SVC, LinearSVC
    warnings.filterwarnings('ignore')
    step.optimizer = adam(0.01)
    answer = dict(loss=pretrain(args.epochs or 20))
    step.model.head = torch.nn.Identity()
    step.model.eval()
    with torch.no_grad():
        x = torch.cat([step.model(v) for v, _ in views(np.arange(len(Y)))]).double().numpy()
    makers = dict(graphcl=lambda: SVC(cache_size=500), linear=lambda: LinearSVC(dual=False))
    for protocol in args.protocols.split(','):
        right = []
        for fold, (train, test) in enumerate(StratifiedKFold(10, shuffle=True, random_state=0).split(x, Y)):
            if fold < args.folds:
                grid = GridSearchCV(makers[protocol](), {'C': [1e-3, 1e-2, 1e-1, 1., 10., 100., 1000.]}, cv=5, scoring='accuracy')
                right.append(grid.fit(x[train], Y[train]).score(x[test], Y[test]))
        answer[protocol] = float(np.mean(right))
    return answer


def finetune():
    step.model.head = torch.nn.Linear(128, int(Y.max()) + 1)
    step.optimizer = adam(0.001)
    order = step.rng.permutation(len(Y))
    train, valid, test = (order[k::10] for k in range(3))
    seen = [list(views(ids)) for ids in (valid, test)]
    best = (np.inf, 0)
    for _ in range(args.epochs or 100):
        step.model.train()
        for v, y in views(step.rng.permutation(train)):
            step.optimizer.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(step.model(v), y).backward()
            step.optimizer.step()
        step.model.eval()
        with torch.no_grad():
            scores = [[(step.model(v), y) for v, y in part] for part in seen]
        loss = sum(float(torch.nn.functional.cross_entropy(s, y, reduction='sum')) for s, y in scores[0]) / len(valid)
        right = sum(int((s.argmax(1) == y).sum()) for s, y in scores[1]) / len(test)
        best = min(best, (loss, right))
    return dict(valid_loss=best[0], test_accuracy=best[1])


print(json.dumps({'unsupervised': unsupervised, 'pretrain': lambda: dict(loss=pretrain(args.epochs or 1)), 'finetune': finetune}[args.job]()))
