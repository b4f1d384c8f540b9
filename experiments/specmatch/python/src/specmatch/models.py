"""Model files: safetensors with a card, which says how the encoder is built."""
import json
import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from . import tool

Source = str | os.PathLike[str] | None

@cache
def pretrained() -> bytes:
    """The encoder of molecules in the program."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        with tool.running(["convert", "-in=pretrained", f"-out={path}"]):
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
