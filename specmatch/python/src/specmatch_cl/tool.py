"""The program, whose standard input gets records and whose output has rows, and its model files."""
import csv
import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import warnings
import zipfile
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from subprocess import PIPE
from threading import Thread
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

Source = str | os.PathLike[str] | None  # of a model; None is that of the program
Seed = int | np.random.RandomState | np.random.Generator | None
MODEL = "specmatch_cl_model_"  # by which messages have the names of files that a caller has not written
ENDED = (errno.EPIPE, errno.EINVAL)  # says writing to a program that has ended, the latter on Windows

class SpecmatchError(ValueError):
    """The program has ended with an error, which is the message."""

def program() -> str:
    """The path of the program: that of this installation, or else on the PATH."""
    user = sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
    folders = os.pathsep.join([sysconfig.get_path("scripts"), user, os.environ.get("PATH", "")])
    if path := shutil.which("specmatch", path=folders):
        return path
    raise FileNotFoundError("the program specmatch is neither where this package installs it nor on the PATH")

def flags(**values: Any) -> list[str]:
    """Flags of the program, of which None are left out."""
    def text(value: Any) -> str:
        if isinstance(value, (list, tuple)):
            line = io.StringIO()  # elements may have commas
            csv.writer(line, lineterminator="").writerow(map(str, cast(Sequence[Any], value)))
            return line.getvalue()
        return str(value).lower() if isinstance(value, bool) else str(value)
    return [f"-{name.rstrip('_').replace('_', '-')}={text(v)}" for name, v in values.items() if v is not None]

def models(folder: str, files: Sequence[bytes]) -> list[str]:
    """The flag that names model files, which are written into a folder."""
    names = [f"{folder}/{MODEL}{i}.safetensors" for i in range(len(files))]
    for name, data in zip(names, files):
        Path(name).write_bytes(data)
    return flags(model=names or None)

def message(text: str, first: int) -> str:
    """A message with records by number, from 0, for lines of standard input, and models by number, too."""
    text = re.sub(r"^specmatch(\.exe)?: | \(-h explains the flags\)$", "", text)
    text = re.sub(r"(?<!\S)(?:dataset: )?-:(\d+)", lambda m: f"record {int(m[1]) - first}", text)
    text = re.sub(rf"\S*{MODEL}(\d+)\.safetensors: (specmatch: )?", r"model \1: ", text)
    return re.sub(r"^(dataset: )?-: ", "", text)

def warn(lines: Iterable[str]) -> None:
    """Warns of edges that a run has dropped, as its messages say."""
    for line in lines:
        for dropped in re.findall(r"[^;]*(?:self-loops|repeated edges) dropped", line):
            warnings.warn(dropped.strip(), stacklevel=7)

@contextmanager
def running(arguments: Sequence[str], text: Iterable[bytes] = (), threads: int | None = None,
            heard: Callable[[str], None] = lambda line: None, first: int = 2) -> Generator[IO[bytes]]:
    """The standard output of a run of the program, which a thread feeds with the text.

    heard gets each line of standard error, and first is the line of the first record. What is raised inside, by
    the text or by heard ends the program.
    """
    env = os.environ | ({} if threads is None else {"GOMAXPROCS": str(threads)})
    process = subprocess.Popen([program(), *arguments], stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env)
    said, failures, dropped = deque[str](maxlen=1), list[BaseException](), list[str]()

    def feed() -> None:
        with cast(IO[bytes], process.stdin) as stdin:
            stdin.writelines(text)

    def listen() -> None:
        with cast(IO[bytes], process.stderr) as stderr:
            for line in stderr:
                latest = line.decode("utf-8", "replace").rstrip()
                if not said or not said[0].startswith(("panic: ", "fatal error: ", "SIGQUIT: ")):  # traces follow
                    said.append(latest)
                if latest.endswith(" dropped") or " dropped;" in latest:
                    dropped.append(latest)
                heard(message(latest, first))

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as e:
            if not isinstance(e, OSError) or e.errno not in ENDED:
                failures.append(e)
                process.kill()

    workers = [Thread(target=guarded, args=(work,), daemon=True) for work in (feed, listen)]
    for worker in workers:
        worker.start()
    try:
        with cast(IO[bytes], process.stdout) as stdout:
            yield stdout
            stdout.read()
        process.wait()
    finally:  # also for Ctrl-C, which a notebook sends to this process only
        process.kill()
        process.wait()
    workers[1].join()
    if failures:
        raise failures[0]
    warn(dropped)
    if process.returncode == 130:
        raise KeyboardInterrupt
    if process.returncode < 0:
        raise SpecmatchError(f"the program was killed by {signal.Signals(-process.returncode).name}")
    if process.returncode > 0:
        line = said[-1] if said else f"status {process.returncode}"
        raise SpecmatchError(message(line, first))

def matrix(out: Any) -> NDArray[np.float32] | None:
    """The next matrix of a stream; None if that ends within it, as the program was killed."""
    np.lib.format.read_magic(out)
    shape, _, dtype = np.lib.format.read_array_header_1_0(out)
    rows = np.empty(shape, dtype)
    return rows if out.readinto(rows.data.cast("B")) == rows.nbytes else None

def matrices(arguments: Sequence[str], files: Sequence[bytes], text: Iterable[bytes], threads: int | None,
             first: int) -> Iterator[NDArray[np.float32]]:
    """The matrix of each batch by models, with rows of NaN for records that cannot be used."""
    used = False
    with tempfile.TemporaryDirectory() as folder:
        flag = models(folder, files)
        try:
            with running([*arguments, *flag, "-out-format=npy"], text, threads, first=first) as stdout:
                out = cast(Any, stdout)
                while out.peek(1) and (rows := matrix(out)) is not None:
                    used = used or not np.isnan(rows).all()
                    yield rows
        except SpecmatchError as e:
            if used or not none_usable(str(e)):
                raise

def none_usable(error: str) -> bool:
    """Whether the error is that no record can be used. It is none: there is a row for each."""
    return "records can be used" in error

@cache
def pretrained(name: str) -> bytes:
    """An encoder of molecules in the program: "pretrained", or "pretrained:zinc" and so on."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        with running(["convert", f"-in={name}", f"-out={path}"]):
            pass
        return path.read_bytes()

def load(model: Source) -> bytes:
    """A model file's contents; None, "pretrained" and "pretrained:NAME" stand for encoders in the program."""
    name = "pretrained" if model is None else str(model)
    builtin = name == "pretrained" or name.startswith("pretrained:")
    return pretrained(name) if builtin else Path(name).read_bytes()

def models_of(run: Path) -> list[bytes]:
    """The model files of a run directory, in the order of their seeds: model-9 is before model-10."""
    def seeds(path: Path) -> tuple[list[int], str]:
        return [int(digits) for digits in re.findall(r"\d+", path.name)], path.name
    return [p.read_bytes() for p in sorted(run.glob("model*.safetensors"), key=seeds)]

def members(path: str | os.PathLike[str]) -> list[bytes]:
    """The model files of an ensemble of ``specmatch convert``, of a run directory, or of a model file, which has one."""
    folder = Path(path)
    if folder.is_dir():
        files = models_of(folder)
        if not files:
            raise ValueError(f"{path} has no model*.safetensors")
        return files
    try:
        with zipfile.ZipFile(folder) as archive:
            manifest = json.loads(archive.read("ensemble.json"))
            if manifest["specmatch_ensemble"] != 1:
                raise ValueError(f"{path} is an ensemble of a later version")
            return [archive.read(m["name"]) for m in manifest["models"]]
    except (zipfile.BadZipFile, KeyError):  # the program says what is wrong with another file
        return [folder.read_bytes()]

def form_of(model: bytes) -> str:
    """The format of the records that a model reads."""
    return "csv" if read_card(model)["encoder"]["kind"] == "chemgin" else "jsonl"

def read_card(model: Source | bytes = None) -> dict[str, Any]:
    """What a model file, or its contents, says about its model: encoder, features, head, where it comes from."""
    data = model if isinstance(model, bytes) else load(model)
    if data.startswith(b"PK"):
        raise ValueError("an ensemble of models has no card; want one of them")
    end = 8 + int.from_bytes(data[:8], "little")
    if end > len(data):
        raise ValueError("not a model file: its header is longer than the file")
    try:
        return json.loads(json.loads(data[8:end])["__metadata__"]["specmatch_model"])
    except KeyError:
        raise ValueError("the file has weights, but nothing says of what model") from None
