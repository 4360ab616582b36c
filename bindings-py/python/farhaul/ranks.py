"""Which rank this process is, and of how many."""

from __future__ import annotations

import os
import sys

from .errors import UsageError


def discover(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Find rank and world size: as given, else as `torch.distributed` or the launcher says, else one process alone.

    `torch.distributed` is asked only where the program has imported it and initialised its process group. Without that,
    `RANK` and `WORLD_SIZE`, which torchrun and its like set for every process, count where both are there.
    """
    if rank is not None or world_size is not None:
        if rank is None or world_size is None:
            raise UsageError("loader: rank and world_size go together; give both or none")
        return rank, world_size
    distributed = sys.modules.get("torch.distributed")
    if distributed is not None and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    rank_word, world_word = os.environ.get("RANK"), os.environ.get("WORLD_SIZE")
    if rank_word is None or world_word is None:
        return 0, 1
    try:
        return int(rank_word), int(world_word)
    except ValueError:
        message = f"loader: RANK={rank_word!r} and WORLD_SIZE={world_word!r} in the environment are no numbers"
        raise UsageError(message, hint="set both to numbers, or give rank= and world_size=") from None
