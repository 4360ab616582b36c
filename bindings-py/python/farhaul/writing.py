"""Bringing samples into a store."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal, TypedDict

from . import _farhaul

if TYPE_CHECKING:
    from .errors import FarhaulError


class Report(TypedDict):
    """What an ingest did.

    `samples` and `bytes` were written now, `skipped` samples were there already, `failed` ones are bad (`failures`
    holds the first thousand errors), and `left_out` counts what is no sample: hidden files, junk, side files.
    """

    samples: int
    bytes: int
    skipped: int
    failed: int
    left_out: int
    seconds: float
    failures: list[FarhaulError]


def ingest(
    source: str | os.PathLike[str],
    to: str | os.PathLike[str],
    *,
    format: str | None = None,
    on_error: Literal["fail", "skip"] = "fail",
) -> Report:
    """Write a source into a store and publish it together with what is published there already.

    It can be repeated and stopped at any time: what is there is not written again, and nothing is visible before the
    end.

    Args:
        source: A folder of images, tars (gzip too), an MDS set, or a data set in a store.
        to: The store: `embedded:PATH`, or a path, which then holds an embedded store.
        format: What the source's path holds: `"folder"`, `"webdataset"`, `"mds"` or `"embedded"`. None looks.
        on_error: What a bad sample does: `"fail"` ends the ingest and publishes nothing, `"skip"` leaves it out.

    Raises:
        FarhaulError: What the source or the store met; the class says which.

    """
    return _farhaul.ingest(os.fspath(source), os.fspath(to), format, on_error)
