"""Model files: safetensors with a card, which says how the encoder is built."""
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

PRETRAINED = "pretrained"  # the encoder of molecules in the program
Source = str | os.PathLike[str] | None
Tensors = dict[str, NDArray[Any]]
DTYPES = {"F32": "<f4", "F64": "<f8", "I64": "<i8", "I32": "<i4"}

def load(model: Source) -> bytes | None:
    """A model file's contents; None stands for the encoder in the program."""
    return None if model is None or model == PRETRAINED else Path(model).read_bytes()

def header(data: bytes) -> tuple[dict[str, Any], int]:
    end = 8 + int.from_bytes(data[:8], "little")
    if end > len(data):
        raise ValueError("not a model file: its header is longer than the file")
    return json.loads(data[8:end]), end

def card(data: bytes) -> dict[str, Any]:
    try:
        return json.loads(header(data)[0]["__metadata__"]["specmatch_model"])
    except KeyError:
        raise ValueError("the file has weights, but nothing says of what model") from None

def read_card(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What a model file says about its model: encoder, features, head, where it comes from."""
    return card(Path(path).read_bytes())

def read(data: bytes) -> Tensors:
    entries, start = header(data)
    return {name: np.frombuffer(data[start:][slice(*t["data_offsets"])], DTYPES[t["dtype"]]).reshape(t["shape"])
            for name, t in entries.items() if name != "__metadata__"}

def write(tensors: Tensors, of: dict[str, Any]) -> bytes:
    entries: dict[str, Any] = {"__metadata__": {"specmatch_model": json.dumps(of)}}
    names, body = {v: k for k, v in DTYPES.items()}, b""
    for name, value in sorted(tensors.items()):
        text = value.tobytes()
        entries[name] = {"dtype": names[value.dtype.str], "shape": list(value.shape), "data_offsets": [len(body), len(body) + len(text)]}
        body += text
    head = json.dumps(entries).encode()
    head += b" " * (-len(head) % 8)
    return len(head).to_bytes(8, "little") + head + body
