"""An open data set: samples by number, and the loaders made of it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from operator import index
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from . import _farhaul
from .arrays import choose
from .errors import Incompatible
from .loader import Loader, Options
from .ranks import discover

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

FieldValue: TypeAlias = bool | int | float | str | list[int] | list[float] | list[str]


def open(uri: str | os.PathLike[str], *, format: str | None = None) -> Dataset:
    """Open a data set wherever it is.

    Args:
        uri: A path (an embedded store, an image folder or a folder of tars, told apart by looking), or `embedded:PATH`,
            `folder:PATH`.
        format: What a bare path holds: `"embedded"`, `"folder"` (image files) or `"webdataset"` (tars). None looks.

    Raises:
        NotFound: Nothing is there.
        UsageError: The URI makes no sense.

    """
    return Dataset(os.fspath(uri), format=format)


@dataclass(frozen=True, slots=True)
class Sample:
    """One sample.

    Attributes:
        key: Source path; bytes that are not UTF-8 are written `%XX`.
        label: Number of its class in `Dataset.classes`; -1 where it has none.
        fields: Further columns of the data set.
        data: The image as it was stored; of a sample without an image its first part.
        parts: All parts by name: `{"jpg": …, "cls": …}`.

    """

    key: str
    label: int
    fields: Mapping[str, FieldValue]
    data: bytes = field(repr=False)
    parts: Mapping[str, bytes] = field(repr=False)

    def decode(
        self, orientation: Literal["ignore", "apply"] = "ignore"
    ) -> np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]:
        """Decode the image to uint8 RGB, height × width × 3, as a NumPy array that owns its memory.

        Args:
            orientation: `"ignore"` leaves pixels as they are stored, `"apply"` turns them as the picture's EXIF tag
                says.

        Raises:
            SampleError: What is wrong with it; the class says which.

        """
        pixels: np.ndarray[tuple[int, int, int], np.dtype[np.uint8]]
        pixels = np.asarray(_farhaul.decode(self.data, self.key, orientation))
        return pixels


class Dataset:
    """A data set, pinned to what was published when it was opened.

    A sequence of samples in the order of their paths, as `torch.utils.data.DataLoader` and Grain take it. It may be
    used from any thread. It pickles to its configuration, and is opened again on first use in a process that it was
    sent to or that was forked: connections and threads are never shared.
    """

    def __init__(self, uri: str, *, format: str | None = None) -> None:
        self._source = uri
        self._format = format
        self._fingerprint: str | None = None
        self._native: _farhaul.Dataset | None = None
        self._process = 0
        self._fingerprint = self._open().fingerprint

    def loader(
        self,
        *,
        batch_size: int = 256,
        image_size: int | None = None,
        decode: bool = True,
        augment: Literal["random_resized_crop", "centre_crop"] | None = None,
        layout: Literal["NCHW", "NHWC"] = "NCHW",
        resize: int | None = None,
        scale: tuple[float, float] = (0.08, 1.0),
        ratio: tuple[float, float] = (3 / 4, 4 / 3),
        flip: float = 0.5,
        orientation: Literal["ignore", "apply"] = "ignore",
        seed: int = 0,
        shuffle: bool = True,
        order: Literal["arrival", "window", "strict"] = "arrival",
        horizon: int | None = None,
        memory: int | str = "4GB",
        on_error: Literal["fail", "skip", "substitute"] = "fail",
        max_errors: float | None = None,
        drop_last: bool = False,
        last_batch: Literal["partial", "drop", "mask"] = "partial",
        rank: int | None = None,
        world_size: int | None = None,
        threads: int | None = None,
        prefetch: str = "fixed:8",
        parts: str | Sequence[str] | None = None,
        output: Literal["torch", "numpy"] | None = None,
    ) -> Loader:
        """Make a loader: an iterable of batches that knows its length, shards itself by rank and can be resumed.

        Args:
            batch_size: Samples in a batch of this rank.
            image_size: Side of square images, pixels. None leaves every image its own size, in a list.
            decode: False gives images as they were stored, in a list of `bytes`.
            augment: How a picture becomes a square: `"random_resized_crop"` takes a random part (`scale`, `ratio`,
                `flip`); `"centre_crop"` resizes the shorter side to `resize` (8/7 of `image_size` unless given) and
                takes the middle, as ImageNet is evaluated; None does the same with all of the shorter side.
            layout: Axes of the images: `"NCHW"` or `"NHWC"`.
            resize: Shorter side before the middle is taken, pixels.
            scale: Least and greatest share of the area that a random part has.
            ratio: Least and greatest width ÷ height of a random part.
            flip: Probability that a random part is mirrored left and right.
            orientation: `"ignore"` takes pixels as they are stored, `"apply"` turns them as EXIF says.
            seed: Of the order and of the augmentation, which depends on (seed, epoch, key) and on nothing else. The
                same on all ranks.
            shuffle: False keeps the order of the paths.
            order: `"arrival"` packs samples as they come, which is fastest over a distance; `"window"` fixes what is in
                a batch, `"strict"` also the order inside it.
            horizon: How many batches a sample may be late under `order="arrival"`; None fits it to `prefetch`.
            memory: Bytes that may be held at once, in flight, waiting and in your hands: a number or `"4GB"`,
                `"512MiB"`.
            on_error: What a bad sample does: `"fail"` raises its error, `"skip"` leaves it out (its batch is shorter,
                or masked with `last_batch="mask"`), `"substitute"` takes another one of its class. `Loader.failures`
                lists them.
            max_errors: How many bad samples are tolerated in an epoch: a count (int) or a share (float). None for any
                number.
            drop_last: The same as `last_batch="drop"`.
            last_batch: What becomes of the rest of an epoch: `"partial"` gives every rank a shorter batch, `"drop"`
                none, `"mask"` one of full size whose missing images are zeros, marked in `Batch.mask`.
            rank: This process among `world_size`. Both are found where neither is given: from `torch.distributed` where
                the program has imported and initialised it, else from `RANK` and `WORLD_SIZE`, else one process alone.
            world_size: Processes that share each epoch, with equal numbers of batches.
            threads: Threads that decode; None for as many as there are cores.
            prefetch: How much is fetched ahead: `"fixed:8"` is eight batches, `"fixed:8:2"` starts with one and adds
                one for every two that were taken.
            parts: Names of the parts to fetch; None for all. With `decode=False` the first one that a sample has is its
                data.
            output: `"torch"` or `"numpy"`. None is torch where the program has imported it before this call, else
                NumPy.

        Raises:
            UsageError: An option makes no sense, or two do not go together.

        """
        rank, world_size = discover(rank, world_size)
        options = Options(
            batch_size=batch_size,
            image_size=image_size,
            decode=decode,
            augment=augment,
            layout=layout,
            resize=resize,
            scale=scale,
            ratio=ratio,
            flip=flip,
            orientation=orientation,
            seed=seed,
            shuffle=shuffle,
            order=order,
            horizon=horizon,
            memory=memory,
            on_error=on_error,
            max_errors=max_errors,
            last_batch=Options.one_last_batch(last_batch, drop_last=drop_last),
            rank=rank,
            world_size=world_size,
            threads=threads,
            prefetch=prefetch,
            parts=[parts] if isinstance(parts, str) else None if parts is None else list(parts),
        )
        return Loader(self, options, choose(output))

    def find(self, key: str | bytes) -> int | None:
        """Find the row of a source path; None where there is no such sample."""
        return self._open().find(os.fsencode(key))

    @property
    def uri(self) -> str:
        """URI of the store, without credentials."""
        return self._open().uri

    @property
    def classes(self) -> list[str]:
        """Names of the classes by label."""
        return self._open().classes

    @property
    def fields(self) -> dict[str, str]:
        """Names and types of the columns that samples may have besides key and label."""
        return self._open().fields

    @property
    def fingerprint(self) -> str:
        """What names this data set in every store: a hash over path, size and label of all samples."""
        return self._open().fingerprint

    @property
    def nbytes(self) -> int:
        """Size of all samples as stored, bytes."""
        return self._open().nbytes

    def __len__(self) -> int:
        return len(self._open())

    def __getitem__(self, row: int) -> Sample:
        """Fetch one sample; negative numbers count from the end."""
        return self.__getitems__([row])[0]

    def __getitems__(self, rows: Sequence[int]) -> list[Sample]:
        """Fetch several samples at once, as torch's fetcher asks for a batch."""
        native = self._open()
        count = len(native)
        return [_sample(*sample) for sample in native.samples([_row(row, count) for row in rows])]

    def __repr__(self) -> str:
        # It is called where errors are shown, so that it must not raise; the source may hold a password.
        if self._native is None or self._process != os.getpid():
            return "<farhaul.Dataset, not yet open in this process>"
        return f"<farhaul.Dataset {self.uri}: {len(self)} samples, {len(self.classes)} classes>"

    def __getstate__(self) -> dict[str, str | None]:
        return {"source": self._source, "format": self._format, "fingerprint": self._fingerprint}

    def __setstate__(self, state: dict[str, str | None]) -> None:
        self._source = state["source"] or ""
        self._format = state["format"]
        self._fingerprint = state["fingerprint"]
        self._native = None
        self._process = 0

    def _open(self) -> _farhaul.Dataset:
        """Give the native data set of this process; after a fork the parent's is left alone and a new one opened."""
        process = os.getpid()
        native = self._native
        if native is not None and self._process == process:
            return native
        native = _farhaul.open(self._source, self._format)
        if self._fingerprint not in (None, native.fingerprint):
            message = f"open: the data set was published anew since it was opened elsewhere (store {native.uri})"
            raise Incompatible(message, "open", store=native.uri, hint="open it once more where it was sent from")
        self._native, self._process = native, process
        return native


def _row(row: int, count: int) -> int:
    number = index(row)
    if not -count <= number < count:
        raise IndexError(f"row {number} of a data set that has {count}")
    return number % count


def _sample(key: str, label: int, fields: dict[str, FieldValue], parts: dict[str, bytes], image: str | None) -> Sample:
    data = parts[image] if image is not None else next(iter(parts.values()), b"")
    return Sample(key, label, fields, data, parts)
