"""The program, whose standard input gets records and whose output has rows, and its model files."""
import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import tempfile
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from subprocess import PIPE, STDOUT
from threading import Thread
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

Source = str | os.PathLike[str] | None  # of a model; None is that of the program
OURS = set("in out out_format format id strict target kind seed seeds first_seed test shard collect list".split())
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
            return ",".join(map(str, cast(Sequence[Any], value)))
        return str(value).lower() if isinstance(value, bool) else str(value)
    return [f"-{name.rstrip('_').replace('_', '-')}={text(v)}" for name, v in values.items() if v is not None]

@cache
def parameters(command: str) -> set[str]:
    """The flags of a command, with _ for -, that are not set by this package."""
    table = json.loads(subprocess.run([program(), "flags", command], stdout=PIPE, stderr=STDOUT, check=True).stdout)
    names = {name for flag in table for name in (flag["name"], flag.get("old")) if name}
    return {name.replace("-", "_") for name in names} - OURS

@contextmanager
def running(arguments: Sequence[str], text: Iterable[bytes] = (), threads: int | None = None,
            heard: Callable[[str], None] = lambda line: None) -> Generator[IO[bytes]]:
    """The standard output of a run of the program, which a thread feeds with the text.

    heard gets each line of standard error. What is raised inside, by the text or by heard ends the program.
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
                dropped.extend(re.findall(r"[^;]*(?:self-loops|repeated edges) dropped", latest))
                heard(latest)

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
    for edges in dropped:
        warnings.warn(edges.strip(), stacklevel=6)
    if process.returncode == 130:
        raise KeyboardInterrupt
    if process.returncode < 0:
        raise SpecmatchError(f"the program was killed by {signal.Signals(-process.returncode).name}")
    if process.returncode > 0:
        line = said[-1] if said else f"status {process.returncode}"
        raise SpecmatchError(re.sub(r"^specmatch(\.exe)?: | \(-h explains the flags\)$", "", line))

def matrices(arguments: Sequence[str], text: Iterable[bytes], threads: int | None) -> Iterator[NDArray[np.float32]]:
    """The matrix of each batch, with rows of NaN for records that cannot be used."""
    used = False
    try:
        with running([*arguments, "-out=-", "-out-format=npy"], text, threads) as stdout:
            out = cast(Any, stdout)
            while out.peek(1):
                np.lib.format.read_magic(out)
                shape, _, dtype = np.lib.format.read_array_header_1_0(out)
                rows = np.empty(shape, dtype)
                if out.readinto(rows.data.cast("B")) != rows.nbytes:
                    break  # the program was killed
                used = used or not np.isnan(rows).all()
                yield rows
    except SpecmatchError as e:  # that no record can be used is none: there is a row for each
        if used or "records can be used" not in str(e):
            raise

@cache
def pretrained() -> bytes:
    """The encoder of molecules in the program."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        with running(["convert", "-in=pretrained", f"-out={path}"]):
            pass
        return path.read_bytes()

def load(model: Source) -> bytes:
    """A model file's contents; None and "pretrained" stand for the encoder in the program."""
    return pretrained() if model is None or model == "pretrained" else Path(model).read_bytes()

def read_card(model: Source | bytes = None) -> dict[str, Any]:
    """What a model file, or its contents, says about its model: encoder, features, head, where it comes from."""
    data = model if isinstance(model, bytes) else load(model)
    end = 8 + int.from_bytes(data[:8], "little")
    if end > len(data):
        raise ValueError("not a model file: its header is longer than the file")
    try:
        return json.loads(json.loads(data[8:end])["__metadata__"]["specmatch_model"])
    except KeyError:
        raise ValueError("the file has weights, but nothing says of what model") from None
