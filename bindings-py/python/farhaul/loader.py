"""The loader: epochs of batches, resumable, from any thread and any process."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from . import _farhaul
from .arrays import wrapper
from .batch import Batch
from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .arrays import Wrap
    from .dataset import Dataset
    from .errors import FarhaulError

_LIMIT = 1 << 64
"""What the native half's numbers stay below."""

State: TypeAlias = dict[str, Any]
"""Where a loader stands; goes through JSON, pickle and `torch.save`."""


class Stats(TypedDict):
    """Figures of one epoch of one loader; times in seconds, sizes in bytes.

    The `…_wait_s` say what the training loop waited for, `python_s` how long it had batches before it asked for the
    next. `bottleneck` is what limits the rate: `"python"` where the loop waits less than a tenth of the time.
    """

    epoch: int
    batches: int
    samples: int
    bytes: int
    failures: int
    retries: int
    hedges: int
    elapsed_s: float
    first_batch_s: float | None
    samples_per_s: float
    bytes_per_s: float
    link_wait_s: float
    store_wait_s: float
    decode_wait_s: float
    python_s: float
    stall_share: float
    bottleneck: Literal["link", "store", "decode", "python"]
    held_bytes: int
    held_bytes_max: int
    window_bytes: int
    window_bytes_max: int
    ready_batches: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What `Dataset.loader` was told."""

    batch_size: int
    image_size: int | None
    decode: bool
    augment: str | None
    layout: str
    resize: int | None
    scale: tuple[float, float]
    ratio: tuple[float, float]
    flip: float
    orientation: str
    seed: int
    shuffle: bool
    order: str
    horizon: int | None
    memory: int | str
    on_error: str
    max_errors: float | None
    last_batch: str
    rank: int
    world_size: int
    threads: int | None
    prefetch: str
    parts: list[str] | None

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, int) and not 0 <= value < _LIMIT:
                raise UsageError(f"loader: {option.name} is {value}: it must be between 0 and 2**64 - 1", "loader")

    @staticmethod
    def one_last_batch(last_batch: str, *, drop_last: bool) -> str:
        """Join the two options for the rest of an epoch."""
        if not drop_last:
            return last_batch
        if last_batch == "mask":
            raise UsageError('loader: drop_last=True and last_batch="mask" contradict each other')
        return "drop"


@dataclass(frozen=True, slots=True)
class Failure:
    """A sample that failed and was skipped or substituted.

    Attributes:
        key: Its source path, if known.
        row: Its row in the data set.
        position: Its place in the epoch, over all ranks.
        substitute: The row that was delivered in its place under `on_error="substitute"`.
        error: Why.

    """

    key: str | None
    row: int
    position: int
    substitute: int | None
    error: FarhaulError


class Loader:
    """An iterable of batches: `for images, labels in loader`.

    Every `iter` begins the next epoch, or continues the one that a loaded state is in the middle of. Threads are native
    and start with the first epoch; there are no worker processes and nothing lies in shared memory. A pickled loader
    stands where this one stands. In a forked child it is opened again, and begins with the epoch that would have come
    next.
    """

    def __init__(self, dataset: Dataset, options: Options, output: str) -> None:
        self._dataset = dataset
        self._options = options
        self._output = output
        self._native = dataset._open().loader(options)  # noqa: SLF001 - what reopens the data set reopens its loaders
        self._process = os.getpid()
        self._next: State | int = 0

    def __iter__(self) -> Epoch:
        native = self._open()
        epoch, batches = native.epoch(), native.batches_left()
        started = native.start()
        self._next = epoch + 1
        return Epoch(started, wrapper(self._output), epoch, batches)

    def __len__(self) -> int:
        """Count the batches that the next `iter` will give: exact, and the same on every rank."""
        return self._open().batches_left()

    @property
    def epoch(self) -> int:
        """The epoch that the next `iter` begins or continues."""
        return self._open().epoch()

    @property
    def dataset(self) -> Dataset:
        """The data set that it loads from."""
        return self._dataset

    def set_epoch(self, epoch: int) -> None:
        """Make the next `iter` begin this epoch; epochs are counted from 0."""
        if not 0 <= epoch < _LIMIT:
            raise UsageError(f"loader: the epoch is {epoch}: it must be between 0 and 2**64 - 1", "loader")
        self._open().set_epoch(epoch)
        self._next = epoch

    def state_dict(self) -> State:
        """Save where the loader stands: after the batches that were handed over, none that was only prefetched.

        The dict is JSON-able and at most 4 KB. It covers this rank's share; `merge_states` joins those of all ranks.
        """
        state: State = json.loads(self._open().state())
        return state

    def load_state_dict(self, state: State) -> None:
        """Make the next `iter` continue from a saved state.

        It gives the exact rest of the state's epoch, or the epoch after it where that is complete.
        Seed and shuffling are the state's from then on.

        Raises:
            Incompatible: It is of another data set, or of other ranks or another batch size and not merged.

        """
        self._open().load_state(json.dumps(state))
        self._next = state
        self._options = replace(self._options, seed=state["seed"], shuffle=state["shuffle"])

    get_state = state_dict
    set_state = load_state_dict

    def stats(self) -> Stats:
        """Tell what the epoch that runs or ran last did, and what the training loop waited for."""
        return self._open().stats()

    @property
    def failures(self) -> list[Failure]:
        """The samples that failed in the epoch that runs or ran last; the first 10,000 of them."""
        return [
            Failure(error.key, row, position, substitute, error)
            for position, row, substitute, error in self._open().failures()
        ]

    def __repr__(self) -> str:
        told = self._options
        return (
            f"<farhaul.Loader of {self._dataset.uri}: {len(self)} batches of {told.batch_size}, "
            f"rank {told.rank} of {told.world_size}>"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {
            "dataset": self._dataset,
            "options": self._options,
            "output": self._output,
            "next": self.state_dict(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._dataset = state["dataset"]
        self._options = state["options"]
        self._output = state["output"]
        self._next = state["next"]
        self._process = 0

    def _open(self) -> _farhaul.Loader:
        """Give the native loader of this process, made anew where this object came from another one."""
        process = os.getpid()
        if self._process != process:
            native = self._dataset._open().loader(self._options)  # noqa: SLF001 - as in __init__
            if isinstance(self._next, int):
                native.set_epoch(self._next)
            else:
                native.load_state(json.dumps(self._next))
            self._native, self._process = native, process
        return self._native


class Epoch:
    """The batches of one epoch, or of the rest of it.

    Several threads may take from it; each batch goes to one of them.
    """

    def __init__(self, native: _farhaul.Epoch, wrap: Wrap, epoch: int, batches: int) -> None:
        self._native = native
        self._wrap = wrap
        self._left = batches
        self.epoch = epoch

    def __iter__(self) -> Epoch:
        return self

    def __next__(self) -> Batch:
        batch = Batch(next(self._native), self._wrap)
        self._left -= 1
        return batch

    def __len__(self) -> int:
        """Count the batches that are left."""
        return self._left

    def close(self) -> None:
        """Give up what is still being fetched, as deleting the epoch does; batches that were handed over stay valid."""
        self._native.close()

    def __repr__(self) -> str:
        return f"<farhaul.Epoch {self.epoch}: {self._left} batches left>"


def merge_states(states: Iterable[State]) -> State:
    """Join the states that all ranks saved at one moment.

    Any number of ranks can resume the joined state, with any batch size.

    Raises:
        Incompatible: They are of different runs, or a rank is missing or comes twice.

    """
    merged: State = json.loads(_farhaul.merge_states([json.dumps(state) for state in states]))
    return merged
