"""Transformer and estimators of scikit-learn that call the program."""
import re
import tempfile
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import get_close_matches
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from . import records, tool

Rows = NDArray[np.float32]

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

class Base(BaseEstimator):
    """What transformer and estimators share: parameters, some of which are flags of the program, and its runs."""
    commands: ClassVar[tuple[str, ...]]  # of the program, whose flags are parameters

    def __init__(self, model: tool.Source, handle_invalid: str, n_jobs: int | None, random_state: int | None,
                 verbose: bool, flags: dict[str, Any]) -> None:
        self.model, self.handle_invalid, self.n_jobs = model, handle_invalid, n_jobs
        self.random_state, self.verbose, self._flags = random_state, verbose, flags
        known = set[str]().union(*map(tool.parameters, self.commands)) if flags else set[str]()
        for name in sorted(flags.keys() - known):
            close = get_close_matches(name, known, n=1)
            meant = f"; did you mean {close[0]!r}?" if close else ""
            raise ValueError(f"{type(self).__name__} has no parameter {name!r}: "
                             f"it is no flag of specmatch {' or '.join(self.commands)} that can be set here{meant}")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return super().get_params(deep) | self._flags

    def set_params(self, **params: Any) -> Self:
        self.__init__(**self.get_params() | params)
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = tags.input_tags.one_d_array = tags.input_tags.allow_nan = True
        tags.input_tags.two_d_array = False
        return tags

    def _ignore(self) -> list[str]:
        """What of a graph the parameter ignore skips."""
        given = self._flags.get("ignore") or ()
        return given.split(",") if isinstance(given, str) else list(given)

    def _arguments(self, command: str, form: str, folder: str, files: Sequence[bytes], **more: Any) -> list[str]:
        """A command for records on standard input, with models as files and the parameters that are its flags."""
        names = [f"{folder}/{i}.safetensors" for i in range(len(files))]
        for name, data in zip(names, files):
            Path(name).write_bytes(data)
        given = {k: v for k, v in self._flags.items() if k in tool.parameters(command)}
        return [command, *tool.flags(in_="-", format=form, id="row", model=",".join(names) or None, **more, **given)]

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
            form, text = records.encode(data, targets, self._ignore())
            if targets:  # nothing is held out to test on, but the program wants some
                more["test"] = f"{folder}/test.{form}"
                some = records.encode(data[:256], [t[:256] for t in targets], self._ignore())[1]
                Path(more["test"]).write_bytes(b"".join(some))
            start = [tool.load(self.model)] if targets and self.model is not None else []
            arguments = self._arguments(command, form, folder, start, out=f"{folder}/run", **more)
            with tool.running(arguments, text, self.n_jobs, heard):
                pass
            return tuple(p.read_bytes() for p in sorted(Path(folder, "run").glob("model*.safetensors")))

    def _stream(self, command: str, X: Iterable[Any], files: Sequence[bytes],
                total: int | None = None) -> Iterator[Rows]:
        if self.handle_invalid not in ("error", "nan", "drop"):
            raise ValueError(f"handle_invalid is {self.handle_invalid!r}; want 'error', 'nan' or 'drop'")
        show, done, bad = bar(command, total, self.verbose), 0, 0
        form, text = records.encode(X, ignore=self._ignore())
        with tempfile.TemporaryDirectory() as folder:
            arguments = self._arguments(command, form, folder, files, strict=self.handle_invalid == "error")
            for rows in tool.matrices(arguments, text, self.n_jobs):
                invalid = np.isnan(rows).all(axis=1)
                done, bad = done + len(rows), bad + int(invalid.sum())
                show(done, None)
                yield rows[~invalid] if self.handle_invalid == "drop" else rows
        if bad:
            warnings.warn(f"{bad} of {done} records cannot be used", stacklevel=5)

    def _rows(self, command: str, X: Any, files: Sequence[bytes]) -> Rows:
        data = list(records.listed(X))
        if not data:
            raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
        out, at = np.empty((0, 0), np.float32), 0
        for rows in self._stream(command, data, files, len(data)):
            if not at:
                out = np.empty((len(data), rows.shape[1]), np.float32)
            out[at:at + len(rows)] = rows
            at += len(rows)
        return out[:at]

class Embedder(TransformerMixin, Base):
    """Vectors of molecules and graphs: of SMILES, ``networkx`` graphs, PyG's ``Data``, or pairs (edges,
    features) with features whole numbers [nodes], numbers [nodes×width] or the number of nodes.

    Parameters
    ----------
    model : a model file; None is the encoder of molecules in the program
    method : trains an encoder on the records that ``fit`` gets, by this method of ``specmatch train``
    handle_invalid : what to do with a record that cannot be read: ``"error"``, a row of ``"nan"``, or
        ``"drop"`` its row. Unless it is ``"error"``, training leaves such records out.
    n_jobs : threads; None is all cores
    random_state : the seed of training
    verbose : shows a bar where tqdm is installed
    flags : any flag of ``specmatch embed`` and, with a method, ``specmatch train``, with _ for -, such as
        ``features="descriptors,encoder"``, ``readout="all:sum"``, ``largest_fragment=True``,
        ``neutralise=True`` or ``epochs=20``; None is its default
    """
    commands = "embed", "train"

    def __init__(self, model: tool.Source = None, *, method: str | None = None, handle_invalid: str = "error",
                 n_jobs: int | None = None, random_state: int | None = None, verbose: bool = False,
                 **flags: Any) -> None:
        super().__init__(model, handle_invalid, n_jobs, random_state, verbose, flags)
        self.method = method

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.requires_fit = self.method is not None
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        if self.method is None:
            self.model_ = tool.load(self.model)
        else:
            self.model_, = self._train("train", records.listed(X), [], method=self.method, seed=self.random_state)
        return self

    def _model(self) -> bytes:
        if self.method is not None:
            check_is_fitted(self, "model_")
        return self.model_ if hasattr(self, "model_") else tool.load(self.model)

    def transform(self, X: Any) -> Rows:
        """The vectors [records×width], float32."""
        return self._rows("embed", X, [self._model()])

    def stream(self, X: Iterable[Any]) -> Iterator[Rows]:
        """The vectors of any iterable, batch by batch, so that neither need fit into memory."""
        return self._stream("embed", records.listed(X), [self._model()])

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """The names of the columns, as the program writes them at the head of a table."""
        head = b""
        with tempfile.TemporaryDirectory() as folder:
            try:
                with tool.running(self._arguments("embed", "jsonl", folder, [self._model()], out="-")) as stdout:
                    head = stdout.readline()
            except tool.SpecmatchError:  # a table without records has a head all the same
                if not head:
                    raise
        return np.array(head.decode().rstrip().split(",")[1:], dtype=object)

    def save(self, path: str) -> None:
        """Writes the encoder as a model file."""
        Path(path).write_bytes(self._model())

class Predictor(Base):
    """What the estimators share."""
    commands = ("finetune",)
    kind: ClassVar[str]
    classes_: NDArray[Any]

    def __init__(self, model: tool.Source = None, *, n_estimators: int = 1, handle_invalid: str = "error",
                 n_jobs: int | None = None, random_state: int | None = None, verbose: bool = False,
                 **flags: Any) -> None:
        super().__init__(model, handle_invalid, n_jobs, random_state, verbose, flags)
        self.n_estimators = n_estimators

    def _fit(self, X: Any, targets: list[list[str]]) -> Self:
        data = list(records.listed(X))
        check_consistent_length(data, targets[0])
        names = ",".join(f"y{k}" for k in range(len(targets)))
        self.models_ = self._train("finetune", data, targets, kind=self.kind, target=names,
                                   seeds=self.n_estimators, first_seed=self.random_state)
        return self

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self, "models_")
        rows = self._rows("predict", X, self.models_)
        return rows[:, :rows.shape[1] // min(len(self.models_), 2)].astype(np.float64)  # of several, stds are behind

    def save(self, path: str) -> list[str]:
        """Writes the model as a file; several get -0, -1 and so on before the ending."""
        check_is_fitted(self, "models_")
        whole, several = Path(path), len(self.models_) > 1
        names = [str(whole.with_stem(f"{whole.stem}-{i}")) if several else path for i in range(len(self.models_))]
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
            whole = all(re.fullmatch(r"-?\d+", text) for text in texts)
            self.classes_ = np.unique([int(text) for text in texts] if whole else texts)
        return self

    def _head(self) -> dict[str, Any]:
        return tool.read_card(self.models_[0]).get("head", {})

class Regressor(RegressorMixin, Predictor):
    """Fine-tunes a graph network for numbers, one or several for each record, of which NaN are not
    known. A ninth of the records chooses the epoch.

    Parameters
    ----------
    model : a model file whose encoder to start from, or "pretrained"; None is random weights
    n_estimators : models, with seeds from random_state on, whose mean is predicted
    flags : any flag of ``specmatch finetune``, such as ``epochs=100``, ``readout="last:max"`` or
        ``largest_fragment=True``. The rest is as in Embedder.
    """
    kind = "regression"

    def fit(self, X: Any, y: Any) -> Self:
        values = np.asarray(y, dtype=np.float64)
        columns = values.reshape(len(values), -1).T
        return self._fit(X, [["" if np.isnan(v) else repr(float(v)) for v in column] for column in columns])

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
