"""The native half of farhaul."""

import sys
from collections.abc import Sequence
from typing import final

from typing_extensions import Buffer as BufferProtocol

from .errors import FarhaulError
from .loader import Options, Stats
from .writing import Report

__all__ = [
    "Batch",
    "Buffer",
    "Dataset",
    "Epoch",
    "Loader",
    "__version__",
    "decode",
    "ingest",
    "merge_states",
    "open",
]

__version__: str

@final
class Buffer(BufferProtocol):
    """One block of memory with a shape, for `numpy.asarray`, `torch.frombuffer` and `memoryview`."""

    @property
    def shape(self) -> list[int]:
        """Lengths of the axes."""
    @property
    def format(self) -> str:
        """Type of the items, as the `struct` module writes it."""
    if sys.version_info >= (3, 12):
        def __buffer__(self, flags: int, /) -> memoryview: ...

@final
class Batch:
    """What `Epoch.__next__` gives."""

    @property
    def images(self) -> Buffer | list[bytes] | list[Buffer]: ...
    @property
    def labels(self) -> Buffer: ...
    @property
    def positions(self) -> Buffer: ...
    @property
    def mask(self) -> Buffer | None: ...
    def keys(self) -> list[str]: ...
    def rows(self) -> list[int]: ...
    def __len__(self) -> int: ...

@final
class Epoch:
    """One pass over the data set, or over the rest of it."""

    def __iter__(self) -> Epoch: ...
    def __next__(self) -> Batch: ...
    def close(self) -> None:
        """Gives up all requests; what was handed over stays valid."""

@final
class Loader:
    """Makes epochs; belongs to the process that made it."""

    def batches_left(self) -> int: ...
    def epoch(self) -> int: ...
    def set_epoch(self, epoch: int) -> None: ...
    def start(self) -> Epoch: ...
    def state(self) -> str: ...
    def load_state(self, state: str) -> None: ...
    def stats(self) -> Stats: ...
    def failures(self) -> list[tuple[int, int, int | None, FarhaulError]]:
        """Position, row, substitute and error of each."""

@final
class Dataset:
    """A data set, pinned to what was published when it was opened. Belongs to the process that opened it."""

    def __len__(self) -> int: ...
    @property
    def uri(self) -> str: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def classes(self) -> list[str]: ...
    @property
    def fields(self) -> dict[str, str]: ...
    @property
    def fingerprint(self) -> str: ...
    def find(self, key: bytes) -> int | None: ...
    def samples(
        self, rows: Sequence[int]
    ) -> list[
        tuple[
            str,
            int,
            dict[str, bool | int | float | str | list[int] | list[float] | list[str]],
            dict[str, bytes],
            str | None,
        ]
    ]: ...
    def loader(self, options: Options) -> Loader: ...

def open(uri: str, format: str | None = None) -> Dataset:
    """Opens a data set wherever it is."""

def decode(data: bytes, key: str, orientation_word: str) -> Buffer:
    """Decodes one picture to height × width × 3 bytes."""

def ingest(source: str, to: str, format: str | None, on_error: str) -> Report:
    """Writes a source into a store and publishes it. `on_error` is `fail` or `skip`."""

def merge_states(states: Sequence[str]) -> str:
    """One state of the states of all ranks, as JSON."""
