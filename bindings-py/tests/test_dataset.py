"""A data set as a sequence of samples."""

import os
import pickle
import shutil

import numpy as np
import pytest

import farhaul
from conftest import image_folder, picture
from farhaul import errors


def test_a_data_set_is_a_sequence_of_samples_in_path_order(data):
    assert len(data) == 101
    assert [data[row].key for row in (0, 1, -1)] == ["class0/00000.jpg", "class0/00005.jpg", "class4/00099.jpg"]
    assert data[-1].label == 4
    assert data[np.int64(3)].key == data[3].key
    assert data[0].data == picture(0, 40, 30)
    assert sum(1 for _ in data) == 101


@pytest.mark.parametrize("row", [101, -102, 1 << 70])
def test_a_row_outside_is_an_index_error(data, row):
    with pytest.raises(IndexError, match="101"):
        data[row]


def test_a_row_that_is_no_number_is_a_type_error(data):
    with pytest.raises(TypeError):
        data["class0/00000.jpg"]


def test_many_samples_come_at_once_in_the_order_asked(data):
    rows = [5, 100, -101, 5]
    assert [sample.key for sample in data.__getitems__(rows)] == [data[row].key for row in rows]
    assert data.__getitems__([]) == []


def test_a_sample_is_found_by_its_key(data):
    row = data.find("class3/00013.jpg")
    assert data[row].key == "class3/00013.jpg"
    assert data.find(b"class3/00013.jpg") == row
    assert data.find("class3/none.jpg") is None


def test_a_data_set_says_what_it_is(data, folder, store):
    assert data.classes == [f"class{number}" for number in range(5)]
    assert data.fields == {}
    assert data.uri == store
    assert len(data.fingerprint) == 32
    assert data.nbytes == sum(path.stat().st_size for path in folder.rglob("*.jpg"))
    assert repr(data) == f"<farhaul.Dataset {store}: 101 samples, 5 classes>"
    assert farhaul.open(folder).fingerprint == data.fingerprint, "a fingerprint is the same in every store"


def test_paths_that_are_no_utf8_open_like_any_other(tmp_path):
    odd = os.fsdecode(os.fsencode(tmp_path) + b"/st\xff")
    source = image_folder(tmp_path / "source", 10, 2)
    assert farhaul.ingest(source, odd)["samples"] == 10
    data = farhaul.open(odd)
    assert len(data) == 10
    assert len(pickle.loads(pickle.dumps(data))) == 10
    assert data.uri.endswith("st%FF")
    assert len(farhaul.open(data.uri)) == 10
    assert data.find("gone\udcff.jpg") is None


def test_a_sample_decodes_to_height_width_rgb(data):
    pixels = data[0].decode()
    assert pixels.shape == (30, 40, 3)
    assert pixels.dtype == np.uint8
    assert pixels.flags.writeable


def test_a_sample_that_is_no_picture_raises_with_its_key():
    sample = farhaul.Sample("a/b.jpg", 0, {}, b"<html></html>", {})
    with pytest.raises(errors.Unsupported) as caught:
        sample.decode()
    assert caught.value.key == "a/b.jpg"
    with pytest.raises(errors.UsageError, match="orientation"):
        sample.decode("up")


def test_a_sample_pickles(data):
    assert pickle.loads(pickle.dumps(data[7])) == data[7]


def test_a_data_set_pickles_to_its_configuration(data):
    pickled = pickle.dumps(data)
    assert len(pickled) < 1000
    again = pickle.loads(pickled)
    assert repr(again) == "<farhaul.Dataset, not yet open in this process>", "nothing is opened before it is used"
    assert again[3].key == data[3].key


def test_a_data_set_that_changed_on_the_way_is_an_error(tmp_path):
    root = image_folder(tmp_path / "images", 10)
    pickled = pickle.dumps(farhaul.open(root))
    (root / "class0" / "00000.jpg").unlink()
    with pytest.raises(errors.Incompatible, match="anew"):
        len(pickle.loads(pickled))


def test_what_is_not_there_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        farhaul.open(tmp_path / "nothing")
    assert isinstance(caught.value, errors.NotFound)
    assert caught.value.kind == "not_found"


def test_a_scheme_that_is_not_known_is_a_usage_error_that_says_what_was_meant():
    with pytest.raises(errors.UsageError, match="embedded"):
        farhaul.open("embeded:set")


def test_ingest_is_idempotent_and_reports(tmp_path, folder):
    first = farhaul.ingest(folder, tmp_path / "set")
    assert (first["samples"], first["skipped"], first["failed"], first["failures"]) == (101, 0, 0, [])
    again = farhaul.ingest(folder, f"embedded:{tmp_path / 'set'}")
    assert (again["samples"], again["skipped"]) == (0, 101)


def test_an_empty_file_fails_an_ingest_or_is_skipped(tmp_path):
    root = image_folder(tmp_path / "images", 10)
    (root / "class1" / "00001.jpg").write_bytes(b"")
    with pytest.raises(errors.EmptySample) as caught:
        farhaul.ingest(root, tmp_path / "set")
    assert caught.value.key == "class1/00001.jpg"
    report = farhaul.ingest(root, tmp_path / "set", on_error="skip")
    assert (report["samples"] + report["skipped"], report["failed"]) == (9, 1)
    assert [failure.key for failure in report["failures"]] == ["class1/00001.jpg"]
    with pytest.raises(errors.UsageError, match="on_error"):
        farhaul.ingest(root, tmp_path / "set", on_error="ignore")


def test_a_file_that_vanishes_is_an_error_that_names_it(tmp_path):
    root = image_folder(tmp_path / "images", 10)
    data = farhaul.open(root)
    (root / "class0" / "00000.jpg").unlink()
    with pytest.raises(errors.SampleVanished) as caught:
        data[0]
    assert (caught.value.key, caught.value.store) == ("class0/00000.jpg", f"folder:{root}")
    shutil.rmtree(root)
