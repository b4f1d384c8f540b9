"""Transformer and estimators of scikit-learn that call the program."""
import csv
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_is_fitted  # pyright: ignore[reportUnknownVariableType]

from . import models, records, tool

Rows = NDArray[np.float32]
Models = tuple[bytes | None, ...]
Options = Mapping[str, Any] | None

def flags(**options: Any) -> list[str]:
    return [f"-{name.rstrip('_').replace('_', '-')}={str(v).lower() if isinstance(v, bool) else v}" for name, v in options.items() if v is not None]

def named(folder: str, files: Models) -> str:
    """The models as files, for -model."""
    names = [models.PRETRAINED if m is None else f"{folder}/{i}.safetensors" for i, m in enumerate(files)]
    for name, m in zip(names, files):
        if m is not None:
            Path(name).write_bytes(m)
    return ",".join(names)

@lru_cache(maxsize=16)
def columns(command: str, files: Models, more: tuple[str, ...]) -> list[str]:
    """The names of a row's numbers: the head of a table for no records."""
    molecules = files[0] is None or models.card(files[0])["encoder"]["kind"] == "chemgin"
    head = b""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [command, *flags(in_="-", out="-", format="csv" if molecules else "jsonl", model=named(folder, files)), *more]
        try:
            with tool.Process(arguments, [b"smiles\n"] if molecules else []) as p:
                head = p.stdout.readline()
        except tool.SpecmatchError:
            if not head:
                raise
    return next(csv.reader([head.decode()]))[1:]

class Base(BaseEstimator):
    """What transformer and estimators share: records go through models."""
    handle_invalid: str
    n_jobs: int | None
    verbose: bool
    options: Options

    def __sklearn_tags__(self) -> Any:
        tags: Any = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array = False
        return tags

    def _bar(self, label: str, total: int | None = None) -> Callable[[int, int | None], None]:
        """Shows what is done of how much, if verbose is set and tqdm installed."""
        if not self.verbose or not find_spec("tqdm"):
            return lambda done, total: None
        from tqdm.auto import tqdm
        bar: Any = tqdm(desc=label, total=total)

        def show(done: int, total: int | None) -> None:
            bar.total = total or bar.total
            bar.update(done - bar.n)
        return show

    def _train(self, command: str, data: Any, targets: list[list[str]], name: str, **more: Any) -> tuple[bytes, ...]:
        """The models, of names with *, that a command leaves that trains on the data."""
        show = self._bar(command)

        def heard(line: str) -> Exception | None:
            if m := re.search(r"epoch (\d+)(?: of (\d+))?", line):
                show(int(m[1]), int(m[2]) if m[2] else None)
            bad = self.handle_invalid == "error" and re.search(r"\d+ of \d+ records cannot be used, such as .*", line)
            return tool.SpecmatchError(bad[0]) if bad else None

        with tempfile.TemporaryDirectory() as folder:
            form, text = records.encode(data, targets)
            if targets:  # nothing is held out to test on, but the program wants some
                more["test"] = f"{folder}/test.{form}"
                some = records.encode(data[:256], [t[:256] for t in targets])[1]
                Path(more["test"]).write_bytes(b"".join(some))
            if more.get("model", models.PRETRAINED) not in (None, models.PRETRAINED):
                more["model"] = named(folder, (models.load(more["model"]),))
            given = flags(in_="-", format=form, id="row", out=f"{folder}/run", **more | dict(self.options or {}))
            tool.run([command, *given], text, self.n_jobs, heard)
            return tuple(p.read_bytes() for p in sorted((Path(folder) / "run").glob(name)))

    def _stream(self, command: str, data: Iterable[Any], files: Models, *more: str, total: int | None = None) -> Iterator[Rows]:
        if self.handle_invalid not in ("error", "nan", "drop"):
            raise ValueError(f"handle_invalid is {self.handle_invalid!r}; want 'error', 'nan' or 'drop'")
        show, done, bad = self._bar(command, total), 0, 0
        form, text = records.encode(data)
        with tempfile.TemporaryDirectory() as folder:
            given = flags(in_="-", format=form, id="row", model=named(folder, files), strict=self.handle_invalid == "error")
            for rows in tool.matrices([command, *given, *more], text, self.n_jobs):
                invalid = np.isnan(rows).all(axis=1)
                done, bad = done + len(rows), bad + int(invalid.sum())
                show(done, None)
                yield rows[~invalid] if self.handle_invalid == "drop" else rows
        if bad:
            warnings.warn(f"{bad} of {done} records cannot be used", stacklevel=5)

    def _rows(self, command: str, records_: Any, files: Models, *more: str) -> Rows:
        data = list(records.listed(records_))
        if not data:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        out, at = np.empty((len(data), len(columns(command, files, more))), np.float32), 0
        for rows in self._stream(command, data, files, *more, total=len(data)):
            out[at:at + len(rows)] = rows
            at += len(rows)
        return out[:at]

class Embedder(TransformerMixin, Base):
    """Vectors of molecules and graphs: of SMILES, ``networkx`` graphs, PyG's ``Data``, or pairs (edges,
    features) with features whole numbers [nodes], numbers [nodes×width] or the number of nodes.

    model: a model file; None is the encoder of molecules in the program.
    method: trains an encoder on the records that ``fit`` gets, by this method of ``specmatch train``.
    readout: as ``-readout`` of ``specmatch embed``.
    handle_invalid: what to do with a record that cannot be read: ``"error"``, a row of ``"nan"``, or
        ``"drop"`` its row. Unless it is ``"error"``, training leaves such records out.
    options: further flags of ``specmatch train``, such as ``{"epochs": 20}``.
    n_jobs: threads; None is all cores.  random_state: the seed of training.
    verbose: shows a bar where tqdm is installed.
    """

    def __init__(self, model: models.Source = None, *, method: str | None = None, readout: str = "auto", handle_invalid: str = "error",
                 options: Options = None, n_jobs: int | None = None, random_state: int | None = None, verbose: bool = False) -> None:
        self.model, self.method, self.readout, self.handle_invalid = model, method, readout, handle_invalid
        self.options, self.n_jobs, self.random_state, self.verbose = options, n_jobs, random_state, verbose

    def __sklearn_tags__(self) -> Any:
        tags: Any = Base.__sklearn_tags__(self)
        tags.requires_fit, tags.transformer_tags = self.method is not None, TransformerTags()
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        self.model_ = models.load(self.model) if self.method is None else self._train(
            "train", records.listed(X), [], "model.safetensors", method=self.method, seed=self.random_state)[0]
        return self

    def _model(self) -> bytes | None:
        if self.method is not None:
            check_is_fitted(self, "model_")
        return self.model_ if hasattr(self, "model_") else models.load(self.model)

    def transform(self, X: Any) -> Any:
        """The vectors [records×width], float32."""
        return self._rows("embed", X, (self._model(),), f"-readout={self.readout}")

    def stream(self, X: Iterable[Any]) -> Iterator[Rows]:
        """The vectors of any iterable, batch by batch, so that neither need fit into memory."""
        return self._stream("embed", records.listed(X), (self._model(),), f"-readout={self.readout}")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        return np.asarray(columns("embed", (self._model(),), (f"-readout={self.readout}",)), dtype=object)

    def save(self, path: str) -> None:
        """Writes the encoder as a model file."""
        model = self._model()
        if model is None:
            tool.run(["convert", "-in=pretrained", f"-out={path}"])
        else:
            Path(path).write_bytes(model)

class Predictor(Base):
    kind: str
    classes_: NDArray[Any]

    def __init__(self, model: models.Source = None, *, n_estimators: int = 1, epochs: int = 100, handle_invalid: str = "error",
                 options: Options = None, n_jobs: int | None = None, random_state: int | None = None, verbose: bool = False) -> None:
        self.model, self.n_estimators, self.epochs, self.handle_invalid = model, n_estimators, epochs, handle_invalid
        self.options, self.n_jobs, self.random_state, self.verbose = options, n_jobs, random_state, verbose

    def _fit(self, data: Any, targets: list[list[str]]) -> Self:
        data = list(records.listed(data))
        if len(data) != len(targets[0]):
            raise ValueError(f"Found input variables with inconsistent numbers of samples: [{len(data)}, {len(targets[0])}]")
        self.models_ = self._train("finetune", data, targets, "model-*.safetensors", model=self.model, kind=self.kind, epochs=self.epochs,
                                   target=",".join(f"y{k}" for k in range(len(targets))), seeds=self.n_estimators, first_seed=self.random_state)
        return self

    def _outputs(self, data: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "models_")
        rows = self._rows("predict", data, self.models_)
        return rows[:, :rows.shape[1] // min(len(self.models_), 2)].astype(np.float64)  # of several, deviations are behind

    def save(self, path: str) -> list[str]:
        """Writes the model as a file; several get -0, -1 and so on before the ending."""
        check_is_fitted(self, "models_")
        names = [str(Path(path).with_stem(f"{Path(path).stem}-{i}")) if len(self.models_) > 1 else path for i in range(len(self.models_))]
        for name, model in zip(names, self.models_):
            Path(name).write_bytes(model)
        return names

    @classmethod
    def load(cls, *paths: str) -> Self:
        """The model of a file, or the mean of several."""
        self = cls(n_estimators=len(paths))
        self.models_ = tuple(Path(path).read_bytes() for path in paths)
        head = self._head()
        if head.get("kind") != cls.kind:
            raise ValueError(f"{paths[0]} predicts {head.get('kind', 'nothing')}; want {cls.kind}")
        if texts := head.get("class_values"):
            self.classes_ = np.unique([int(t) for t in texts] if all(re.fullmatch(r"-?\d+", t) for t in texts) else texts)
        return self

    def _head(self) -> dict[str, Any]:
        return models.card(self.models_[0]).get("head", {})

class Regressor(RegressorMixin, Predictor):
    """Fine-tunes a graph network for numbers, one or several for each record, of which NaN are not
    known. A ninth of the records chooses the epoch.

    model: a model file whose encoder to start from, or "pretrained"; None is random weights.
    n_estimators: models, with seeds from random_state on, whose mean is predicted.
    options: further flags of ``specmatch finetune``.  The rest is as in Embedder.
    """
    kind = "regression"

    def fit(self, X: Any, y: Any) -> Self:
        values = np.asarray(y, dtype=np.float64)
        return self._fit(X, [["" if v != v else repr(float(v)) for v in column] for column in values.reshape(len(values), -1).T])

    def predict(self, X: Any) -> NDArray[np.float64]:
        y = self._outputs(X)
        return y[:, 0] if y.shape[1] == 1 else y

class Classifier(ClassifierMixin, Predictor):
    """Fine-tunes a graph network for classes; otherwise as Regressor."""
    kind = "classes"

    def fit(self, X: Any, y: Any) -> Self:
        self.classes_, index = np.unique(np.asarray(y), return_inverse=True)
        texts = [str(c) for c in self.classes_]
        self._fit(X, [[texts[i] for i in index]])
        if gaps := set(texts) - set(self._head()["class_values"]):
            raise ValueError(f"classes of these names are read as gaps: {sorted(gaps)}")
        return self

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """The probabilities [records×classes], in the order of classes_."""
        p, texts = self._outputs(X), self._head()["class_values"]
        return p[:, [texts.index(str(c)) for c in self.classes_]]

    def predict(self, X: Any) -> NDArray[Any]:
        """The classes; None for a record that cannot be read."""
        p = self.predict_proba(X)
        y, bad = self.classes_[np.nan_to_num(p).argmax(axis=1)], np.isnan(p).any(axis=1)
        if bad.any():
            y = y.astype(object)
            y[bad] = None
        return y
