"""One epoch through farhaul's loader, the way a training loop sees it, and a picture of a batch.

python demo/epoch.py STORE --picture contact-sheet.png [--folder PHOTOS]
"""

from __future__ import annotations

import argparse
import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np

import farhaul

BATCH, SIZE, SEED = 256, 224, 7


class Bar:
    """Progress on standard error: a bar on a terminal, a line at the end anywhere else."""

    def __init__(self, title: str, total: int) -> None:
        """Start the clock."""
        self.title, self.total, self.done, self.bytes = title, total, 0, 0
        self.started = time.perf_counter()
        self.first_batch_seconds: float | None = None

    def advance(self, samples: int, size_bytes: int = 0) -> None:
        """Count one batch."""
        self.done += samples
        self.bytes += size_bytes
        if self.first_batch_seconds is None:
            self.first_batch_seconds = time.perf_counter() - self.started
        if sys.stderr.isatty():
            filled = 30 * self.done // max(1, self.total)
            bar = "█" * filled + "░" * (30 - filled)
            print(f"\r  {self.title:<22} {bar} {self.done}/{self.total}", end="", file=sys.stderr, flush=True)

    def finish(self, unit: str) -> None:
        """Print the rates of the whole epoch."""
        seconds = time.perf_counter() - self.started
        if sys.stderr.isatty():
            print("\r" + " " * 78 + "\r", end="", file=sys.stderr, flush=True)
        volume = f", {self.bytes / 1e6 / seconds:6.0f} MB/s" if self.bytes else ""
        first = f"first batch after {(self.first_batch_seconds or 0) * 1e3:.0f} ms"
        print(f"  {self.title:<22} {self.done / seconds:8.0f} {unit}{volume}, {first}")


def train(store: str) -> np.ndarray:
    """Read one epoch as a training loop does; returns a copy of the first batch."""
    data = farhaul.open(store)
    loader = data.loader(batch_size=BATCH, image_size=SIZE, augment="random_resized_crop", seed=SEED)
    bar, picture = Bar("decoded, 224 x 224", len(data)), None
    for images, labels in loader:
        if picture is None:
            picture = np.array(images, copy=True)
        bar.advance(len(labels))
    bar.finish("images/s")
    if picture is None:
        message = f"{store} holds no samples"
        raise SystemExit(message)
    return picture


def read_raw(store: str) -> None:
    """Read one epoch without decoding: what the store and the loader alone can do."""
    data = farhaul.open(store)
    loader = data.loader(batch_size=BATCH, decode=False, seed=SEED)
    bar = Bar("bytes as stored", len(data))
    for samples, _ in loader:
        bar.advance(len(samples), sum(map(len, samples)))
    bar.finish("samples/s")


def read_files(folder: Path) -> None:
    """Read the same files one by one in a shuffled order, as a simple Dataset does."""
    paths = sorted(path for path in folder.glob("*/*") if path.is_file())
    bar = Bar("plain loop over files", len(paths))
    order = np.random.default_rng(SEED).permutation(len(paths))
    for start in range(0, len(paths), BATCH):
        batch = [paths[index].read_bytes() for index in order[start : start + BATCH]]
        bar.advance(len(batch), sum(map(len, batch)))
    bar.finish("files/s")


def contact_sheet(images: np.ndarray, columns: int = 12, rows: int = 6, gap: int = 4) -> np.ndarray:
    """The first images of a batch (NCHW or NHWC), at half their size, in a grid (height, width, 3)."""
    if images.shape[1] == 3:
        images = images.transpose(0, 2, 3, 1)
    count, height, width, _ = images.shape
    height, width = height // 2, width // 2
    halved = images[:, : 2 * height, : 2 * width].reshape(count, height, 2, width, 2, 3).mean(axis=(2, 4))
    sheet = np.full((rows * (height + gap) + gap, columns * (width + gap) + gap, 3), 24, dtype=np.uint8)
    for index, image in enumerate(halved[: rows * columns]):
        top = gap + index // columns * (height + gap)
        left = gap + index % columns * (width + gap)
        sheet[top : top + height, left : left + width] = image.astype(np.uint8)
    return sheet


def write_png(path: Path, pixels: np.ndarray) -> None:
    """Write RGB pixels (height, width, 3) with nothing but zlib."""
    height, width, _ = pixels.shape

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    # Each row starts with its filter: 2 is "difference from the row above".
    above = np.vstack([np.zeros((1, width, 3), np.uint8), pixels[:-1]])
    rows = np.hstack([np.full((height, 1), 2, np.uint8), (pixels - above).reshape(height, width * 3)])
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(rows.tobytes(), 6)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b""))


def main() -> None:
    """Read the store three ways and draw a batch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("store", help="what farhaul.open takes")
    parser.add_argument("--picture", type=Path, required=True, help="where the contact sheet goes")
    parser.add_argument("--folder", type=Path, help="the same files in a folder, to compare with")
    asked = parser.parse_args()
    batch = train(asked.store)
    read_raw(asked.store)
    if asked.folder:
        read_files(asked.folder)
    write_png(asked.picture, contact_sheet(batch))


if __name__ == "__main__":
    main()
