"""One exception for each kind of failure; all of them are `FarhaulError`.

Branch on the class, or on `kind`, which is the same word as in the JSON of the command line. Where Python has a class
of its own for the case, the exception is that too: `except FileNotFoundError` catches `NotFound`.
"""

from __future__ import annotations

import errno
from typing import ClassVar


class FarhaulError(Exception):
    """Base of all errors of farhaul.

    Attributes:
        kind: What went wrong, one word for a class.
        message: One line that names the operation, the sample and the store.
        operation: What was being done (`"open"`, `"fetch"`, `"decode"`, …); empty if unknown.
        key: Source path of the sample, if it is about one.
        store: URI of the store without credentials, if it is about one.
        hint: What can be done about it.
        transient: True where the same request may succeed later.

    """

    kind: ClassVar[str] = "internal"

    def __init__(  # noqa: PLR0917 - the native half gives all of them by position
        self,
        message: str = "",
        operation: str = "",
        key: str | None = None,
        store: str | None = None,
        hint: str | None = None,
        transient: bool = False,  # noqa: FBT001, FBT002 - likewise
    ) -> None:
        super().__init__()
        self.args = (message, operation, key, store, hint, transient)
        self.message = message
        self.operation = operation
        self.key = key
        self.store = store
        self.hint = hint
        self.transient = transient

    def __str__(self) -> str:
        return f"{self.message}\nhint: {self.hint}" if self.hint else self.message

    def __reduce__(self) -> tuple[type[FarhaulError], tuple[object, ...]]:
        return type(self), self.args


class UsageError(FarhaulError, ValueError):
    """An option, URI or argument makes no sense."""

    kind = "usage"


class NotFound(FarhaulError, FileNotFoundError):
    """A data set, folder, table or bucket is not there."""

    kind = "not_found"
    errno = errno.ENOENT


class SampleError(FarhaulError):
    """One sample is at fault: what `on_error` may skip or substitute."""


class SampleVanished(SampleError):
    """A sample that the data set names is gone from the store."""

    kind = "vanished"


class SampleChanged(SampleError):
    """A source file is not what it was when it was listed."""

    kind = "changed"


class CorruptSample(SampleError):
    """Stored bytes do not have the checksum that was recorded for them."""

    kind = "corrupt"


class EmptySample(SampleError):
    """A sample has no bytes."""

    kind = "empty"


class TruncatedSample(SampleError):
    """An image or archive ends before it is complete."""

    kind = "truncated"


class Malformed(SampleError, ValueError):
    """Bytes are not what their format demands."""

    kind = "malformed"


class Unsupported(SampleError):
    """A format or feature that is deliberately not read."""

    kind = "unsupported"


class TooLarge(SampleError):
    """A limit on pixels, bytes or members was passed."""

    kind = "too_large"


class Conflict(SampleError):
    """Two things claim one name."""

    kind = "conflict"


class MissingPart(SampleError):
    """A part that a sample must have (image, label) is missing."""

    kind = "missing_part"


class UnknownVersion(FarhaulError):
    """A file, state or peer has a version that this farhaul does not know."""

    kind = "version"


class Incompatible(FarhaulError, ValueError):
    """A saved state does not fit the data set, ranks or batch size that it is loaded into."""

    kind = "incompatible"


class Timeout(FarhaulError, TimeoutError):
    """No answer before the deadline."""

    kind = "timeout"
    errno = errno.ETIMEDOUT


class Overloaded(FarhaulError):
    """The other side says that it has too much to do."""

    kind = "overloaded"


class Unavailable(FarhaulError, ConnectionError):
    """The other side cannot be reached, or went away."""

    kind = "unavailable"


class Unauthenticated(FarhaulError):
    """Credentials are missing, wrong or ended."""

    kind = "unauthenticated"


class PermissionDenied(FarhaulError, PermissionError):
    """Not allowed, by the file system or by the server."""

    kind = "permission_denied"
    errno = errno.EACCES


class DiskFull(FarhaulError, OSError):
    """No space left, here or at the store."""

    kind = "disk_full"
    errno = errno.ENOSPC


class TooManyErrors(FarhaulError):
    """More bad samples than `max_errors` allows."""

    kind = "too_many_errors"


class Cancelled(FarhaulError):
    """The work was stopped."""

    kind = "cancelled"


class IoError(FarhaulError, OSError):
    """Any other failure of the operating system."""

    kind = "io"


class InternalError(FarhaulError, RuntimeError):
    """A promise inside farhaul was broken: please report it."""

    kind = "internal"
