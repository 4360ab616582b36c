"""What a loader yields."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from . import _farhaul
    from .arrays import Array, Wrap


class Batch:
    """A batch: unpacks to `images, labels` and knows which samples it is made of.

    Arrays share the memory that the images were decoded into. It is theirs alone: they may be written to, they stay
    valid after the loader is gone, and the loader's budget (`memory=`) gets it back when the last view dies.

    With `decode=False` the images are Python's own `bytes`; they count against the budget as long as the batch lives.

    Attributes:
        images: With an `image_size` one uint8 array, samples × 3 × height × width (`layout="NCHW"`) or samples × height
            × width × 3; without one a list of uint8 arrays, height × width × 3; with `decode=False` a list of `bytes`.
        labels: int64, one for each image; -1 for a sample without a label and for a masked image.
        positions: int64, the place of each sample in the epoch over all ranks; -1 for a masked image.
        mask: bool, true for images that are real; None where all of them are.

    """

    __slots__ = ("_native", "images", "labels", "mask", "positions")

    images: Array
    labels: Array
    positions: Array
    mask: Array | None

    def __init__(self, native: _farhaul.Batch, wrap: Wrap) -> None:
        self._native = native
        images = native.images
        if not isinstance(images, list):
            self.images = wrap(images)
        elif images and not isinstance(images[0], bytes):
            self.images = [wrap(image) for image in images]
        else:
            self.images = images
        self.labels = wrap(native.labels)
        self.positions = wrap(native.positions)
        self.mask = None if native.mask is None else wrap(native.mask)

    @property
    def keys(self) -> list[str]:
        """Source path of each sample; empty for a masked image."""
        return self._native.keys()

    @property
    def rows(self) -> list[int]:
        """Row of each sample: `data[row]`; -1 for a masked image."""
        return self._native.rows()

    def __iter__(self) -> Iterator[Array]:
        yield self.images
        yield self.labels

    def __len__(self) -> int:
        return len(self._native)

    def __repr__(self) -> str:
        shape = getattr(self.images, "shape", None)
        images = f"a list of {len(self)}" if shape is None else f"{'×'.join(map(str, shape))}"
        return f"Batch({len(self)} samples, images: {images})"
