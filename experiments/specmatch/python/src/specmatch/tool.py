"""The program: records go into its standard input, and rows come out."""
import os
import re
import shutil
import signal
import subprocess
import sysconfig
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

Heard = Callable[[str], Exception | None]  # gets the lines of standard error; an error ends the program

class SpecmatchError(ValueError):
    """The program has ended with an error, which is the message."""

def program() -> str:
    """The path of the program: that of this installation, or else on the PATH."""
    name = "specmatch.exe" if os.name == "nt" else "specmatch"
    for scheme in (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user")):
        path = os.path.join(sysconfig.get_path("scripts", scheme), name)
        if os.path.isfile(path):
            return path
    if path := shutil.which(name):
        return path
    raise FileNotFoundError(f"{name} is neither where this package installs it nor on the PATH")

class Process:
    """A run of the program, fed by a thread. Leaving it waits for the end; what is raised inside
    ends the program within a second."""

    def __init__(self, arguments: Sequence[str], text: Iterable[bytes], threads: int | None = None, heard: Heard | None = None) -> None:
        env = os.environ | ({} if threads is None else {"GOMAXPROCS": str(threads)})
        self.popen = subprocess.Popen([program(), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        self.stdout = cast(IO[bytes], self.popen.stdout)
        self.said: deque[str] = deque(maxlen=1)
        self.failure: BaseException | None = None  # of another thread
        self.feeder = threading.Thread(target=self._feed, args=(self.popen.stdin, text), daemon=True)
        self.listener = threading.Thread(target=self._listen, args=(self.popen.stderr, heard), daemon=True)
        self.feeder.start()
        self.listener.start()

    def _feed(self, stdin: IO[bytes], text: Iterable[bytes]) -> None:
        try:
            with stdin:
                for piece in text:
                    stdin.write(piece)
        except OSError:
            pass  # the program has ended, and says why
        except BaseException as e:
            self._fail(e)

    def _listen(self, stderr: IO[bytes], heard: Heard | None) -> None:
        with stderr:
            for line in stderr:
                self.said.append(line.decode("utf-8", "replace").rstrip())
                if heard and (error := heard(self.said[-1])):
                    self._fail(error)

    def _fail(self, error: BaseException) -> None:
        self.failure = error
        self.popen.kill()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is not None:  # such as Ctrl-C, which a notebook sends to this process only
                self.popen.terminate() if os.name == "nt" else self.popen.send_signal(signal.SIGINT)
            self.popen.wait(None if kind is None else 0.9)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self.popen.kill()
            self.popen.wait()
            self.stdout.close()
        self.listener.join()
        if kind is None and (self.failure or self.popen.returncode):
            raise self.failure or self._error(self.popen.returncode)

    def _error(self, status: int) -> BaseException:
        if status == 130:
            return KeyboardInterrupt()
        if status < 0:
            return SpecmatchError(f"the program was killed by {signal.Signals(-status).name}")
        return SpecmatchError(re.sub(r"^specmatch(\.exe)?: | \(-h explains the flags\)$", "", self.said[-1] if self.said else f"status {status}"))

def run(arguments: Sequence[str], text: Iterable[bytes] = (), threads: int | None = None, heard: Heard | None = None) -> None:
    with Process(arguments, text, threads, heard) as p:
        p.stdout.read()

def matrices(arguments: Sequence[str], text: Iterable[bytes], threads: int | None = None) -> Iterator[NDArray[np.float32]]:
    """The matrix of each batch, with rows of NaN for records that cannot be used."""
    used = False
    try:
        with Process([*arguments, "-out=-", "-out-format=npy"], text, threads) as p:
            out = cast(Any, p.stdout)
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
