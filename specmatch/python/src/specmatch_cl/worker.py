"""Processes of the program that stay, and answer one request after another.

Starting the program and opening a model takes a quarter of a second, which one molecule need not wait for. There is
a process for each command with its models, and at most LIMIT of them. They end with this process: their standard
input does. A process that was forked from this one has its own.
"""
import atexit
import io
import json
import os
import shutil
import subprocess
import tempfile
from collections import OrderedDict
from collections.abc import Sequence
from subprocess import PIPE
from threading import Lock
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from . import tool

LIMIT = 4
MEMORY = 32  # MB of the cache of a process

class Gone(Exception):
    """The process has ended before its answer; it may have been killed while it was idle."""

class Worker:
    """A process, and the folder from which it reads its models."""

    def __init__(self, arguments: Sequence[str], files: Sequence[bytes], threads: int | None) -> None:
        self.lock, self.errors = Lock(), tempfile.TemporaryFile()
        self.folder = tempfile.mkdtemp()
        flags = [*arguments, *tool.models(self.folder, files), "-out-format=requests", "-workers=1"]
        if arguments[0] == "embed" and not any(a.startswith("-memory=") for a in arguments):
            flags.append(f"-memory={MEMORY}")
        env = os.environ | ({} if threads is None else {"GOMAXPROCS": str(threads)})
        # Ctrl-C is for this process, which ends the other one where it waits for it.
        self.process = subprocess.Popen([tool.program(), *flags], stdin=PIPE, stdout=PIPE, stderr=self.errors, env=env,
                                        start_new_session=True)

    def ask(self, text: bytes) -> tuple[dict[str, Any], bytes]:
        """The head of the answer to a request, and its matrices."""
        stdin, stdout = cast(IO[bytes], self.process.stdin), cast(IO[bytes], self.process.stdout)
        try:
            stdin.write(b"%d\n" % len(text) + text)
            stdin.flush()
        except OSError:
            raise Gone from None
        line = stdout.readline()
        if not line:
            raise Gone
        head = json.loads(line)
        body = stdout.read(head["bytes"])
        if len(body) < head["bytes"]:
            raise Gone
        shutil.rmtree(self.folder, ignore_errors=True)  # the models have been read
        return head, body

    def close(self) -> str:
        """Ends the process, and returns its last message."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            try:
                cast(IO[bytes], pipe).close()
            except OSError:  # what was written has not arrived
                pass
        self.errors.seek(0)
        lines = self.errors.read().decode("utf-8", "replace").strip().splitlines()
        self.errors.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        return lines[-1] if lines else f"the program has ended with status {self.process.returncode}"

Key = tuple[object, ...]
workers = OrderedDict[Key, Worker]()
guard = Lock()

def forget() -> None:
    """In a forked process, whose parent has the workers."""
    global workers, guard
    inherited.append(workers)  # which must not be collected, and so closed
    workers, guard = OrderedDict[Key, Worker](), Lock()

inherited: list[object] = []

def close() -> None:
    """Ends all processes."""
    with guard:
        while workers:
            workers.popitem()[1].close()

atexit.register(close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=forget)

def current(key: Key, arguments: Sequence[str], files: Sequence[bytes], threads: int | None) -> Worker:
    """The process of a key, which is started if there is none; older ones that are idle end for it."""
    with guard:
        worker = workers.get(key) or Worker(arguments, files, threads)
        workers[key] = worker
        workers.move_to_end(key)
        for old in list(workers)[:-LIMIT]:
            if workers[old].lock.acquire(blocking=False):  # it is idle
                ended = workers.pop(old)
                ended.close()
                ended.lock.release()  # for a thread that waits for it
        return worker

def answer(key: Key, arguments: Sequence[str], files: Sequence[bytes], text: bytes,
           threads: int | None) -> tuple[dict[str, Any], bytes]:
    """The answer of the process of a key, which is started if there is none."""
    while True:
        worker = current(key, arguments, files, threads)
        # The guard is free while a thread waits for its turn: whoever has the turn takes the guard when it fails.
        with worker.lock:
            if workers.get(key) is not worker:  # it has been ended meanwhile
                continue
            try:
                return worker.ask(text)
            except BaseException as e:  # also Ctrl-C, behind which the rest of an answer would follow
                with guard:
                    if workers.get(key) is worker:
                        del workers[key]
                said = worker.close()
                if isinstance(e, Gone):
                    raise Gone(said) from None
                raise

def asked(arguments: Sequence[str], files: Sequence[bytes], text: bytes, threads: int | None,
          first: int) -> list[NDArray[np.float32]]:
    """The matrix of each batch by models, with rows of NaN for records that cannot be used."""
    key: Key = (*arguments, *files, threads)
    try:
        head, body = answer(key, arguments, files, text, threads)
    except Gone:  # once more: it may have been killed while it was idle
        try:
            head, body = answer(key, arguments, files, text, threads)
        except Gone as e:
            raise tool.SpecmatchError(tool.message(str(e), first)) from None
    out, batches = io.BytesIO(body), list[NDArray[np.float32]]()
    while out.tell() < len(body) and (rows := tool.matrix(out)) is not None:
        batches.append(rows)
    used = any(not np.isnan(rows).all() for rows in batches)
    error = head.get("error", "")
    if error and (used or not tool.none_usable(error)):
        raise tool.SpecmatchError(tool.message(error, first))
    tool.warn(head.get("messages", "").splitlines())
    return batches
