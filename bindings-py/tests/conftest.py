"""Data sets for the tests, made once."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import farhaul


def picture(number: int, width: int = 48, height: int = 36) -> bytes:
    """A smooth JPEG that differs from every other by its number."""
    across = np.linspace(0, 90, width, dtype=np.float64)[None, :, None]
    down = np.linspace(0, 60, height, dtype=np.float64)[:, None, None]
    base = np.array([number * 37 % 100, number * 11 % 100, number * 5 % 100], dtype=np.float64)
    pixels = (across + down + base).astype(np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "JPEG", quality=90)
    return out.getvalue()


def image_folder(root: Path, samples: int, classes: int = 5) -> Path:
    """An ImageFolder of JPEGs; files `class2/00007.jpg`."""
    for number in range(classes):
        (root / f"class{number}").mkdir(parents=True)
    for number in range(samples):
        path = root / f"class{number % classes}" / f"{number:05}.jpg"
        path.write_bytes(picture(number, 40 + number % 9, 30 + number % 7))
    return root


def tar_of(path: Path, samples: int, nbytes: int) -> Path:
    """A WebDataset tar of samples that are no pictures, but named so; every one has bytes of its own."""
    with tarfile.open(path, "w") as tar:
        for number in range(samples):
            for name, data in (
                (f"{number:07}.jpg", number.to_bytes(8, "little").ljust(nbytes, b"\0")),
                (f"{number:07}.cls", str(number % 10).encode()),
            ):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory) -> Path:
    """101 JPEGs in 5 classes."""
    return image_folder(tmp_path_factory.mktemp("folder") / "images", 101)


@pytest.fixture(scope="session")
def store(folder, tmp_path_factory) -> str:
    """The same in an embedded store."""
    uri = f"embedded:{tmp_path_factory.mktemp('store') / 'images'}"
    farhaul.ingest(folder, uri)
    return uri


@pytest.fixture
def data(store) -> farhaul.Dataset:
    """The embedded store, opened."""
    return farhaul.open(store)


@pytest.fixture(scope="session")
def thousand(tmp_path_factory) -> str:
    """1000 samples of 64 bytes in an embedded store."""
    place = tmp_path_factory.mktemp("thousand")
    uri = f"embedded:{place / 'store'}"
    farhaul.ingest(tar_of(place / "set.tar", 1000, 64), uri)
    return uri


@pytest.fixture(scope="session")
def odd_files() -> Path | None:
    """The folder of odd files from the wild; None on a machine that lacks it, which must not be the CI's."""
    named = os.environ.get("FARHAUL_CASES")
    place = (Path(named) if named else Path(__file__).parents[3] / "shared" / "cases") / "files"
    if place.is_dir():
        return place
    if os.environ.get("CI") == "true":
        raise FileNotFoundError(f"{place}: FARHAUL_CASES names the folder that holds it")
    return None
