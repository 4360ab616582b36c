"""What a loader yields, in every mode and order, on any number of ranks and threads."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farhaul
from conftest import image_folder
from farhaul import errors


def keys_of(loader):
    return [key for batch in loader for key in batch.keys]


def all_keys(data):
    return sorted(sample.key for sample in data)


def test_bytes_come_as_they_were_stored(data):
    for batch in data.loader(batch_size=16, decode=False, output="numpy"):
        images, labels = batch
        assert isinstance(images, list)
        assert all(image == data[row].data for image, row in zip(images, batch.rows, strict=True))
        assert labels.tolist() == [data[row].label for row in batch.rows]
        assert batch.keys == [data[row].key for row in batch.rows]
        assert len(batch) == len(images) == len(batch.positions)


def test_images_of_their_own_size_come_in_a_list(data):
    for images, labels in data.loader(batch_size=16, output="numpy"):
        assert all(image.ndim == 3 and image.shape[2] == 3 and image.dtype == np.uint8 for image in images)
        assert labels.dtype == np.int64
    batch = next(iter(data.loader(batch_size=4, output="numpy")))
    for image, row in zip(batch.images, batch.rows, strict=True):
        assert np.array_equal(image, data[row].decode())


@pytest.mark.parametrize(("layout", "shape"), [("NCHW", (16, 3, 32, 32)), ("NHWC", (16, 32, 32, 3))])
@pytest.mark.parametrize("augment", [None, "centre_crop", "random_resized_crop"])
def test_images_of_one_size_come_in_one_array(data, layout, shape, augment):
    loader = data.loader(batch_size=16, image_size=32, layout=layout, augment=augment, output="numpy")
    batches = list(loader)
    assert [batch.images.shape for batch in batches[:-1]] == [shape] * 6
    assert batches[-1].images.shape == (5, *shape[1:])
    assert all(batch.mask is None for batch in batches)


def test_the_layouts_hold_the_same_pixels(data):
    made = [
        next(iter(data.loader(batch_size=9, image_size=24, layout=layout, order="strict", output="numpy"))).images
        for layout in ("NCHW", "NHWC")
    ]
    assert np.array_equal(made[0].transpose(0, 2, 3, 1), made[1])


def test_every_epoch_has_every_sample_once_in_an_order_of_its_own(data):
    loader = data.loader(batch_size=16, decode=False, order="strict")
    epochs = [keys_of(loader) for _ in range(3)]
    assert all(sorted(keys) == all_keys(data) for keys in epochs)
    assert len({tuple(keys) for keys in epochs}) == 3
    loader.set_epoch(1)
    assert loader.epoch == 1
    assert keys_of(loader) == epochs[1]
    assert loader.epoch == 2
    assert keys_of(data.loader(batch_size=7, decode=False, shuffle=False, order="strict")) == all_keys(data)


def test_the_seed_decides_the_order(data):
    orders = {seed: keys_of(data.loader(decode=False, order="strict", seed=seed)) for seed in (0, 1)}
    assert orders[0] != orders[1]
    assert orders[0] == keys_of(data.loader(decode=False, order="strict", seed=0))


@pytest.mark.parametrize("order", ["arrival", "window", "strict"])
def test_ranks_are_disjoint_and_complete_and_epochs_differ(data, order):
    loaders = [
        data.loader(batch_size=8, decode=False, rank=rank, world_size=2, order=order, threads=2) for rank in range(2)
    ]
    seen = set()
    for _ in range(3):
        parts = [keys_of(loader) for loader in loaders]
        assert not set(parts[0]) & set(parts[1])
        assert sorted(parts[0] + parts[1]) == all_keys(data)
        seen.add(tuple(parts[0]))
    assert len(seen) == 3


def test_len_is_exact_for_every_combination(data):
    for ranks, batch, threads, last in itertools.product((1, 2, 3), range(1, 8), (1, 5), ("partial", "drop")):
        counts = set()
        for rank in range(ranks):
            loader = data.loader(
                batch_size=batch, decode=False, threads=threads, rank=rank, world_size=ranks, last_batch=last
            )
            length = len(loader)
            epoch = iter(loader)
            assert len(epoch) == length
            assert sum(1 for _ in epoch) == length
            assert len(epoch) == 0
            counts.add(length)
        assert len(counts) == 1, "a rank with more batches would wait for the others for ever"


def test_more_ranks_than_a_batch_can_fill_all_get_the_same_number_of_batches(data):
    counts = [len(list(data.loader(batch_size=4, decode=False, rank=rank, world_size=32))) for rank in range(32)]
    assert counts == [1] * 32
    dropped = [
        len(list(data.loader(batch_size=4, decode=False, rank=rank, world_size=32, drop_last=True))) for rank in (0, 31)
    ]
    assert dropped == [0, 0]


def test_a_masked_last_batch_has_the_full_size(data):
    *_, last = data.loader(batch_size=16, image_size=8, last_batch="mask", output="numpy")
    assert last.images.shape == (16, 3, 8, 8)
    assert last.mask.dtype == np.bool_
    assert last.mask.sum() == 5
    void = ~last.mask
    assert not last.images[void].any()
    assert set(last.labels[void]) == set(last.positions[void]) == {-1}
    assert [key == "" for key in last.keys] == void.tolist()


def test_augmentation_is_the_same_with_one_thread_and_eight_and_differs_by_epoch(data):
    def epoch(threads, number):
        loader = data.loader(
            batch_size=16, image_size=16, augment="random_resized_crop", order="strict", threads=threads, output="numpy"
        )
        loader.set_epoch(number)
        return {key: image.tobytes() for batch in loader for key, image in zip(batch.keys, batch.images, strict=True)}

    one, eight, next_one = epoch(1, 0), epoch(8, 0), epoch(1, 1)
    assert one == eight
    assert sum(one[key] == next_one[key] for key in one) < 3, "a crop that repeats is a seed that repeats"


def test_augmentation_does_not_depend_on_the_rank(data):
    def images(rank, ranks):
        loader = data.loader(
            batch_size=5, image_size=16, augment="random_resized_crop", rank=rank, world_size=ranks, output="numpy"
        )
        return {key: image.tobytes() for batch in loader for key, image in zip(batch.keys, batch.images, strict=True)}

    assert images(0, 1) == images(0, 2) | images(1, 2)


@given(batch=st.integers(1, 120), threads=st.integers(1, 4), seed=st.integers(0, 1 << 64 - 1))
@settings(max_examples=25, deadline=None)
def test_strict_order_depends_on_the_seed_alone(store, batch, threads, seed):
    data = farhaul.open(store)
    one = keys_of(data.loader(batch_size=101, decode=False, order="strict", seed=seed))
    assert keys_of(data.loader(batch_size=batch, decode=False, order="strict", seed=seed, threads=threads)) == one


def test_what_is_in_a_window_does_not_depend_on_arrival(data):
    made = [
        [frozenset(batch.keys) for batch in data.loader(batch_size=10, decode=False, order="window", prefetch=prefetch)]
        for prefetch in ("fixed:1", "fixed:8", "fixed:4:1")
    ]
    assert made[0] == made[1] == made[2]


@pytest.fixture
def spoiled(tmp_path):
    root = image_folder(tmp_path / "images", 60)
    for number in (3, 20, 41):
        (root / f"class{number % 5}" / f"{number:05}.jpg").write_bytes(b"no picture")
    return farhaul.open(root)


def test_a_bad_sample_fails_the_epoch_by_default_and_is_named(spoiled):
    with pytest.raises(errors.Unsupported) as caught:
        list(spoiled.loader(batch_size=8, image_size=8))
    assert caught.value.key in {"class3/00003.jpg", "class0/00020.jpg", "class1/00041.jpg"}
    assert caught.value.store == spoiled.uri


def test_bad_samples_are_skipped_and_reported(spoiled):
    loader = spoiled.loader(batch_size=8, image_size=8, on_error="skip", output="numpy")
    batches = list(loader)
    assert len(batches) == len(loader) == 8
    assert sum(len(batch) for batch in batches) == 57
    failures = loader.failures
    assert sorted(failure.key for failure in failures) == ["class0/00020.jpg", "class1/00041.jpg", "class3/00003.jpg"]
    assert all(isinstance(failure.error, errors.Unsupported) and failure.substitute is None for failure in failures)
    assert loader.stats()["failures"] == 3


def test_bad_samples_are_masked_where_the_shape_is_fixed(spoiled):
    loader = spoiled.loader(batch_size=8, image_size=8, on_error="skip", last_batch="mask", output="numpy")
    batches = list(loader)
    assert all(batch.images.shape[0] == 8 for batch in batches)
    assert sum(8 if batch.mask is None else int(batch.mask.sum()) for batch in batches) == 57


def test_bad_samples_are_substituted_by_their_own_class(spoiled):
    loader = spoiled.loader(batch_size=8, image_size=8, on_error="substitute", output="numpy")
    assert sum(len(batch) for batch in loader) == 60
    assert {spoiled[failure.substitute].label for failure in loader.failures} == {0, 1, 3}


@pytest.mark.parametrize(("limit", "passes"), [(3, True), (2, False), (0.05, True), (0.04, False), (0, False)])
def test_more_bad_samples_than_allowed_end_the_epoch(spoiled, limit, passes):
    loader = spoiled.loader(batch_size=8, image_size=8, on_error="skip", max_errors=limit)
    if passes:
        assert len(list(loader)) == 8
    else:
        with pytest.raises(errors.TooManyErrors):
            list(loader)
        assert len(loader.failures) == loader.stats()["failures"] >= 1


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"batch_size": 0}, "batch size"),
        ({"batch_size": -1}, "batch_size"),
        ({"seed": 1 << 64}, "seed"),
        ({"image_size": 1 << 40}, "image size"),
        ({"max_errors": -1}, "max_errors"),
        ({"order": "random"}, "arrival"),
        ({"layout": "CHW"}, "NCHW"),
        ({"augment": "center_crop", "image_size": 8}, "centre_crop"),
        ({"augment": "centre_crop"}, "image_size"),
        ({"decode": False, "image_size": 8}, "decode=False"),
        ({"image_size": 0}, "image size"),
        ({"image_size": 8, "resize": 4}, "fit"),
        ({"memory": "4XB"}, "memory"),
        ({"memory": "nan"}, "memory"),
        ({"memory": 7}, "memory"),
        ({"prefetch": "fixed:0"}, "prefetch"),
        ({"prefetch": "adaptive"}, "prefetch"),
        ({"max_errors": 1.5, "on_error": "skip"}, "rate"),
        ({"rank": 2, "world_size": 2}, "rank"),
        ({"rank": 2}, "world_size"),
        ({"threads": 0}, "threads"),
        ({"last_batch": "mask"}, "mask"),
        ({"last_batch": "mask", "image_size": 8, "drop_last": True}, "drop_last"),
        ({"output": "jax"}, "output"),
        ({"horizon": 0}, "horizon"),
        ({"orientation": "up"}, "orientation"),
    ],
)
def test_options_that_make_no_sense_are_refused_at_once(data, options, word):
    with pytest.raises(errors.UsageError, match=word):
        data.loader(**options)


def test_an_option_of_another_type_is_a_type_error_and_an_unknown_one_too(data):
    with pytest.raises(TypeError, match="batch_size"):
        data.loader(batch_size=2.5)
    with pytest.raises(TypeError, match="batchsize"):
        data.loader(batchsize=2)
    loader = data.loader()
    with pytest.raises(errors.UsageError, match="epoch"):
        loader.set_epoch(-1)


@pytest.mark.parametrize("memory", [64 << 20, "64MB", "64 MiB", "0.064e9", "67108864"])
def test_memory_is_a_number_or_a_text(data, memory):
    assert len(list(data.loader(decode=False, memory=memory))) == 1


def test_parts_choose_what_is_fetched(thousand):
    data = farhaul.open(thousand)
    batch = next(iter(data.loader(batch_size=8, decode=False, parts=["cls"], output="numpy")))
    assert [int(image) for image in batch.images] == batch.labels.tolist()
    with pytest.raises(errors.MissingPart, match="no part called txt"):
        list(data.loader(batch_size=8, decode=False, parts=["txt"]))
    assert list(data[0].parts) == ["jpg", "cls"]
    (one,) = data.loader(batch_size=1000, decode=False, parts="cls", order="strict")
    (two,) = data.loader(batch_size=1000, decode=False, parts=["txt", "cls"], order="strict")
    assert one.images == two.images


def test_rank_and_world_come_from_the_launcher_unless_given(data, monkeypatch):
    monkeypatch.setenv("RANK", "3")
    monkeypatch.setenv("WORLD_SIZE", "4")
    assert "rank 3 of 4" in repr(data.loader())
    assert "rank 0 of 1" in repr(data.loader(rank=0, world_size=1))
    monkeypatch.setenv("RANK", "three")
    with pytest.raises(errors.UsageError, match="RANK"):
        data.loader()
    monkeypatch.delenv("RANK")
    assert "rank 0 of 1" in repr(data.loader())


DISTRIBUTED = """
import os, sys, torch, farhaul
data = farhaul.open(sys.argv[1])
os.environ |= {"RANK": "2", "WORLD_SIZE": "3"}
print(repr(data.loader()))
torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[2]}", rank=0, world_size=1)
print(repr(data.loader()))
torch.distributed.destroy_process_group()
"""


def test_torch_distributed_comes_before_the_launcher_once_it_is_initialised(store, tmp_path):
    command = [sys.executable, "-c", DISTRIBUTED, store, tmp_path / "meeting"]
    out = subprocess.run(command, capture_output=True, text=True, check=True)
    before, after = out.stdout.splitlines()
    assert "rank 2 of 3" in before
    assert "rank 0 of 1" in after


def test_stats_say_what_happened(data):
    loader = data.loader(batch_size=16, image_size=16, output="numpy")
    assert loader.stats()["first_batch_s"] is None
    for _ in loader:
        pass
    stats = loader.stats()
    assert (stats["epoch"], stats["batches"], stats["samples"], stats["bytes"]) == (0, 7, 101, data.nbytes)
    assert 0 < stats["first_batch_s"] <= stats["elapsed_s"]
    assert stats["bottleneck"] in {"link", "store", "decode", "python"}
    waited = stats["link_wait_s"] + stats["store_wait_s"] + stats["decode_wait_s"] + stats["python_s"]
    assert 0 < waited <= stats["elapsed_s"] * 1.05
    assert stats["held_bytes_max"] > 0


OUTPUTS = """
import sys, farhaul
data = farhaul.open(sys.argv[1])
print(type(next(iter(data.loader(image_size=8))).images).__module__.partition(".")[0])
assert "torch" not in sys.modules, "torch is never imported unasked"
import torch
print(type(next(iter(data.loader(image_size=8))).images).__module__.partition(".")[0])
print(type(next(iter(data.loader(image_size=8, output="numpy"))).images).__module__.partition(".")[0])
"""


def test_arrays_are_torch_tensors_once_the_program_has_imported_torch(store):
    out = subprocess.run(
        [sys.executable, "-c", OUTPUTS, store], capture_output=True, text=True, check=True, env=dict(os.environ)
    )
    assert out.stdout.split() == ["numpy", "torch", "numpy"]
