"""Transformer and estimators of scikit-learn that call the program."""
import csv
import html
import json
import re
import tempfile
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from . import parameters, records, tool, worker

Rows = NDArray[np.float32]

SPLITS = ("auto", "random", "stratified", "scaffold", "stratified-scaffold", "cluster")
AT_ONCE = 256  # so many records are asked of a process that stays

def bar(label: str, total: int | None, shown: bool) -> Callable[[int, int | None], None]:
    """A bar of what is done of how much, where tqdm is installed."""
    if not shown or not find_spec("tqdm"):
        return lambda done, total: None
    from tqdm.auto import tqdm
    of = tqdm(desc=label, total=total)

    def show(done: int, total: int | None) -> None:
        of.total = total or of.total
        of.update(done - of.n)
    return show

def seed_of(random_state: tool.Seed) -> int | None:
    """A seed of the program; None is its default, 0."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return random_state

def checked(sample_weight: Any, count: int) -> NDArray[np.float64] | None:
    """The weights of the records, None for equal ones."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (count,):
        raise ValueError(f"sample_weight has the shape {weights.shape}; want one weight for each of {count} records")
    if not (np.isfinite(weights).all() and (weights >= 0).all() and weights.any()):
        raise ValueError("sample_weight has a weight that is no number of at least 0, or only zeros")
    return weights

def bounded(value: Any) -> tuple[str, float]:
    """A target that may be a bound, as a text for the program, and its number; NaN is a gap."""
    if records.missing(value) or value == "":
        return "", np.nan
    bound = re.match(r"\s*[<>≤≥]=?", value) if isinstance(value, str) else None
    sign = bound[0].strip() if bound else ""
    try:
        number = float(value[bound.end():] if bound else value)
    except (TypeError, ValueError):
        raise ValueError(f"the target {value!r} is neither a number nor a bound such as '>10'") from None
    return "" if np.isnan(number) else sign + repr(number), number

def numbers(path: Path) -> list[dict[str, list[float]]]:
    """The columns of numbers of a table metrics.csv, for each of its units."""
    units: dict[str, list[dict[str, str]]] = {}
    with path.open(encoding="utf-8", newline="") as f:
        for row in csv.DictReader(f):
            units.setdefault(row["unit"], []).append(row)
    histories: list[dict[str, list[float]]] = []
    for rows in units.values():
        history: dict[str, list[float]] = {}
        for name in rows[0]:
            try:
                history[name] = [float(row[name] or "nan") for row in rows]
            except ValueError:  # a text
                continue
        histories.append(history)
    return histories

class Base(BaseEstimator):
    """What transformer and estimators share: runs of the program with their parameters as flags."""
    model: tool.Source
    handle_invalid: str
    n_jobs: int | None
    random_state: tool.Seed
    verbose: bool
    ignore: str | Sequence[str] | None
    n_features_in_: int
    history_: list[dict[str, list[float]]]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array = False
        return tags

    def _ignored(self) -> list[str]:
        """What of a graph the parameter ignore skips."""
        given = self.ignore or ()
        return given.split(",") if isinstance(given, str) else list(given)

    def _arguments(self, command: str, form: str, **more: Any) -> list[str]:
        """A command for records on standard input, with the parameters that are its flags."""
        given = {name: getattr(self, name, None) for name in parameters.FLAGS[command]}
        # Tables of labels know molecules by their SMILES, and not by the numbers of these records.
        known = None if form == "csv" and given.get("targets") is not None else "row"
        return [command, *tool.flags(in_="-", format=form, id=known), *tool.flags(**given | more)]

    def _train(self, command: str, data: Any, targets: list[list[str]], **more: Any) -> tuple[bytes, ...]:
        """The models that a command leaves that trains on the data."""
        show = bar(command, None, self.verbose)

        def heard(line: str) -> None:
            if m := re.search(r"epoch (\d+)(?: of (\d+))?", line):
                show(int(m[1]), int(m[2]) if m[2] else None)
            bad = re.search(r"\d+ of \d+ records cannot be used, such as .*", line)
            if bad and self.handle_invalid == "error":
                raise tool.SpecmatchError(bad[0])

        with tempfile.TemporaryDirectory() as folder:
            form, text = records.encode(data, targets, self._ignored())
            if targets:
                more["test"] = "none"  # nothing is held out to test on
            start = [tool.load(self.model)] if targets and self.model is not None else []
            arguments = self._arguments(command, form, out=f"{folder}/run", **more)
            with tool.running([*arguments, *tool.models(folder, start)], text, self.n_jobs, heard, records.FIRST[form]):
                pass
            self.n_features_in_ = 1  # a column of records
            self.history_ = numbers(Path(folder, "run", "metrics.csv"))
            return tuple(tool.models_of(Path(folder, "run")))

    def _encoded(self, X: Iterable[Any], files: Sequence[bytes]) -> tuple[str, Iterator[bytes]]:
        """The format of records for models, and their text in pieces."""
        return records.encode(X, ignore=self._ignored(), default=lambda: tool.form_of(files[0]))

    def _stream(self, command: str, X: Iterable[Any], files: Sequence[bytes],
                total: int | None = None, **more: Any) -> Iterator[Rows]:
        if self.handle_invalid not in self._choices:
            raise ValueError(f"handle_invalid is {self.handle_invalid!r}; want one of {list(self._choices)}")
        rest = iter(X)
        head = list(islice(rest, 1))
        if not head:  # as an empty part of a table
            return
        show, done, bad = bar(command, total, self.verbose), 0, 0
        form, text = self._encoded(chain(head, rest), files)
        arguments = self._arguments(command, form, strict=self.handle_invalid == "error", out="-", **more)
        if total is not None and total <= AT_ONCE:
            batches = worker.asked(arguments, files, b"".join(text), self.n_jobs, records.FIRST[form])
        else:
            batches = tool.matrices(arguments, files, text, self.n_jobs, records.FIRST[form])
        for rows in batches:
            invalid = np.isnan(rows).all(axis=1)
            done, bad = done + len(rows), bad + int(invalid.sum())
            show(done, None)
            yield rows[~invalid] if self.handle_invalid == "drop" else rows
        if bad:
            warnings.warn(f"{bad} of {done} records cannot be used", stacklevel=5)

    _choices: ClassVar[tuple[str, ...]] = ("error", "nan", "drop")

    def _rows(self, command: str, X: Any, files: Sequence[bytes], **more: Any) -> Rows:
        data = list(records.listed(X))
        if not data:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        out, at = np.empty((0, 0), np.float32), 0
        for rows in self._stream(command, data, files, len(data), **more):
            if not at:
                out = np.empty((len(data), rows.shape[1]), np.float32)
            out[at:at + len(rows)] = rows
            at += len(rows)
        return out[:at]

class Embedder(TransformerMixin, parameters.Embedder, Base):
    """Vectors of molecules and graphs.

    Records are SMILES, RDKit's molecules, ``networkx`` graphs, PyG's ``Data``, or tuples (edges, features) and
    (edges, features, labels or weights of edges), with features whole numbers or texts [nodes], numbers
    [nodes×width] or the number of nodes.

    The parameters are those of ``__init__``: a few of this package, and the flags of ``specmatch embed`` and
    ``specmatch train`` with ``_`` for ``-``.

    Attributes
    ----------
    n_features_in_ : int
        1, the column of records.
    history_ : list of dict
        With a method, the metrics of each epoch of training, by name.
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.method is not None
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Trains an encoder with a method; without one it reads the model file.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.
        y : None
            Not used.

        Returns
        -------
        Embedder
            Itself.
        """
        self.n_features_in_ = 1
        if self.method is None:
            self.model_ = tool.load(self.model)
        else:
            seed = seed_of(self.random_state)
            self.model_, = self._train("train", records.listed(X), [], method=self.method, seed=seed)
        return self

    def _model(self) -> bytes:
        if self.method is not None:
            check_is_fitted(self, "model_")
        return self.model_ if hasattr(self, "model_") else tool.load(self.model)

    def transform(self, X: Any) -> Rows:
        """The vectors of records.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.

        Returns
        -------
        numpy.ndarray of float32
            Vectors [records×width].
        """
        return self._rows("embed", X, [self._model()])

    def stream(self, X: Iterable[Any]) -> Iterator[Rows]:
        """The vectors of any iterable, batch by batch, so that neither need fit into memory.

        Parameters
        ----------
        X : iterable
            Records.

        Yields
        ------
        numpy.ndarray of float32
            Vectors [records×width] of the next records.
        """
        return self._stream("embed", records.listed(X), [self._model()])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns, as the program writes them at the head of a table."""
        head = b""
        with tempfile.TemporaryDirectory() as folder:
            arguments = [*self._arguments("embed", "jsonl", out="-"), *tool.models(folder, [self._model()])]
            try:
                with tool.running(arguments) as stdout:
                    head = stdout.readline()
            except tool.SpecmatchError:  # a table without records has a head all the same
                if not head:
                    raise
        return np.array(head.decode().rstrip().split(",")[1:], dtype=object)

    def save(self, path: str) -> None:
        """Writes the encoder as a model file."""
        Path(path).write_bytes(self._model())

class Drawings:
    """A page of drawn explanations. A notebook shows it; `page` is its HTML."""

    def __init__(self, page: str) -> None:
        self.page = page

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{html.escape(self.page)}" style="width:100%;height:32em;border:0"></iframe>'


class Predictor(parameters.Predictor, Base):
    """What the estimators share."""
    kind: ClassVar[str]
    classes_: NDArray[Any]
    prior_: NDArray[np.float64]
    _choices = ("error", "nan", "drop", "prior")

    def _fit(self, X: Any, targets: list[list[str]], weights: NDArray[np.float64] | None) -> Self:
        if self.split not in (None, *SPLITS):
            raise ValueError(f"split is {self.split!r}; want one of {list(SPLITS)}")
        data = list(records.listed(X))
        check_consistent_length(data, targets[0])
        names = [f"y{k}" for k in range(len(targets))]
        columns, weight = targets, None
        if weights is not None:
            weight = f"y{len(targets)}"
            columns = [*targets, [repr(float(w)) for w in weights]]
        self.models_ = self._train("finetune", data, columns, kind=self.kind, target=",".join(names), weight=weight,
                                   seeds=self.n_estimators, first_seed=seed_of(self.random_state))
        return self

    def _predicted(self, X: Any, **more: Any) -> NDArray[np.float64]:
        """All columns that predict gives."""
        check_is_fitted(self, "models_")
        return self._rows("predict", X, self.models_, **more).astype(np.float64)

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        rows = self._predicted(X)
        return rows[:, :rows.shape[1] // min(len(self.models_), 2)]  # of several, stds are behind

    def _filled(self, y: NDArray[np.float64]) -> NDArray[np.float64]:
        """The predictions, with those of the training records where handle_invalid is prior."""
        if self.handle_invalid == "prior":
            check_is_fitted(self, "prior_")
            y[np.isnan(y).any(axis=1)] = self.prior_
        return y

    def distance(self, X: Any) -> NDArray[np.float64]:
        """How far records are from those of training: 1 is usual, larger values are less alike.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.

        Returns
        -------
        numpy.ndarray of float64
            Distances [records].
        """
        return self._predicted(X, distance=True)[:, -1]

    def explain(self, X: Any) -> list[NDArray[np.float64] | None]:
        """What each node or atom adds to a prediction, in the unit of a number, or in log-odds or logarithms.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.

        Returns
        -------
        list of numpy.ndarray of float64
            For each record the contributions [nodes×outputs], of atoms in the order of the SMILES or of RDKit's
            molecule, and of outputs in the order of the targets or of classes_; None for one that cannot be read.
            Hydrogens of RDKit's molecule are counted at their neighbours, and have rows of 0. So have the atoms that
            largest_fragment drops.
        """
        data = list(records.listed(X))
        explained: list[NDArray[np.float64] | None] = [None] * len(data)
        try:
            text = self._explained(data, "why.jsonl")
        except tool.SpecmatchError as e:
            if not tool.none_usable(str(e)):
                raise
            return explained
        names = self._names()
        for line in text.splitlines():
            keys = json.loads(line)
            nodes = keys["nodes"]  # whose names are sorted as texts: y10 is before y2
            i, rows = int(keys["id"]), np.array([nodes[name] for name in names], np.float64).T
            explained[i] = records.by_atom(i, data[i], rows) if hasattr(data[i], "GetNumAtoms") else rows
        return explained

    @abstractmethod
    def _names(self) -> list[str]:
        """The names of the outputs, as the program has them."""

    def draw_explanations(self, X: Any) -> Drawings:
        """Drawings of records, in which a disc shows what each atom or node contributes, as `explain` gives it.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.

        Returns
        -------
        Drawings
            A page, which a notebook shows.
        """
        return Drawings(self._explained(list(records.listed(X)), "why.html"))

    def _explained(self, data: list[Any], name: str) -> str:
        """The text of a file of explanations, whose kind its name says."""
        check_is_fitted(self, "models_")
        if not data:
            return ""
        form, text = self._encoded(data, self.models_)
        with tempfile.TemporaryDirectory() as folder:
            source, out = Path(folder, f"in.{form}"), Path(folder, name)
            source.write_bytes(b"".join(text))
            arguments = self._arguments("predict", form, out=f"{folder}/out.npy", explain=out,
                                        strict=self.handle_invalid == "error") + [f"-in={source}"]
            try:
                with tool.running([*arguments, *tool.models(folder, self.models_)], (), self.n_jobs):
                    pass
            except tool.SpecmatchError as e:  # names the file, where a caller has records
                raise tool.SpecmatchError(tool.message(str(e).replace(str(source), "-"), records.FIRST[form])) from None
            return out.read_text("utf-8")

    def save(self, path: str) -> list[str]:
        """Writes the model as a file; several get -0, -1 and so on before the ending, or share one file if that is .zip.

        Returns
        -------
        list of str
            The names of the files.
        """
        check_is_fitted(self, "models_")
        if path.endswith(".zip"):
            with tempfile.TemporaryDirectory() as folder:
                for i, model in enumerate(self.models_):
                    Path(folder, f"model-{i:03}.safetensors").write_bytes(model)
                with tool.running(["convert", f"-in={folder}", f"-out={path}"]):
                    pass
            return [path]
        whole, several = Path(path), len(self.models_) > 1
        names = [str(whole.with_stem(f"{whole.stem}-{i}")) if several else path for i in range(len(self.models_))]
        for name, model in zip(names, self.models_):
            Path(name).write_bytes(model)
        return names

    @classmethod
    def load(cls, *paths: str, **settings: Any) -> Self:
        """The model of a file, or the mean of several.

        Parameters
        ----------
        *paths : str
            Model files of ``save`` or ``specmatch finetune``, ensembles of several, or the directory of a run.
        **settings
            Parameters of ``__init__``, such as ``handle_invalid="nan"``.
        """
        models = tuple(model for path in paths for model in tool.members(path))
        given: dict[str, Any] = {"n_estimators": len(models)} | settings
        self = cls(**given)
        self.models_ = models
        self.n_features_in_ = 1
        head = self._head()
        if head.get("kind") != cls.kind:
            raise ValueError(f"{paths[0]} predicts {head.get('kind', 'nothing')}; want {cls.kind}")
        if texts := head.get("class_values"):
            # A number that is written otherwise, such as 01, would not be found again by its text.
            whole = all(re.fullmatch(r"0|-?[1-9][0-9]*", text) for text in texts)
            self.classes_ = np.unique([int(text) for text in texts] if whole else texts)
        return self

    def _head(self) -> Mapping[str, Any]:
        return tool.read_card(self.models_[0]).get("head", {})

class Regressor(RegressorMixin, Predictor):
    """Fine-tunes a graph network for numbers, one or several for each record. A ninth of the records chooses
    the epoch.

    Records are as in Embedder. The parameters are those of ``__init__``: a few of this package, and the flags of
    ``specmatch finetune`` with ``_`` for ``-``.

    Attributes
    ----------
    models_ : tuple of bytes
        The model files.
    prior_ : numpy.ndarray of float64
        The mean of each target, which ``handle_invalid="prior"`` predicts.
    history_ : list of dict
        For each model the metrics of each epoch, by name.
    n_features_in_ : int
        1, the column of records.
    """
    kind = "regression"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fits n_estimators models.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.
        y : array-like of float
            Targets [records] or [records×targets]; NaN is not known. With bounds=True, texts such as ">10", too.
        sample_weight : array-like of float, optional
            Weights [records] in the loss and in the linear model, at least 0. A record of weight 0 is not used.

        Returns
        -------
        Regressor
            Itself.
        """
        given = np.asarray(y, dtype=object if self.bounds else np.float64)
        cells = [[bounded(v) for v in row] for row in given.reshape(len(given), -1)]
        table = np.array([[number for _, number in row] for row in cells])
        weights = checked(sample_weight, len(table))
        known = ~np.isnan(table)
        counted = known if weights is None else known * weights[:, np.newaxis]
        self.prior_ = (np.where(known, table, 0.0) * counted).sum(axis=0) / counted.sum(axis=0)
        return self._fit(X, [[text for text, _ in column] for column in zip(*cells)], weights)

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predicts the targets.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.

        Returns
        -------
        numpy.ndarray of float64
            Predictions [records] or [records×targets].
        """
        y = self._filled(self._outputs(X))
        return y[:, 0] if y.shape[1] == 1 else y

    def _names(self) -> list[str]:
        head = self._head()
        return head.get("tasks") or [f"task_{k}" for k in range(head["outputs"])]

    def predict_interval(self, X: Any, level: float = 0.9) -> NDArray[np.float64]:
        """Intervals in which the targets are with a probability, by split conformal prediction.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.
        level : float, default 0.9
            The probability.

        Returns
        -------
        numpy.ndarray of float64
            Lower and upper ends [records×2] or [records×targets×2].
        """
        rows, targets = self._predicted(X, level=level), self._head()["outputs"]
        ends = rows[:, -2 * targets:].reshape(len(rows), targets, 2)
        return ends[:, 0] if targets == 1 else ends

class Classifier(ClassifierMixin, Predictor):
    """Fine-tunes a graph network for classes; otherwise as Regressor.

    Attributes
    ----------
    classes_ : numpy.ndarray
        The classes, ascending.
    prior_ : numpy.ndarray of float64
        The frequency of each class, which ``handle_invalid="prior"`` predicts.
    models_, history_, n_features_in_
        As in Regressor.
    """
    kind = "classes"

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fits n_estimators models.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.
        y : array-like
            Classes [records], of any kind that can be sorted.
        sample_weight : array-like of float, optional
            Weights [records] in the loss and in the linear model, at least 0. A record of weight 0 is not used.

        Returns
        -------
        Classifier
            Itself.
        """
        self.classes_, index = np.unique(column_or_1d(y, warn=True), return_inverse=True)
        weights = checked(sample_weight, len(index))
        counts = np.bincount(index, weights, len(self.classes_))
        self.prior_ = counts / max(counts.sum(), np.finfo(float).tiny)
        if not counts.all():
            raise ValueError(f"all records of these classes have the weight 0: {self.classes_[counts == 0].tolist()}")
        texts = self._texts()
        if len(set(texts)) < len(texts):
            raise ValueError(f"some of these classes differ in blanks only: {self.classes_.tolist()}")
        data = list(records.listed(X))
        self._fit(data, [[texts[i] for i in index]], weights)
        for k, text in enumerate(texts):
            if text in self._head()["class_values"]:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                rows = self._predicted([r for r, i in zip(data, index) if i == k])
            gap = "is read as a gap, or merge drops its records" if self.merge else "is read as a gap"
            why = gap if np.isfinite(rows).any() else "has no record that can be read"
            raise ValueError(f"the class {text!r} {why}")
        return self

    def _texts(self) -> list[str]:
        """The names of the classes, as the program reads them."""
        return [str(c).strip() for c in self.classes_]

    def _names(self) -> list[str]:
        return [f"class_{text}" for text in self._texts()]

    def _of_classes(self, columns: NDArray[np.float64]) -> NDArray[np.float64]:
        """Columns in the order of classes_."""
        values = self._head()["class_values"]
        return columns[:, [values.index(text) for text in self._texts()]]

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Predicts probabilities.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.

        Returns
        -------
        numpy.ndarray of float64
            Probabilities [records×classes], in the order of classes_.
        """
        return self._filled(self._of_classes(self._outputs(X)))

    def predict(self, X: Any) -> NDArray[Any]:
        """Predicts the most probable classes.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.

        Returns
        -------
        numpy.ndarray
            Classes [records]; None for a record that cannot be read.
        """
        p = self.predict_proba(X)
        y, bad = self.classes_[np.nan_to_num(p).argmax(axis=1)], np.isnan(p).any(axis=1)
        if bad.any():
            y = y.astype(object)
            y[bad] = None
        return y

    def predict_set(self, X: Any, level: float = 0.9) -> NDArray[np.bool_]:
        """Sets of classes, one of which is right with a probability, by split conformal prediction.

        Parameters
        ----------
        X : list, array, Series or table of one column
            Records.
        level : float, default 0.9
            The probability.

        Returns
        -------
        numpy.ndarray of bool
            Whether a class is in the set [records×classes], in the order of classes_.
        """
        columns = self._predicted(X, level=level)[:, -len(self.classes_):]
        return np.asarray(self._of_classes(columns) == 1, dtype=np.bool_)

def valid(smiles: Any) -> NDArray[np.bool_]:
    """Says which molecules can be read.

    Parameters
    ----------
    smiles : list, array, Series or table of one column
        SMILES or RDKit's molecules.

    Returns
    -------
    numpy.ndarray of bool
        True for each molecule that can be read.
    """
    data = list(records.listed(smiles))
    if not data:
        return np.empty(0, np.bool_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        rows = Embedder(handle_invalid="nan", features="morgan:2:16").transform(data)
    return np.asarray(~np.isnan(rows).any(axis=1), dtype=np.bool_)
