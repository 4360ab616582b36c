"""Odd files, made and found: what comes of each is what its table says."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import farhaul
from farhaul import errors

GENERATOR = Path(__file__).parents[2] / "conformance" / "cases" / "generate_cases.py"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder of generated cases and their table."""
    root = tmp_path_factory.mktemp("cases") / "made"
    subprocess.run([sys.executable, GENERATOR, root], check=True, capture_output=True)
    return root, json.loads((root / "manifest.json").read_text())["cases"]


def complaint(outcome, expected):
    """What is wrong with an outcome, or nothing."""
    wanted = expected["outcome"]
    if isinstance(outcome, errors.FarhaulError):
        if wanted not in {"error", "either"}:
            return f"{outcome!r} instead of {wanted}"
        return None if outcome.key else f"{outcome!r} names no sample"
    if wanted in {"error", "absent"}:
        return f"delivered, but {wanted} is right"
    if "mean" not in expected:
        return None
    height, width, _ = outcome.shape
    if (width, height) != (expected["w"], expected["h"]):
        return f"{width}x{height} instead of {expected['w']}x{expected['h']}"
    mean = outcome.reshape(-1, 3).mean(axis=0)
    if np.abs(mean - expected["mean"]).max() > expected["tol"] + 0.01:
        return f"mean {mean} instead of {expected['mean']}"
    return None


def outcome_of(sample):
    try:
        return sample.decode()
    except errors.FarhaulError as error:
        return error


def test_generated_pictures_decode_or_fail_as_they_should(made):
    root, cases = made
    wrong = []
    looked = 0
    for case in cases:
        if case["kind"] != "image":
            continue
        for expected in case["samples"]:
            name = Path(case["path"]).name
            sample = farhaul.Sample(name, 0, {}, (root / case["path"]).read_bytes(), {})
            looked += 1
            if said := complaint(outcome_of(sample), expected):
                wrong.append(f"{case['name']}: {said}")
    assert looked > 30
    assert wrong == []


def test_generated_folders_load_or_fail_as_they_should(made):
    root, cases = made
    wrong = []
    looked = 0
    for case in cases:
        if case["kind"] != "imagefolder":
            continue
        data = farhaul.open(root / case["path"])
        expected = {sample["key"]: sample for sample in case["samples"] if sample["outcome"] != "absent"}
        by_key = dict.fromkeys(expected)
        loader = data.loader(batch_size=4, on_error="skip", output="numpy")
        for batch in loader:
            for key, image, label in zip(batch.keys, batch.images, batch.labels.tolist(), strict=True):
                by_key[key] = image
                if key in expected and label != expected[key]["label"]:
                    wrong.append(f"{case['name']} {key}: label {label} instead of {expected[key]['label']}")
        for failure in loader.failures:
            by_key[failure.key] = failure.error
        for key, outcome in by_key.items():
            looked += 1
            if key not in expected:
                # A link to a folder shows that folder's bad files a second time.
                if not isinstance(outcome, errors.FarhaulError):
                    wrong.append(f"{case['name']} {key}: is no sample")
            elif outcome is None:
                wrong.append(f"{case['name']} {key}: is missing")
            elif said := complaint(outcome, expected[key]):
                wrong.append(f"{case['name']} {key}: {said}")
    assert looked > 20
    assert wrong == []


def test_generated_tars_load_or_fail_as_they_should(made, tmp_path):
    root, cases = made
    wrong = []
    looked = 0
    for case in cases:
        if case["kind"] != "tar" or case.get("shard_outcome", "ok") != "ok":
            continue
        place = root / case["path"]
        expected = {sample["key"]: sample for sample in case["samples"] if sample["outcome"] != "absent"}
        if "gz" in case["name"]:
            with pytest.raises(errors.Unsupported, match="ingest it"):
                farhaul.open(place)
            farhaul.ingest(place, tmp_path / case["name"])
            place = tmp_path / case["name"]
        data = farhaul.open(place)
        loader = data.loader(batch_size=4, on_error="skip", output="numpy")
        found = {}
        for batch in loader:
            found |= dict(zip(batch.keys, batch.images, strict=True))
        found |= {failure.key: failure.error for failure in loader.failures}
        # The table leaves the shard out of its keys.
        found = {key.split("/", 1)[1]: outcome for key, outcome in found.items()}
        for key, sample in expected.items():
            looked += 1
            outcome = found.get(key)
            if outcome is None:
                if sample["outcome"] == "ok":
                    wrong.append(f"{case['name']} {key}: is missing among {sorted(found)}")
            elif said := complaint(outcome, sample):
                wrong.append(f"{case['name']} {key}: {said}")
    assert looked > 10
    assert wrong == []


def test_generated_mds_sets_are_ingested_whole_or_not_at_all(made, tmp_path):
    root, cases = made
    sets = {case["name"]: case for case in cases if case["kind"] == "mds"}
    farhaul.ingest(root / sets["mds_control"]["path"], tmp_path / "set")
    data = farhaul.open(tmp_path / "set")
    assert len(data) == 5
    wrong = [complaint(outcome_of(sample), sets["mds_control"]["samples"][row]) for row, sample in enumerate(data)]
    assert wrong == [None] * 5
    with pytest.raises(errors.FarhaulError, match=r"shard\.\d+\.mds"):
        farhaul.ingest(root / sets["mds_missing_shard"]["path"], tmp_path / "half")
    with pytest.raises(errors.NotFound):
        farhaul.open(tmp_path / "half")


def test_pictures_from_the_wild_decode_or_fail_as_they_should(odd_files):
    if odd_files is None:
        return
    with (odd_files / "index.tsv").open(newline="", encoding="utf-8") as table:
        rows = list(csv.DictReader(table, delimiter="\t", quoting=csv.QUOTE_NONE))
    wrong = []
    looked = 0
    for row in rows:
        if row["expected"] not in {"ok", "error", "either"} or row["name"].endswith((".tar", ".tgz")):
            continue
        expected = {"outcome": row["expected"]}
        if row["mean_RGB"].count(",") == 2:
            width, height, _ = row["WxHxC_stored"].split("x")
            mean = [float(part) for part in row["mean_RGB"].split(",")]
            expected |= {"w": int(width), "h": int(height), "mean": mean, "tol": float(row["tolerance"])}
        sample = farhaul.Sample(row["name"], 0, {}, (odd_files / row["name"]).read_bytes(), {})
        looked += 1
        if said := complaint(outcome_of(sample), expected):
            wrong.append(f"{row['name']}: {said}")
    assert looked > 15
    assert wrong == []
