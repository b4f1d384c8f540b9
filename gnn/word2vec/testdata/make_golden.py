#!/usr/bin/env python3
"""Writes gensim.json: small corpora, what gensim drew, and the vectors it ended with.

  python3 make_golden.py > gensim.json       (needs gensim)
"""
import json, sys
import numpy as np, gensim
from gensim.models import Word2Vec
from gensim.models.doc2vec import Doc2Vec, TaggedDocument

WORDS, DOCS, DIM = 18, 14, 5


class Recorder:
    """Hands on what a generator draws, and keeps it."""

    def __init__(self, random):
        self.random, self.numbers = random, []

    def randint(self, low, high, size=None):
        r = self.random.randint(low, high, size)
        self.numbers.append(int(r) if size is None else [int(v) for v in r])
        return r


def corpus(seed):
    rng = np.random.RandomState(seed)
    p = 1.0 / np.arange(1, WORDS + 1)
    return [[int(w) for w in rng.choice(WORDS, size=rng.randint(3, 40), p=p / p.sum())] for _ in range(DOCS)]


def numbers(rows):
    return [[float('%.8g' % v) for v in row] for row in rows]


def run(name, kind, **settings):
    docs = corpus(len(name))
    text = [[str(w) for w in d] for d in docs]
    common = dict(vector_size=DIM, workers=1, alpha=0.05, min_alpha=0.001, epochs=1, batch_words=100, seed=5)
    if kind == 'skipgram':
        model = Word2Vec(sg=1, **common, **settings)
        model.build_vocab(text)
    else:
        model = Doc2Vec(dm=int(kind == 'dm'), dm_mean=1, **common, **settings)
        text = [TaggedDocument(d, [i]) for i, d in enumerate(text)]
        model.build_vocab(text)
    words = [int(w) for w in model.wv.index_to_key]
    out = {'name': name, 'kind': kind, 'settings': settings, 'docs': docs, 'kept': words,
           'words': numbers(model.wv.vectors.copy())}
    if kind != 'skipgram':
        out['doc_vectors'] = numbers(model.dv.vectors.copy())
    if settings.get('hs'):
        out['paths'] = [[[int(p), int(c)] for p, c in zip(model.wv.get_vecattr(w, 'point'), model.wv.get_vecattr(w, 'code'))] for w in model.wv.index_to_key]
    model.random = Recorder(model.random)
    model.train(text, total_examples=len(text), epochs=model.epochs)
    assert words == [int(w) for w in model.wv.index_to_key]
    out['draws'] = model.random.numbers
    out['words_after'] = numbers(model.wv.vectors)
    if kind != 'skipgram':
        out['docs_after'] = numbers(model.dv.vectors)
    if settings.get('negative', 5):
        out['cumulative'] = [int(v) for v in model.cum_table]
    return out


json.dump({'gensim': gensim.__version__, 'numpy': np.__version__, 'runs': [
    run('skip-gram', 'skipgram', window=3, negative=4, min_count=2, sample=0),
    run('skip-gram thinned out', 'skipgram', window=5, negative=5, min_count=1, sample=0.02),
    run('skip-gram hierarchic', 'skipgram', window=2, negative=0, hs=1, min_count=1, sample=0),
    run('skip-gram both', 'skipgram', window=2, negative=3, hs=1, min_count=3, sample=0.05),
    run('PV-DBOW', 'dbow', window=5, negative=5, min_count=1, sample=0),
    run('PV-DBOW thinned out', 'dbow', window=5, negative=2, min_count=3, sample=0.03),
    run('PV-DM', 'dm', window=3, negative=5, min_count=1, sample=0),
    run('PV-DM hierarchic', 'dm', window=2, negative=0, hs=1, min_count=2, sample=0.05),
]}, sys.stdout, separators=(',', ':'))
sys.stdout.write('\n')
