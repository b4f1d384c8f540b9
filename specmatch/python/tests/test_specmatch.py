"""The installed package against the program: `pytest tests` in an environment that has the wheel."""
import csv
import json
import os
import pickle
import pydoc
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import specmatch_cl as specmatch
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from specmatch_cl import Classifier, Embedder, Predictor, Regressor, SpecmatchError, records, tool, worker

rng = random.Random(1)
SMILES = ["".join(rng.choice("CCCO") for _ in range(rng.randint(2, 14))) + "C" for _ in range(120)]
CARBONS = np.array([s.count("C") for s in SMILES], float)
TINY = {"hidden": 8, "layers": 2}
GRAPHS = [([[i, (i + 1) % n] for i in range(n - k % 2)], [i % 3 for i in range(n)]) for k, n in enumerate([3, 4, 5, 6, 7, 8] * 4)]


def command(*arguments, **more):
    return subprocess.run([tool.program(), *map(str, arguments)], check=True, capture_output=True, **more).stdout


def write_csv(path, smiles):
    with open(path, "w", newline="", encoding="utf-8") as f:
        csv.writer(f).writerows([["smiles"], *([s] for s in smiles)])


def by_file(folder, smiles, *flags):
    """The vectors as the command line writes them into a file."""
    write_csv(folder / "m.csv", smiles)
    command("embed", "-in", folder / "m.csv", "-out", folder / "v.npy", *flags)
    return np.load(folder / "v.npy")


def test_version():
    assert command("version").decode().split() == ["specmatch", specmatch.__version__]
    assert Path(tool.program()).is_relative_to(sys.prefix)


def test_vectors_are_those_of_the_command_line(tmp_path):
    got = Embedder().fit_transform(SMILES)
    assert got.dtype == np.float32 and got.tobytes() == by_file(tmp_path, SMILES).tobytes()
    e = Embedder(readout="last:sum")
    assert e.transform(SMILES).tobytes() == by_file(tmp_path, SMILES, "-readout", "last:sum").tobytes()
    assert Embedder("pretrained:minimol").transform(SMILES).tobytes() == Embedder("pretrained").transform(SMILES).tobytes() == got.tobytes()
    other = "pretrained:zinc"
    assert Embedder(other).transform(SMILES).tobytes() == by_file(tmp_path, SMILES, "-model", other).tobytes() != got.tobytes()
    head = command("embed", "-in", tmp_path / "m.csv", "-out", "-", "-readout", "last:sum").decode().split("\n")[0]
    assert list(e.get_feature_names_out()) == head.split(",")[1:]


def test_flags_are_parameters(tmp_path):
    salts = ["CCN", "[Na+].CC(=O)[O-]", "CC[NH3+].[Cl-]", "OC(=O)c1ccccc1"]
    given = {"features": "morgan:2:16,descriptors,encoder", "readout": "last:max", "largest_fragment": True, "neutralise": True}
    e = Embedder(**given)
    flags = [f"-{name.replace('_', '-')}={str(value).lower()}" for name, value in given.items()]
    got = e.transform(salts)
    assert got.tobytes() == by_file(tmp_path, salts, *flags).tobytes() != Embedder(**given | {"neutralise": None}).transform(salts).tobytes()
    names = e.get_feature_names_out()
    assert list(names) == command("embed", "-in", tmp_path / "m.csv", "-out", "-", *flags).decode().split("\n")[0].split(",")[1:]
    assert got.shape == (4, 16 + 52 + 128) and len(set(names)) == len(names) and got.shape[1] == len(names)
    # They are parameters as any others are.
    assert given.items() <= e.get_params().items() and given.items() <= clone(e).get_params().items()
    assert "readout='last:max'" in repr(e) and (pickle.loads(pickle.dumps(e)).transform(salts) == got).all()
    assert (e.set_params(features="descriptors").transform(salts) == got[:, 16:68]).all() and e.get_params()["features"] == "descriptors"
    search = GridSearchCV(make_pipeline(Embedder(), LogisticRegression()), {"embedder__features": ["bits:2:64", "descriptors"]}, cv=2)
    assert search.fit(SMILES, CARBONS > 7).best_params_.keys() == {"embedder__features"}
    # So are those of training, which a model file keeps.
    r = Regressor(epochs=1, features="descriptors,encoder", readout="last:max", largest_fragment=True, neutralise=True, **TINY)
    r.fit(salts * 9, np.arange(36.0))
    card = specmatch.read_card(r.models_[0])
    assert card["encoder"]["readout"] == "last:max" and card["encoder"]["hidden"] == 8
    assert np.allclose(r.predict(["CC(=O)[O-].[Na+]"]), r.predict(["CC(=O)O"]))
    e = Embedder(method="infonce", epochs=1, readout="last:max", largest_fragment=True, **TINY).fit(salts * 9)
    assert (e.transform(["CC.[Na+]"]) == e.transform(["CC"])).all() and e.get_feature_names_out()[0] == "l2_max_0"
    for kind, wrong in ((Embedder, {"out": "x"}), (Regressor, {"level": 0.9}), (Classifier, {"target": "y0"}), (Embedder, {"reedout": 1})):
        with pytest.raises(TypeError, match="got an unexpected keyword argument"):
            kind(**wrong)
        with pytest.raises(ValueError, match="Invalid parameter"):
            kind().set_params(**wrong)
    with pytest.raises(SpecmatchError, match='invalid value "no" for flag -readout'):
        Embedder(readout="no").transform(SMILES)


def test_predictions_are_those_of_the_command_line(tmp_path):
    r = Regressor(epochs=3, n_estimators=2, **TINY, random_state=3).fit(SMILES, CARBONS)
    names = r.save(str(tmp_path / "r.safetensors"))
    assert [Path(n).name for n in names] == ["r-0.safetensors", "r-1.safetensors"]
    write_csv(tmp_path / "m.csv", SMILES)
    command("predict", "-in", tmp_path / "m.csv", "-model", ",".join(names), "-out", tmp_path / "p.npy")
    assert (np.load(tmp_path / "p.npy")[:, 0] == r.predict(SMILES)).all()
    assert (Regressor.load(*names).predict(SMILES) == r.predict(SMILES)).all()
    whole = str(tmp_path / "r.zip")
    assert r.save(whole) == [whole]
    loaded = Regressor.load(whole)
    assert loaded.n_estimators == len(loaded.models_) == len(names) and loaded.models_ == r.models_
    assert (loaded.predict(SMILES) == r.predict(SMILES)).all()
    column, *_ = Predictor(whole).predict(SMILES).values()
    assert np.allclose(column, r.predict(SMILES), rtol=1e-4)
    with pytest.raises(ValueError, match="this ensemble has"):
        Embedder(model=whole).transform(SMILES)
    with pytest.raises(ValueError, match="an ensemble of models"):
        tool.read_card(whole)
    with pytest.raises(ValueError, match="predicts regression; want classes"):
        Classifier.load(*names)


def test_predictors_that_ship(tmp_path):
    columns = Predictor("admet").predict(["CCO", "C(", "c1ccccc1"], level=0.9)
    assert {"herg", "caco2", "caco2_low", "caco2_high"} <= set(columns)
    assert all(np.isnan(v).tolist() == [False, True, False] for v in columns.values())
    one = Predictor("admet:herg").predict(["CCO", "C(", "c1ccccc1"], distance=True)
    assert list(one) == ["herg", "distance"] and np.array_equal(one["herg"], columns["herg"], equal_nan=True)
    none = Predictor("admet:herg").predict(["C("], distance=True)
    assert list(none) == ["herg", "distance"] and np.isnan([*none.values()]).tolist() == [[True], [True]]
    with pytest.raises(SpecmatchError, match='did you mean "herg"'):
        Predictor("admet:hreg").predict(["CCO"])


def test_what_cannot_be_read():
    bad = ["CC", "C1CC", None, "", "CCO", float("nan")]
    for lines in (bad, ["C\n\nC", *bad], [*["CC"] * 300, *bad]):  # by a process that stays, and by one of its own
        number = lines.index("C1CC") if "C\n\nC" not in lines else 0
        with pytest.raises(SpecmatchError, match=rf'^record {number}: .*: character'):
            Embedder().transform(lines)
    with pytest.warns(UserWarning, match="4 of 6 records cannot be used"):
        rows = Embedder(handle_invalid="nan").transform(bad)
    assert np.isnan(rows).all(axis=1).tolist() == [False, True, True, True, False, True]
    with pytest.warns(UserWarning):
        assert (Embedder(handle_invalid="drop").transform(bad) == rows[[0, 4]]).all()
    with pytest.warns(UserWarning, match="2 of 2"):
        assert np.isnan(Embedder(handle_invalid="nan").transform(["C1CC", None])).all()
    y = np.arange(len(bad) * 20.0)
    with pytest.raises(SpecmatchError, match='^80 of 120 records cannot be used, such as record 1: "C1CC"'):
        Regressor(epochs=1, **TINY).fit(bad * 20, y)
    with pytest.raises(SpecmatchError, match="^1 records with a target; want at least one to train on"):
        Regressor(epochs=1, **TINY).fit(["CC"], [1])
    assert specmatch.valid(bad).tolist() == [True, False, False, False, True, False]
    r = Regressor(epochs=1, **TINY, handle_invalid="prior").fit(bad * 20, y)
    c = Classifier(epochs=1, **TINY, handle_invalid="prior").fit(bad * 20, y > 90)
    with pytest.warns(UserWarning, match="4 of 6 records cannot be used"):
        assert (r.predict(bad)[[1, 2, 3, 5]] == y.mean()).all() and (r.predict(bad)[[0, 4]] != y.mean()).all()
        assert c.predict_proba(bad)[1].tolist() == [91 / 120, 29 / 120] and not c.predict(bad)[1]
        scores = cross_val_score(c, bad * 20, y % 12 > 5, scoring="roc_auc")
    assert len(scores) == 5 and np.isfinite(scores).all()
    c = Classifier(epochs=1, **TINY, handle_invalid="nan").fit(bad * 20, y > 60)
    with pytest.warns(UserWarning):
        assert [v is None for v in c.predict(bad)] == np.isnan(rows).all(axis=1).tolist()
    assert c.explain(["C1CC", None]) == [None, None]
    with pytest.raises(SpecmatchError, match="^record 1: .*ring 1 is not closed"):
        c.set_params(handle_invalid="error").explain(["CCO", "C1CC"])
    for p in (r.set_params(split="part"), c.set_params(split="smiles")):
        with pytest.raises(ValueError, match="split is '.*'; want one of .'auto', 'random'"):
            p.fit(SMILES, CARBONS > 7)
    with pytest.raises(SpecmatchError, match="^model 0: the level 0.99 needs 99 validation records, and there are"):
        r.predict_interval(["CC"], level=0.99)
    for X, message in (([], "0 sample"), ("CC", "one text is no list"), (np.zeros((2, 3)), "shape"), ([1, 2], "type int"), (["C", 1], "type int")):
        with pytest.raises((ValueError, TypeError), match=message):
            Embedder().transform(X)
    with pytest.raises(ValueError, match="want one of .'error'"):
        Embedder(handle_invalid="no").transform(["C"])
    with pytest.raises(SpecmatchError, match='invalid value "no" for flag -method'):
        Embedder(method="no").fit(SMILES)
    # Classes that are not in the fit: each with its reason.
    third = np.arange(120) % 40 == 3
    for name, settings, X, weights, message in (
        ("NA", {}, SMILES, None, "the class 'NA' is read as a gap$"),
        ("NA", {"merge": "drop"}, SMILES, None, "the class 'NA' is read as a gap, or merge drops"),
        ("z", {"handle_invalid": "nan"}, np.where(third, "C1CC", SMILES), None, "the class 'z' has no record that can be read"),
        ("z", {"handle_invalid": "drop"}, np.where(third, "C1CC", SMILES), None, "the class 'z' has no record that can be read"),
        ("z", {}, SMILES, ~third, r"all records of these classes have the weight 0: \['z'\]"),
        (" more", {}, SMILES, None, r"differ in blanks only: \[' more', 'less', 'more'\]"),
    ):
        c = Classifier(epochs=1, **TINY, **settings)
        with pytest.raises(ValueError, match=message):
            c.fit(X, np.where(third, name, np.where(CARBONS > 6, "more", "less")), sample_weight=weights)
    c = Classifier(epochs=1, **TINY).fit(SMILES, np.where(CARBONS > 6, " more", "less"))
    assert set(c.predict(SMILES)) <= {" more", "less"} and c.explain(["CC"])[0].shape == (2, 2)


def test_no_records():
    e, r = Embedder(readout="last:mean"), Regressor(epochs=1, **TINY).fit(SMILES, CARBONS)
    assert list(e.stream([])) == list(e.stream(iter([]))) == r.explain([]) == []
    assert specmatch.valid([]).tolist() == [] and r.draw_explanations([]).page == ""
    columns = Predictor("admet:herg").predict([], level=0.9)
    assert columns.keys() == Predictor("admet:herg").predict(["C"], level=0.9).keys() and not any(map(len, columns.values()))


def test_unicode(tmp_path):
    text = ["CC", "Cé", "分子", "C\"\n\"C", "C\ud800", "\0"]
    with pytest.warns(UserWarning, match="5 of 6"):
        assert np.isnan(Embedder(handle_invalid="nan").transform(text)).all(axis=1).tolist() == [False] + [True] * 5
    path = tmp_path / "модель é.safetensors"
    Embedder().save(path)
    assert (Embedder(path).transform(["CC"]) == Embedder().transform(["CC"])).all()
    c = Classifier(epochs=1, **TINY).fit(SMILES, np.where(CARBONS > 8, "großes, Molekül", "小"))
    assert set(c.predict(SMILES)) <= {"großes, Molekül", "小"}


def test_graphs(tmp_path):
    e = Embedder(method="graphcl", epochs=2, **TINY, random_state=1).fit(GRAPHS)
    got = e.transform(GRAPHS)
    with open(tmp_path / "g.jsonl", "w") as f:
        f.writelines(json.dumps({"edges": edges, "labels": labels}) + "\n" for edges, labels in GRAPHS)
    command("train", "-in", tmp_path / "g.jsonl", "-method", "graphcl", "-epochs", 2, "-hidden", 8, "-layers", 2, "-seed", 1, "-out", tmp_path / "run")
    command("embed", "-in", tmp_path / "g.jsonl", "-model", tmp_path / "run/model.safetensors", "-out", tmp_path / "v.npy")
    assert (np.load(tmp_path / "v.npy") == got).all() and list(e.get_feature_names_out())[:2] == ["h0", "h1"]
    nx = pytest.importorskip("networkx", reason="networkx is not installed")
    of_nx = []
    for edges, labels in GRAPHS:
        g = nx.Graph()
        g.add_nodes_from((f"node {i}", {"label": v}) for i, v in enumerate(labels))
        g.add_edges_from((f"node {a}", f"node {b}") for a, b in edges)
        of_nx.append(g)
    assert (e.transform(of_nx) == got).all()
    with pytest.raises(SpecmatchError, match="has molecules, want graphs"):
        e.transform(SMILES)
    with pytest.raises(ValueError, match="features of shape"):
        e.transform([([[0, 1]], [0.5, 1.5])])
    gap = nx.Graph()
    gap.add_nodes_from([("a", {"attributes": [0.5, 1.0]}), ("b", {"attributes": [float("nan"), 1.0]})])
    with pytest.raises(SpecmatchError, match="record 0: .*attribute 0 of node 1 is null"):
        e.transform([gap])
    assert records.line({"a": [1.5, float("inf")], "b": "NaN"}) == '{"a": [1.5, null], "b": "NaN"}'

    assert records.graph(0, ([], 3)) == {"edges": [], "nodes": 3}
    # Where no record says what records are, the model does.
    sizes = [len(labels) for _, labels in GRAPHS]
    r = Regressor(epochs=1, **TINY, handle_invalid="prior").fit(GRAPHS, sizes)
    with pytest.warns(UserWarning, match="records cannot be used"):
        assert np.isnan(e.set_params(handle_invalid="nan").transform([None])).tolist() == [[True] * 16]
        assert sum(len(rows) for rows in e.stream(None for _ in range(1500))) == 1500
        assert e.set_params(handle_invalid="drop").transform([None]).shape == (0, 16)
        assert r.predict([None, None]).tolist() == [np.mean(sizes)] * 2
        assert np.isnan(r.set_params(handle_invalid="nan").predict([None])).all()
    assert r.explain([None]) == [None]


class Data(dict):
    """Stands for torch_geometric.data.Data."""

    def __init__(self, **more):
        matrix = np.array([[0, 1, 1, 2], [1, 0, 2, 1]])
        index = type("Tensor", (), {"t": lambda self: matrix.T, "shape": matrix.shape})()
        super().__init__(x=np.eye(3), edge_index=index, y=np.zeros(1), name="text", **more)
        self.num_nodes, self.x, self.edge_index = 3, self["x"], index

    def is_directed(self):
        return False


def test_nothing_of_a_graph_is_dropped_without_a_word():
    nx = pytest.importorskip("networkx", reason="networkx is not installed")

    def networkx(kind=nx.Graph, nodes=(), edges=(), **more):
        g = kind([("a", "b", more), ("b", "c")])
        g.add_nodes_from(nodes)
        g.add_edges_from(edges)
        return g

    pairs = [[0, 1], [1, 2]]
    assert records.graph(0, networkx()) == {"nodes": 3, "edges": pairs, "directed": False}
    both = {"nodes": 3, "edges": [[0, 1], [1, 0], [1, 2], [2, 1]], "directed": False, "attributes": np.eye(3).tolist()}
    assert records.graph(0, Data()) == both
    assert records.graph(0, networkx(nx.MultiDiGraph, edges=[("b", "a")]))["directed"]
    charged = networkx(nodes=[("a", {"charge": 1})])
    for record, message in (
        (networkx(edges=[("a", "b", {"kind": 1})]), "record 7: the edge attribute 'kind' is not used: .* ignore='kind'"),
        (networkx(weight=2.0), "record 7: 1 of 2 edges have 'weight'"),
        (charged, "record 7: the node attribute 'charge' is not used: call it 'label' or 'attributes'"),
        (networkx(nodes=[("a", {"label": "C"})]), "1 of 3 nodes have 'label'"),
        (networkx(nx.MultiGraph, edges=[("b", "a")]), "record 7: a multigraph joins two nodes by several edges"),
        (networkx(nx.MultiDiGraph, edges=[("a", "b")]), "several edges"),
        (Data(edge_attr=np.ones((4, 2))), r"record 7: edge_attr of shape \(4, 2\) and type float64; want one label"),
        (Data(edge_type=np.ones(4)), "the edge attribute 'edge_type' is not used"),
        (([[0, 1]], 2, [True]), "record 7: features of edges of shape .* type bool"),
        (Data(pos=np.ones((3, 2))), "the node attribute 'pos' is not used: make it a part of x"),
        (([[0, 1, 0.5]], 2), r"record 7: edges of shape \(1, 3\) and type float64"),
        (([[0.0, 1.0]], 2), "edges of .* type float64"),
        (([[0, 0, 1], [1, 2, 2]], 3), r"edges of shape \(2, 3\)"),
    ):
        with pytest.raises(ValueError, match=message):
            records.graph(7, record)
    assert records.graph(0, charged, ["charge"]) == records.graph(0, networkx())
    assert records.graph(0, Data(edge_attr=np.ones((4, 2)), pos=np.ones((3, 2))), ["edge_attr", "pos"]) == both
    assert records.graph(0, Data(edge_attr=np.array([[1], [1], [2], [2]]))) == both | {"edge_labels": [1, 1, 2, 2]}
    assert records.graph(0, Data(edge_weight=np.full(4, 0.5))) == both | {"edge_weights": [0.5] * 4}
    assert records.graph(0, Data(edge_weight=np.array([1, 1, 2, 2]))) == both | {"edge_weights": [1, 1, 2, 2]}
    assert records.graph(0, ([[0, 1]], 2, ["a"])) == {"edges": [[0, 1]], "nodes": 2, "edge_labels": ["a"]}
    labelled = networkx(edges=[("a", "b", {"label": "x"}), ("b", "c", {"label": "y"})])
    assert records.graph(0, labelled)["edge_labels"] == ["x", "y"] and "edge_labels" not in records.graph(0, labelled, ["label"])
    e = Embedder(method="infonce", epochs=1, **TINY).fit([labelled] * 4)
    with pytest.raises(SpecmatchError, match="edges have no labels, which the model wants"):
        e.transform([networkx()])
    # The parameter is that of the program, and texts are labels.
    graphs = [networkx(nodes=[(n, {"label": l, "charge": 1}) for n, l in zip("abc", labels)], edges=[("a", "b", {"kind": 1})], weight=1.0) for labels in ("CCO", "CON", "NNC") * 4]
    e = Embedder(method="infonce", epochs=1, ignore=["charge", "weight", "kind"], **TINY).fit(graphs)
    assert specmatch.read_card(e.model_)["features"]["labels"][0]["names"] == ["C", "N", "O"]
    assert (e.transform(graphs) == e.set_params(ignore="charge,weight,kind").transform(graphs)).all()
    with pytest.raises(ValueError, match="record 0: the node attribute 'charge'"):
        e.set_params(ignore=None).transform(graphs)
    for edges, message in (([[0, 0], [0, 1]], "2 self-loops dropped"), ([[0, 1], [0, 1]], "2 repeated edges dropped")):
        with pytest.warns(UserWarning, match=message):
            Embedder(method="infonce", epochs=1, **TINY).fit([(edges, 2)] * 2)


def test_scikit_learn(tmp_path):
    for e in (Embedder(), Regressor(epochs=1), Classifier(epochs=1)):
        # check_estimator gives nearly all of its checks matrices of numbers, which are no molecules. Those that give none:
        for name in ("estimator_cloneable", "estimator_repr", "estimator_tags_renamed", "no_attributes_set_in_init", "parameters_default_constructible",
                     "get_params_invariance", "set_params", "valid_tag_types", "mixin_order"):
            # Not do_not_raise_errors_in_init_or_set_params: an unknown name is refused at once, on purpose.
            getattr(estimator_checks, f"check_{name}", print)(type(e).__name__, e)  # releases differ in their names
    y = (CARBONS > 7).astype(int)
    pipeline = make_pipeline(Embedder(), StandardScaler(), LogisticRegression())
    folds = StratifiedKFold(3)
    scores = cross_val_score(pipeline, SMILES, y, cv=folds)
    for score, (train, test) in zip(scores, folds.split(SMILES, y)):  # the same by files
        plain = make_pipeline(StandardScaler(), LogisticRegression())
        plain.fit(by_file(tmp_path, [SMILES[i] for i in train]), y[train])
        assert plain.score(by_file(tmp_path, [SMILES[i] for i in test]), y[test]) == score
    search = GridSearchCV(Regressor(**TINY), {"epochs": [1, 2]}, cv=2, n_jobs=2).fit(SMILES, CARBONS)
    assert search.best_params_["epochs"] in (1, 2) and np.isfinite(search.cv_results_["mean_test_score"]).all()
    c = Classifier(epochs=20, **TINY).fit(SMILES, y)
    p = c.predict_proba(SMILES)
    assert np.allclose(p.sum(1), 1, atol=1e-6) and (c.predict(SMILES) == c.classes_[p.argmax(1)]).all() and c.score(SMILES, y) > 0.5
    two = np.c_[CARBONS, -CARBONS]
    two[::3, 1] = np.nan
    assert Regressor(epochs=1, **TINY).fit(SMILES, two).predict(SMILES[:4]).shape == (4, 2)
    with pytest.warns(DataConversionWarning):  # a column of classes is a list of them, as elsewhere in scikit-learn
        column = clone(c).fit(SMILES, y[:, np.newaxis])
    assert (column.predict_proba(SMILES) == p).all()
    with pytest.raises(ValueError, match=r"y should be a 1d array, got an array of shape \(120, 2\)"):
        clone(c).fit(SMILES, two)
    for e in (clone(c), Embedder(method="infonce")):
        with pytest.raises(Exception, match="not fitted"):
            (e.predict if hasattr(e, "predict") else e.transform)(SMILES)
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = Embedder(readout="last:mean").set_output(transform="pandas").fit_transform(pandas.Series(SMILES, index=range(5, 125)))
    assert frame.columns[0] == "l5_mean_0" and frame.index[0] == 5
    assert (frame.to_numpy() == Embedder(readout="last:mean").transform(pandas.DataFrame({"smiles": SMILES}))).all()


def test_trust():
    r = Regressor(epochs=2, n_estimators=2, **TINY, random_state=np.random.RandomState(1)).fit(SMILES, CARBONS)
    again = Regressor(epochs=2, n_estimators=2, **TINY, random_state=np.random.RandomState(1)).fit(SMILES, CARBONS)
    assert (r.predict(SMILES) == again.predict(SMILES)).all() and r.n_features_in_ == 1
    assert [len(h["valid_loss"]) for h in r.history_] == [2, 2] and r.history_[0]["epoch"] == [1, 2]
    low, high = r.predict_interval(SMILES, level=0.8).T
    assert (low < r.predict(SMILES)).all() and (r.predict(SMILES) < high).all()
    assert r.distance(SMILES).shape == (120,) and r.distance(["[U+6]"])[0] > r.distance(SMILES).mean()
    why = r.explain(["CCO", "CC"])
    assert [w.shape for w in why] == [(3, 1), (2, 1)]
    drawn = r.draw_explanations(["CCO", "CC"])
    assert drawn.page.count('class="molecule"') == 2 and drawn._repr_html_().count("<iframe") == 1
    two = Regressor(epochs=1, **TINY).fit(SMILES, np.c_[CARBONS, -CARBONS])
    assert two.predict_interval(SMILES[:3]).shape == (3, 2, 2) and two.explain(["CCO"])[0].shape == (3, 2)
    # The columns are in the order of the targets and of classes_, where their names are not: y10 < y2, class_10 < class_2.
    many = Regressor(epochs=1, **TINY).fit(SMILES, CARBONS[:, np.newaxis] * 10.0 ** np.arange(11))
    scale = np.abs(many.explain(["CCO"])[0]).max(axis=0)
    assert (scale[1:] > 3 * scale[:-1]).all()
    c = Classifier(epochs=2, **TINY).fit(SMILES, np.where(CARBONS > 3, 2, 10))
    few, more = (w.sum(axis=0) for w in c.explain(["CCO", "CCCCCCC"]))
    assert c.classes_.tolist() == [2, 10] and few[0] < more[0] and few[1] > more[1]
    c = Classifier(epochs=2, **TINY).fit(SMILES, np.where(CARBONS > 7, "a", "b"))
    sets = c.predict_set(SMILES, level=0.9)
    assert sets.shape == (120, 2) and sets.any()


def test_sample_weight():
    y, junk = CARBONS[:60], ["O" * n + "C" for n in range(1, 7)]
    plain = Regressor(epochs=2, **TINY).fit(SMILES[:60], y)
    with_junk = Regressor(epochs=2, **TINY).fit(SMILES[:60] + junk, [*y, *[1e4] * 6], sample_weight=[3] * 60 + [0] * 6)
    np.testing.assert_array_equal(with_junk.predict(SMILES), plain.predict(SMILES))
    np.testing.assert_allclose(with_junk.prior_, plain.prior_)
    weighted = Regressor(epochs=2, **TINY).fit(SMILES[:60], y, sample_weight=1 + y)
    assert (weighted.predict(SMILES) != plain.predict(SMILES)).any() and weighted.prior_ > plain.prior_
    chance = np.arange(60) % 2  # nothing to learn but the frequencies
    many = Classifier(epochs=2, **TINY).fit(SMILES[:60], chance, sample_weight=np.where(chance, 9.0, 1.0))
    assert many.predict_proba(SMILES)[:, 1].mean() > 0.55 and many.prior_.tolist() == [0.1, 0.9]
    for bad in ([1] * 59, [-1] + [1] * 59, [np.nan] * 60, [0] * 60):
        with pytest.raises(ValueError, match="sample_weight"):
            Regressor(**TINY).fit(SMILES[:60], y, sample_weight=bad)


def test_settings_after_load(tmp_path):
    path = str(tmp_path / "m.safetensors")
    Regressor(epochs=1, **TINY).fit(SMILES, CARBONS).save(path)
    loaded = Regressor.load(path, handle_invalid="nan", n_jobs=1)
    assert loaded.get_params()["handle_invalid"] == "nan"
    with pytest.warns(UserWarning, match="1 of 2"):
        assert np.isnan(loaded.predict(["C1CC", "CC"])).tolist() == [True, False]
    with pytest.raises(Exception, match="not fitted"):  # a file does not keep the mean of its targets
        loaded.set_params(handle_invalid="prior").predict(["C1CC", "CC"])
    for names, classes in ((["2", "10"], [2, 10]), (["01", "02"], ["01", "02"]), (["-0", "1"], ["-0", "1"])):
        c = Classifier(epochs=1, **TINY).fit(SMILES, np.where(CARBONS > 7, *names))
        c.save(path)
        again = Classifier.load(path)
        assert again.classes_.tolist() == classes
        columns = [again.classes_.astype(str).tolist().index(name) for name in c.classes_]
        assert (again.predict_proba(SMILES)[:, columns] == c.predict_proba(SMILES)).all()


def test_bounds():
    exact = Regressor(epochs=1, **TINY).fit(SMILES, CARBONS)
    r = Regressor(epochs=1, **TINY, bounds=True)
    assert (clone(r).fit(SMILES, CARBONS).predict(SMILES) == exact.predict(SMILES)).all()
    y = [f">{c}" if c > 6 else c for c in CARBONS]
    y[0], y[1], y[2] = None, " <=2", "≥ 3.5"
    r.fit(SMILES, y)
    assert r.prior_ == np.mean([2, 3.5, *CARBONS[3:]]) and (r.predict(SMILES) != exact.predict(SMILES)).any()
    assert r.fit(SMILES, [[v, 1.5] for v in y]).predict(["CC"]).shape == (1, 2)
    for wrong in ("~3", "three", ">", []):
        with pytest.raises(ValueError, match="is neither a number nor a bound such as '>10'"):
            r.fit(["C", "CC"], np.array([wrong, 1], object))
    with pytest.raises(ValueError, match="could not convert"):
        exact.fit(SMILES, y)


def test_tables_of_labels(tmp_path):
    table = tmp_path / "assay.csv"
    table.write_text("\n".join(["smiles,a,b", *(f"{s},{k % 2},{k % 3}" for k, s in enumerate(SMILES)), ""]), encoding="utf-8")
    e = Embedder(method="assays", targets=str(table), epochs=1, **TINY, random_state=1).fit(SMILES)
    write_csv(tmp_path / "m.csv", SMILES)
    command("train", "-in", tmp_path / "m.csv", "-method", "assays", "-targets", table, "-epochs", 1, "-hidden", 8, "-layers", 2, "-seed", 1,
            "-out", tmp_path / "run")
    assert (e.transform(SMILES) == Embedder(tmp_path / "run/model.safetensors").transform(SMILES)).all()


def test_order_of_models(tmp_path):
    r = Regressor(epochs=1, n_estimators=3, **TINY, random_state=9).fit(SMILES, CARBONS)
    one = Regressor(epochs=1, **TINY, random_state=9).fit(SMILES, CARBONS)
    assert one.models_ == r.models_[:1] and one.history_[0]["valid_loss"] == r.history_[0]["valid_loss"]
    assert [tool.read_card(m)["provenance"]["seed"] for m in r.models_] == [9, 10, 11]
    for seed, model in zip((9, 10, 11), r.models_):
        (tmp_path / f"model-{seed}.safetensors").write_bytes(model)
    assert Regressor.load(str(tmp_path)).models_ == r.models_


def test_rdkit():
    chem = pytest.importorskip("rdkit.Chem", reason="RDKit is not installed")
    molecules = [chem.MolFromSmiles(s) for s in SMILES]
    written = [chem.MolToSmiles(m) for m in molecules]
    assert (Embedder().transform(molecules) == Embedder().transform(written)).all()
    assert specmatch.valid([molecules[0], "C1CC", None]).tolist() == [True, False, False]
    # Explanations are in the order of the atoms, whatever that of the SMILES is.
    r = Regressor(epochs=1, **TINY).fit(SMILES, CARBONS)

    def explained(molecule, *order):
        return (r.explain([None, molecule])[1][list(order)] == r.explain([chem.MolToSmiles(molecule)])[0]).all()

    r.set_params(handle_invalid="nan")
    assert explained(chem.MolFromSmiles("OCCC"), 3, 2, 1, 0) and explained(chem.MolFromSmiles("[Na+].CC[O-]"), 1, 2, 3, 0)
    with_hydrogens = chem.AddHs(chem.MolFromSmiles("OC[2H]"))  # a deuterium stays an atom
    assert explained(with_hydrogens, 0, 1, 2) and (r.explain([with_hydrogens])[0][3:] == 0).all()
    assert explained(chem.AddHs(chem.MolFromSmiles("*CCO")), 0, 1, 2, 3)
    assert explained(chem.MolFromSmiles("[H]/N=C/C"), 0, 1, 2, 3)  # its hydrogen has a configuration
    r.set_params(largest_fragment=True)
    salt = chem.MolFromSmiles("[Na+].OCC")
    assert explained(salt, 3, 2, 1, 0) and r.explain([salt])[0][0] == 0
    twins = r.explain([chem.MolFromSmiles("CO.CC")])[0]  # of two parts with as many heavy atoms
    assert (twins[:2] == 0).all() and (twins[2:] != 0).all()


def test_help():
    text = pydoc.render_doc(Regressor, renderer=pydoc.plaintext)
    for part in ("epochs: int | None = None", "epochs : int, default 100", "Number of training epochs.", "y : array-like of float",
                 'handle_invalid : {"error", "nan", "drop", "prior"}', "level: float = 0.9", "balanced : bool, default False"):
        assert part in text, part
    assert "y : array-like of float" in pydoc.render_doc(Regressor.fit, renderer=pydoc.plaintext)


def test_a_process_that_stays(tmp_path):
    e = Embedder(readout="last:mean")
    whole = e.transform(SMILES * 3)
    began = time.monotonic()
    one_by_one = [e.transform([s])[0] for s in SMILES]
    assert (one_by_one == whole[:120]).all() and len(worker.workers) <= worker.LIMIT
    assert time.monotonic() - began < 6  # 0.3 s on a machine that does nothing else; 30 s where each starts a process
    # Threads take turns.
    results, threads = {}, []
    for k in range(8):
        threads.append(threading.Thread(target=lambda k=k: results.update({k: e.transform(SMILES[k:k + 3])})))
        threads[-1].start()
    for thread in threads:
        thread.join()
    assert all((results[k] == whole[k:k + 3]).all() for k in range(8))
    # One that was killed is started anew; so is one behind a Ctrl-C.
    process = next(reversed(worker.workers.values())).process
    process.kill()
    process.wait()
    assert (e.transform(["CCO"]) == e.transform(["CCO", "C"])[:1]).all()
    # A thread that waits for its turn leaves the others alone, and outlives the process for which it waits.
    key, asked = next(reversed(worker.workers.items()))
    got = []
    waiting = threading.Thread(target=lambda: got.append(e.transform(["CCO"])), daemon=True)
    with asked.lock:  # as a thread that has been asking
        waiting.start()
        time.sleep(0.3)
        assert worker.guard.acquire(timeout=5), "a thread that waits for a process keeps all others waiting"
        del worker.workers[key]
        worker.guard.release()
        asked.close()
    waiting.join(20)
    assert (got[0] == e.transform(["CCO"])).all() and worker.workers[key] is not asked
    # Ends with its parent, however that ends.
    code = "import sys, time; from specmatch_cl import Embedder, worker; Embedder().transform(['C']); " \
           "print(next(iter(worker.workers.values())).process.pid, flush=True); time.sleep(60)"
    for number in (signal.SIGKILL, signal.SIGTERM):
        parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
        child = int(parent.stdout.readline())
        parent.send_signal(number)
        parent.wait()
        parent.stdout.close()
        for _ in range(100):
            try:
                os.kill(child, 0)
                if Path(f"/proc/{child}/stat").exists() and Path(f"/proc/{child}/stat").read_text().split()[2] == "Z":
                    break  # nobody waits for it
            except ProcessLookupError:
                break
            time.sleep(0.05)
        else:
            pytest.fail("the process outlives its parent")


def test_pickles_across_processes():
    c = Classifier(epochs=1, **TINY).fit(SMILES, CARBONS > 7)
    code = "import pickle, sys; m, x = pickle.load(sys.stdin.buffer); pickle.dump(m.predict_proba(x), sys.stdout.buffer)"
    out = subprocess.run([sys.executable, "-c", code], input=pickle.dumps((c, SMILES)), capture_output=True, check=True).stdout
    assert (pickle.loads(out) == c.predict_proba(SMILES)).all()


def test_many_rows_at_flat_memory():
    def peak(pid):
        status = Path(f"/proc/{pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) / 1024  # MB

    if not Path("/proc/self/status").exists():
        pytest.skip("there is no /proc to measure memory by")
    seen, mine = [], []
    started = subprocess.Popen

    class Watched(started):
        def __init__(self, *a, **k):
            super().__init__(*a, **k)
            seen.append(self.pid)

    n, rows, child = 100_000, 0, []
    e = Embedder(readout="last:mean")
    e.transform(["C"])
    subprocess.Popen = Watched
    try:
        for batch in e.stream("C" * (1 + i % 30) for i in range(n)):
            rows += len(batch)
            if rows % 10240 == 0 or rows == n:
                mine.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
                try:
                    child.append(peak(seen[-1]))
                except (OSError, IndexError):
                    pass  # it has ended
    finally:
        subprocess.Popen = started
    assert rows == n and mine[-1] - mine[0] < 20 and child[-1] < 400 and child[-1] - child[0] < 100, (mine, child)


def endless():
    while True:
        yield "CCO"


def broken(error):
    yield from ["CCO"] * 3000
    raise error("broken")


def test_a_killed_program_and_ctrl_c():
    pids = []
    started = subprocess.Popen.__init__

    def watched(self, *a, **k):
        started(self, *a, **k)
        pids.append(self.pid)

    subprocess.Popen.__init__ = watched
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores Ctrl-C
    try:
        for number, message in ((signal.SIGKILL, "killed by SIGKILL"), (signal.SIGQUIT, "SIGQUIT: quit")):  # which prints traces
            with pytest.raises(SpecmatchError, match=message):
                for _ in Embedder(readout="last:mean").stream(endless()):
                    os.kill(pids[-1], number)
        with pytest.raises(KeyboardInterrupt):
            for _ in Embedder(readout="last:mean").stream(endless()):
                threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
                began = time.monotonic()
                time.sleep(10)
        assert time.monotonic() - began < 5  # one second and what a busy machine adds
        stream = Embedder(readout="last:mean").stream(endless())
        next(stream)
        stream.close()
        for error in (ZeroDivisionError, OSError):  # of the records themselves
            with pytest.raises(error, match="broken"):
                list(Embedder(readout="last:mean").stream(broken(error)))
    finally:
        signal.signal(signal.SIGINT, before)
        subprocess.Popen.__init__ = started
    for pid in pids:
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)


def test_bars(capfd):
    pytest.importorskip("tqdm", reason="tqdm is not installed")
    Embedder(verbose=True, readout="last:mean").transform(SMILES)
    assert "embed: 100%" in capfd.readouterr().err
    Embedder().transform(SMILES)
    assert capfd.readouterr().err == ""


def molecules():
    """Some molecules as PyG has them, with the categories "rich" of the encoder of the program."""
    import torch

    def atom(element, degree, hydrogens, hybridisation, aromatic=0, ring=0):
        return [element - 1, degree, 3, hydrogens, aromatic, ring, hybridisation, 0, 0]

    ring, sp, sp2, sp3 = [(i, (i + 1) % 6) for i in range(6)], 2, 3, 4
    benzene = [atom(6, 2, 1, sp2, 1, 1) for _ in range(5)]
    all = {  # atoms; bonds of two atoms, type, conjugated, in a ring
        "CCO": ([atom(6, 1, 3, sp3), atom(6, 2, 2, sp3), atom(8, 1, 1, sp3)], [(0, 1, 0, 0, 0), (1, 2, 0, 0, 0)]),
        "C1CCCCC1": ([atom(6, 2, 2, sp3, 0, 1)] * 6, [(*e, 0, 0, 1) for e in ring]),
        "C": ([atom(6, 0, 4, sp3)], []),
        "C=CC#N": ([atom(6, 1, 2, sp2), atom(6, 2, 1, sp2), atom(6, 2, 0, sp), atom(7, 1, 0, sp)], [(0, 1, 1, 1, 0), (1, 2, 0, 1, 0), (2, 3, 2, 1, 0)]),
        "c1ccccc1O": (benzene + [atom(6, 3, 0, sp2, 1, 1), atom(8, 1, 1, sp2)], [(*e, 3, 1, 1) for e in ring] + [(5, 6, 0, 1, 0)]),
    }
    x, edges, bonds, batch = [], [], [], []
    for k, (atoms, of) in enumerate(all.values()):
        edges += [(len(x) + a, len(x) + b) for i, j, *_ in of for a, b in ((i, j), (j, i))]
        bonds += [[*t, 0] for _, _, *t in of for _ in range(2)]
        x += atoms
        batch += [k] * len(atoms)
    return list(all), [torch.tensor(v) for v in (x, list(zip(*edges)), batch, bonds)]


def near(got, want):
    assert np.abs(got.detach().numpy() - want).max() < 1e-5 * max(1, np.abs(want).max())


def test_torch(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed: its modules are not compared")
    from specmatch_cl.modules import Encoder

    smiles, inputs = molecules()
    for readout in ("auto", "own", "last:sum", "1,3:mean,max"):
        near(specmatch.to_torch(readout=readout)(*inputs), Embedder(readout=readout).transform(smiles))
    # A module has nothing of the predictions, such as the training molecules.
    fitted, bare = str(tmp_path / "r.safetensors"), str(tmp_path / "bare.safetensors")
    Regressor(epochs=1, **TINY, forest=5).fit(SMILES, CARBONS).save(fitted)
    specmatch.from_torch(specmatch.to_torch(fitted), bare)
    assert {"head", "domain", "calibration"} <= specmatch.read_card(fitted).keys()
    assert specmatch.read_card(bare).keys() <= {"encoder", "standard", "provenance"}
    near(torch.tensor(Embedder(bare).transform(SMILES)), Embedder(fitted, features="encoder").transform(SMILES))
    # Of graphs: those of the program, with and without self-loops, and what PyTorch has drawn anew.
    batch = torch.tensor([k for k, (_, labels) in enumerate(GRAPHS) for _ in labels])
    first = np.cumsum([0] + [len(labels) for _, labels in GRAPHS])
    edges = torch.tensor([(a, b) for n, (e, _) in zip(first, GRAPHS) for i, j in e for a, b in ((n + i, n + j), (n + j, n + i))]).T
    x = torch.eye(3)[torch.tensor([v for _, labels in GRAPHS for v in labels])]
    file, again = str(tmp_path / "e.safetensors"), str(tmp_path / "again.safetensors")
    for method, code in (("graphcl", True), ("infonce", None)):
        Embedder(method=method, graphcl_code=code, epochs=1, **TINY).fit(GRAPHS).save(file)
        module = specmatch.to_torch(file)
        near(module(x, edges, batch), Embedder(file).transform(GRAPHS))
    card, draw = specmatch.read_card(file), torch.Generator().manual_seed(1)

    def norm(name):
        width = 3 if name == "bn_feat" else 8
        return {f"{name}.{key}": torch.rand(width, generator=draw) + 0.5 for key in ("weight", "bias", "running_mean", "running_var")}

    weights = norm("bn_feat") | norm("bn_hidden") | norm("bns_fc.0") | {"conv_feat.weight": torch.randn(8, 3, generator=draw)}
    for name in ("lins.0", "convs.0.lin", "convs.1.lin"):
        weights[f"{name}.weight"] = torch.randn(8, 8, generator=draw)
        weights[f"{name.removesuffix('.lin')}.bias"] = torch.randn(8, generator=draw)
    weights |= norm("bns_conv.0") | norm("bns_conv.1")
    for residual in (False, True):
        resgcn = Encoder(card | {"encoder": {"kind": "resgcn", "in": 3, "hidden": 8, "layers": 2, "residual": residual}}, weights).eval()
        specmatch.from_torch(resgcn, again)
        for readout in ("auto", "all:sum,max"):
            near(specmatch.to_torch(again, readout)(x, edges, batch), Embedder(again, readout=readout).transform(GRAPHS))
    with torch.no_grad():
        for p in module.parameters():
            p += 0.1
    specmatch.from_torch(module, again)
    near(module(x, edges, batch), Embedder(again).transform(GRAPHS))
