"""Molecules and graphs to vectors and predictions, by the program specmatch.

``Embedder`` is a transformer of scikit-learn, ``Regressor`` and ``Classifier`` are its
estimators. ``Predictor`` has models that ship. ``to_torch`` gives an encoder as a module of PyTorch, ``from_torch`` a model
file of it. All of them call the program that this package installs, through pipes.
"""
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from .estimators import Classifier, Embedder, Regressor, valid
from .shipped import Predictor
from .tool import SpecmatchError, read_card

if TYPE_CHECKING:
    from .modules import from_torch as from_torch, to_torch as to_torch

__version__ = version("specmatch-cl")
__all__ = ["Classifier", "Embedder", "Predictor", "Regressor", "SpecmatchError", "read_card", "valid"]  # and what needs PyTorch

def __getattr__(name: str) -> Any:
    if name not in ("to_torch", "from_torch"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from . import modules
    return getattr(modules, name)
