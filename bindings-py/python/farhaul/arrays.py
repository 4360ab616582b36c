"""Batch memory as torch tensors or NumPy arrays, without a copy."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from . import _farhaul
from .errors import UsageError

Array: TypeAlias = Any
"""A `torch.Tensor` or a `numpy.ndarray`, as `output` says."""

Wrap: TypeAlias = Callable[[_farhaul.Buffer], Array]


def choose(output: str | None) -> str:
    """Decide what arrays are: as asked, else torch where the program has imported it, else NumPy."""
    if output is None:
        return "torch" if "torch" in sys.modules else "numpy"
    if output in {"torch", "numpy"}:
        return output
    raise UsageError(f'loader: output is {output!r}: it may be "torch", "numpy" or None')


def wrapper(output: str) -> Wrap:
    """Give the function that makes an array of a block of memory."""
    return tensor_wrapper() if output == "torch" else array


def array(buffer: _farhaul.Buffer) -> Array:
    """Make a NumPy array that shares the memory and keeps it alive."""
    return np.asarray(buffer)


def tensor_wrapper() -> Wrap:
    """Give the function that makes a torch tensor that shares the memory and keeps it alive."""
    torch = importlib.import_module("torch")
    types = {"B": torch.uint8, "q": torch.int64, "?": torch.bool}

    def tensor(buffer: _farhaul.Buffer) -> Array:
        dtype = types[buffer.format]
        # torch refuses to share no bytes at all.
        if 0 in buffer.shape:
            return torch.empty(buffer.shape, dtype=dtype)
        return torch.frombuffer(buffer, dtype=dtype).view(buffer.shape)

    return tensor
