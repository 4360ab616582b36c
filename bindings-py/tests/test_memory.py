"""Batches share the memory that they were decoded into, and give it back."""

import gc
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest
import torch

import farhaul
from conftest import tar_of
from farhaul.arrays import wrapper


def address(view):
    return np.asarray(view).__array_interface__["data"][0]


@pytest.mark.parametrize("options", [{"image_size": 16}, {}])
def test_arrays_are_the_native_memory_itself(data, options):
    batch = next(iter(data.loader(batch_size=8, output="torch", **options)))
    natives = batch._native.images if isinstance(batch._native.images, list) else [batch._native.images]
    tensors = batch.images if isinstance(batch.images, list) else [batch.images]
    for native, tensor in zip(natives, tensors, strict=True):
        assert tensor.data_ptr() == address(native)
        tensor[:] = 7
        assert (np.asarray(native) == 7).all()
    assert batch.labels.data_ptr() == address(batch._native.labels)


def test_numpy_and_torch_see_the_same_memory(data):
    native = next(iter(data.loader(batch_size=8, image_size=16, output="numpy")))._native.images
    array, tensor = wrapper("numpy")(native), wrapper("torch")(native)
    assert array.shape == tuple(tensor.shape) == (8, 3, 16, 16)
    assert array.dtype == np.uint8
    assert tensor.dtype == torch.uint8
    assert array.ctypes.data == tensor.data_ptr()
    array[3, 2, 1, 0] = 99
    assert tensor[3, 2, 1, 0] == 99
    assert torch.from_numpy(array).data_ptr() == tensor.data_ptr()


def test_a_buffer_gives_every_kind_of_view_that_it_can(data):
    native = next(iter(data.loader(batch_size=8, image_size=16, output="numpy")))._native.images
    view = memoryview(native)
    assert (view.shape, view.strides, view.format, view.nbytes, view.readonly) == (
        (8, 3, 16, 16),
        (768, 256, 16, 1),
        "B",
        8 * 768,
        False,
    )
    assert view.c_contiguous
    assert bytes(view) == np.asarray(native).tobytes()
    assert bytearray(native) == bytearray(np.asarray(native).tobytes())
    assert repr(native) == "Buffer(shape=[8, 3, 16, 16], nbytes=6144, lent by a loader)"


def test_arrays_may_be_written_to(data):
    batch = next(iter(data.loader(batch_size=8, image_size=16, output="numpy")))
    assert batch.images.flags.writeable
    batch.images += 1
    batch.labels[:] = 0


@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_memory_is_given_back_when_the_last_view_dies(data, output):
    loader = data.loader(batch_size=101, image_size=32, output=output)
    batch = next(iter(loader))
    nbytes = 101 * 3 * 32 * 32
    assert loader.stats()["held_bytes"] == nbytes
    row = batch.images[5]
    images = batch.images
    del batch
    assert loader.stats()["held_bytes"] == nbytes
    del images
    gc.collect()
    assert loader.stats()["held_bytes"] == nbytes, "a view of one image keeps the block"
    del row
    assert loader.stats()["held_bytes"] == 0


def test_each_image_of_a_list_keeps_the_lease(data):
    loader = data.loader(batch_size=101, output="numpy")
    batch = next(iter(loader))
    held = loader.stats()["held_bytes"]
    assert held > 0
    image = batch.images[50]
    del batch
    assert loader.stats()["held_bytes"] == held
    del image
    assert loader.stats()["held_bytes"] == 0


@pytest.mark.parametrize("output", ["torch", "numpy"])
def test_memory_outlives_loader_and_data_set(store, output):
    data = farhaul.open(store)
    loader = data.loader(batch_size=101, image_size=32, output=output, order="strict")
    (batch,) = loader
    images, before = batch.images, np.asarray(batch._native.images).copy()
    gone = [weakref.ref(thing) for thing in (data, loader, batch) if hasattr(thing, "__weakref__")]
    del data, loader, batch
    gc.collect()
    assert all(reference() is None for reference in gone)
    ballast = [np.full(images.shape, 255, np.uint8) for _ in range(20)]
    assert images.tolist() == before.tolist()
    del ballast


def test_an_empty_batch_has_its_shape(data):
    for output in ("torch", "numpy"):
        shapes = set()
        for rank in range(128):
            (batch,) = data.loader(batch_size=4, image_size=8, rank=rank, world_size=128, output=output)
            shapes.add((tuple(batch.images.shape), tuple(batch.labels.shape)))
        assert shapes == {((1, 3, 8, 8), (1,)), ((0, 3, 8, 8), (0,))}


def test_a_budget_smaller_than_the_set_still_delivers_everything(data):
    loader = data.loader(batch_size=8, image_size=128, memory=1 << 20, output="numpy")
    kept = list(loader)
    assert sum(len(batch) for batch in kept) == 101
    kept.clear()
    assert loader.stats()["held_bytes"] == 0


def threads_and_files():
    return [sum(1 for _ in Path("/proc/self", kind).iterdir()) for kind in ("task", "fd")]


def test_loaders_made_again_and_again_leave_nothing_behind(store):
    def cell():
        data = farhaul.open(store)
        loader = data.loader(batch_size=8, image_size=16, threads=2)
        for number, _ in enumerate(loader):
            if number == 1:
                break
        return loader

    kept = cell()
    before = settled(threads_and_files)
    for _ in range(30):
        kept = cell()
    assert settled(threads_and_files, before) == before
    assert kept.stats()["batches"] == 2


def settled(measure, wanted=None):
    """Threads end a moment after they were told to."""
    clock = threading.Event()
    last = None
    for _ in range(100):
        now = measure()
        if now == wanted or (wanted is None and now == last):
            return now
        last = now
        clock.wait(0.1)
    return last


def proportional_kb():
    rollup = Path("/proc/self/smaps_rollup").read_text()
    return next(int(line.split()[1]) for line in rollup.splitlines() if line.startswith("Pss_Anon:"))


def test_memory_does_not_grow_with_the_number_of_keys(tmp_path):
    samples = 100_000
    farhaul.ingest(tar_of(tmp_path / "set.tar", samples, 32), tmp_path / "set")
    data = farhaul.open(tmp_path / "set")
    opened = proportional_kb()
    seen = 0
    tenth = 0
    for batch in data.loader(batch_size=1000, decode=False, output="numpy"):
        seen += len(batch)
        if seen == samples // 10:
            tenth = proportional_kb()
    assert seen == samples
    grown = proportional_kb() - tenth
    assert grown < 4_000, f"{grown} kB from 10 % of an epoch to its end"
    assert tenth - opened < 60_000, f"{tenth - opened} kB for the buffers of a loader"
