"""Golden splits for split_test.go, from scikit-learn and NumPy themselves.

    /usr/bin/python3 testdata/sklearn_folds.py > testdata/sklearn_folds.json

The versions used are written into the file.
"""
import json
import sys

import numpy
import sklearn
from sklearn.model_selection import StratifiedKFold


def labels(name):
    # Integer arithmetic only, so that the labels are part of the golden file
    # and do not depend on a generator.
    return {
        "two": [(i * i + i // 3) % 2 for i in range(23)],
        "appearance": [5, 3, 3, -1, 5, 3, -1, 5, 5, -1, 3, 3, -1, -1, 5, 3, 5, 5],
        "unbalanced": [0] * 31 + [1] * 7 + [2] * 4 + [0] * 9 + [1] * 2,
        "rare": [0, 0, 0, 1, 0, 0, 2, 0, 0, 2, 0, 0],
        "long": [(i * 7919 >> 3) % 5 if i % 11 else 9 for i in range(307)],
        "single": [4] * 8,
    }[name]


def main():
    cases = []
    for name, k, shuffle, seed in [
        ("two", 2, False, 0), ("two", 5, False, 0), ("two", 10, True, 0),
        ("appearance", 3, False, 0), ("appearance", 3, True, 12345),
        ("unbalanced", 4, False, 0), ("unbalanced", 4, True, 7), ("unbalanced", 10, True, 4294967295),
        ("rare", 4, False, 0), ("rare", 4, True, 1),
        ("long", 10, False, 0), ("long", 10, True, 42), ("long", 3, True, 2147483648),
        ("single", 8, True, 3),
    ]:
        y = labels(name)
        split = StratifiedKFold(k, shuffle=shuffle, random_state=seed if shuffle else None)
        test = [te.tolist() for _, te in split.split(numpy.zeros(len(y)), y)]
        cases.append({"name": name, "labels": y, "k": k, "shuffle": shuffle, "seed": seed, "test": test})
    states = []
    for seed in [0, 1, 42, 5489, 12345, 4294967295]:
        r = numpy.random.RandomState(seed)
        bits = [int(v) for v in r.randint(0, 2**32, size=5, dtype=numpy.uint32)]
        r = numpy.random.RandomState(seed)
        perms = [r.permutation(n).tolist() for n in [1, 2, 3, 10, 1, 33]]
        # Beyond one refill of the twister's 624 words.
        r = numpy.random.RandomState(seed)
        big = r.permutation(3000)
        states.append({"seed": seed, "bits": bits, "permutations": perms,
                       "big_head": big[:10].tolist(), "big_tail": big[-10:].tolist()})
    json.dump({
        "made_by": "testdata/sklearn_folds.py",
        "python": sys.version.split()[0], "numpy": numpy.__version__, "sklearn": sklearn.__version__,
        "folds": cases, "states": states,
    }, sys.stdout, separators=(",", ":"))
    print()


main()
