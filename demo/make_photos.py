"""Cut a folder of ImageNet-shaped JPEGs out of a few photographs, the same ones every time.

    python make_photos.py OUT --count 4000
    python make_photos.py OUT --count 400 --size 2000x1500 --bytes 900000

OUT/<class>/<class>_<number>.jpg: one class a photograph. Each file is a crop at an offset and scale of its own,
mirrored or not, in landscape or portrait, with a little grain, since enlarging a crop takes away the detail that makes
real photographs as large as they are. Sizes spread as ImageNet's do: half the asked mean occurs, and double.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
from PIL import Image

PHOTOS = Path(__file__).parent / "photos"
VERSION = 1
"""Raised when the same arguments give other files, so that an older folder is made again."""


def photographs() -> list[Path]:
    """The photographs of the repository, in the order of their names."""
    return sorted(path for path in PHOTOS.iterdir() if path.suffix in {".png", ".jpg"})


def picture(source: Image.Image, random: np.random.Generator, size: tuple[int, int]) -> Image.Image:
    """One crop of `source`, scaled to about `size` (width, height), with grain."""
    width, height = (int(edge * random.uniform(0.85, 1.15)) for edge in size)
    if random.random() < 0.25:
        width, height = height, width
    scale = random.uniform(0.55, 1.0) * min(source.width / width, source.height / height)
    crop_width, crop_height = width * scale, height * scale
    left = random.uniform(0, source.width - crop_width)
    top = random.uniform(0, source.height - crop_height)
    box = (left, top, left + crop_width, top + crop_height)
    image = source.resize((width, height), Image.Resampling.BICUBIC, box=box)
    if random.random() < 0.5:
        image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    strength = random.uniform(3.0, 9.0)
    offset = tuple(int(edge) for edge in random.integers(0, GRAIN.shape[0], size=2))
    pixels = np.asarray(image, dtype=np.float32) + grain(height, width, offset)[:, :, None] * strength
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


GRAIN = np.random.default_rng(1).standard_normal((512, 512), dtype=np.float32)
"""One plane of noise for all: drawing it afresh for each picture would cost more than all the rest."""


def grain(height: int, width: int, offset: tuple[int, int]) -> np.ndarray:
    """The plane of noise, shifted and repeated to this size."""
    rows = (np.arange(height) + offset[0]) % GRAIN.shape[0]
    columns = (np.arange(width) + offset[1]) % GRAIN.shape[1]
    return GRAIN[rows[:, None], columns]


def encode(image: Image.Image, wanted_bytes: float) -> bytes:
    """JPEG of about `wanted_bytes`: a first guess of the quality, then one correction."""
    quality, data = 88, b""
    for _ in range(2):
        buffer = io.BytesIO()
        image.save(buffer, "JPEG", quality=quality, subsampling="4:2:0")
        data = buffer.getvalue()
        ratio = wanted_bytes / len(data)
        if 0.85 < ratio < 1.2:
            break
        # A step of quality is worth about a fourteenth of the size downwards; upwards the steps grow.
        quality = round(float(np.clip(quality + np.log(ratio) * (14 if ratio < 1 else 18), 30, 97)))
    return data


def make(job: tuple[Path, Path, int, int, tuple[int, int], int]) -> int:
    """Writes the files first..last of one photograph's class; returns the bytes written."""
    photo, folder, first, last, size, mean_bytes = job
    source = Image.open(photo).convert("RGB")
    total = 0
    for number in range(first, last):
        random = np.random.default_rng([VERSION, number, *photo.stem.encode()])
        # A log-normal spread; its mean lies a little high, since the largest sizes are out of the encoder's reach.
        wanted = mean_bytes * random.lognormal(0.0, 0.35)
        data = encode(picture(source, random, size), wanted)
        (folder / f"{photo.stem}_{number:05}.jpg").write_bytes(data)
        total += len(data)
    return total


def jobs(out: Path, count: int, size: tuple[int, int], mean_bytes: int) -> list[tuple]:
    """Pieces of work of 50 files, over all classes."""
    photos = photographs()
    pieces = []
    for index, photo in enumerate(photos):
        folder = out / photo.stem
        folder.mkdir(parents=True, exist_ok=True)
        files = count // len(photos) + (index < count % len(photos))
        pieces += [(photo, folder, n, min(n + 50, files), size, mean_bytes) for n in range(0, files, 50)]
    return pieces


def main() -> int:
    """Make the folder, unless it is there as asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--count", type=int, default=4000)
    parser.add_argument("--size", default="500x375", help="mean width x height in pixels")
    parser.add_argument("--bytes", type=int, default=100_000, help="mean size of a file")
    asked = parser.parse_args()
    width, height = (int(edge) for edge in asked.size.split("x"))
    recipe = json.dumps({"version": VERSION, "count": asked.count, "size": asked.size, "bytes": asked.bytes})
    done = asked.out.with_name(asked.out.name + ".made")
    if done.is_file() and done.read_text() == recipe:
        print(f"{asked.out} is there already: {asked.count} photographs")
        return 0
    started = time.perf_counter()
    pieces = jobs(asked.out, asked.count, (width, height), asked.bytes)
    total = 0
    with ProcessPoolExecutor(max_workers=len(os.sched_getaffinity(0))) as pool:
        for index, written in enumerate(pool.map(make, pieces)):
            total += written
            if sys.stderr.isatty():
                print(f"\r{(index + 1) * 100 // len(pieces):3} %", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print("\r     \r", end="", file=sys.stderr)
    done.write_text(recipe)
    seconds = time.perf_counter() - started
    print(
        f"{asked.count} photographs, {total / 1e6:.0f} MB, mean {total / asked.count / 1e3:.0f} KB, in {seconds:.0f} s"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
