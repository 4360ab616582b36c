"""What every measured loader has in common: its arguments, the clock, the processor time, the line of JSON.

A peer is a script that calls `main(name, build)`. `build(asked)` imports its library, sets everything up and returns a
function that plays one epoch, yielding how many samples each batch holds. Importing and building are not timed; an
epoch is timed from the call to its last batch, the start of workers included. Later epochs find workers running
where a loader keeps them.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def arguments() -> argparse.Namespace:
    """The arguments that every peer takes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("files", help="a folder with one folder a class, or what farhaul can open")
    parser.add_argument("--threads", type=int, default=2, help="cores that may be used, and workers asked for")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--memory", default=None, help="the budget, for a loader that has one")
    return parser.parse_args()


def paths(folder: str) -> list[str]:
    """Every file of an image folder, sorted."""
    return sorted(str(path) for path in Path(folder).glob("*/*") if path.is_file())


def processor_seconds() -> float:
    """Processor time of this process and of all its children that have ended."""
    total = 0.0
    for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN):
        usage = resource.getrusage(who)
        total += usage.ru_utime + usage.ru_stime
    return total


def unshared_bytes() -> int:
    """Anonymous and shared memory of this process now: what mapped files take is not its own."""
    total = 0
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(("RssAnon:", "RssShmem:")):
            total += int(line.split()[1]) * 1024
    return total


def main(name: str, build: Callable[[argparse.Namespace], Callable[[], Iterator[int]]]) -> None:
    """Play the epochs of one loader and print one line of JSON."""
    asked = arguments()
    # As many cores as threads, for everyone: a loader with one thread and a busy main loop is no loader on one core.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: asked.threads])
    began = time.perf_counter()
    epoch = build(asked)
    setup_seconds = time.perf_counter() - began
    before = processor_seconds()
    base_bytes = peak_bytes = unshared_bytes()
    samples, seconds, first_batch_seconds = 0, [], []
    for _ in range(asked.epochs):
        started = time.perf_counter()
        first = None
        for count in epoch():
            if first is None:
                first = time.perf_counter() - started
            samples += count
            peak_bytes = max(peak_bytes, unshared_bytes())
        seconds.append(time.perf_counter() - started)
        first_batch_seconds.append(first)
    del epoch
    print(
        json.dumps(
            {
                "who": name,
                "threads": asked.threads,
                "batch": asked.batch,
                "samples": samples,
                "setup_s": setup_seconds,
                "seconds": seconds,
                "first_batch_s": first_batch_seconds,
                "cpu_s": processor_seconds() - before,
                "base_bytes": base_bytes,
                "peak_bytes": peak_bytes,
            }
        )
    )
    sys.stdout.flush()
