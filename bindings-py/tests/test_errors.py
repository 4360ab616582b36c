"""Exceptions are classes by kind, and carry what is known."""

import inspect
import pickle
import re
from pathlib import Path

import pytest

from farhaul import errors

CLASSES = [found for _, found in inspect.getmembers(errors, inspect.isclass) if issubclass(found, errors.FarhaulError)]


def test_every_kind_of_the_native_half_has_its_class():
    source = (Path(__file__).parents[1] / "src" / "error.rs").read_text()
    named = set(re.findall(r"^    \w+ => (\w+),$", source, re.MULTILINE))
    assert named == {found.__name__ for found in CLASSES} - {"FarhaulError", "SampleError"}


def test_no_two_classes_have_one_kind():
    kinds = [found.kind for found in CLASSES if found.__name__ not in {"FarhaulError", "SampleError"}]
    assert len(set(kinds)) == len(kinds)


@pytest.mark.parametrize("found", CLASSES)
def test_an_error_survives_pickling_with_all_that_it_knows(found):
    error = found("fetch: it is gone (sample a.jpg)", "fetch", "a.jpg", "embedded:set", "look again", transient=True)
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is found
    assert vars(again) == vars(error)
    assert str(again) == "fetch: it is gone (sample a.jpg)\nhint: look again"


@pytest.mark.parametrize(
    ("found", "builtin"),
    [
        (errors.NotFound, FileNotFoundError),
        (errors.UsageError, ValueError),
        (errors.Timeout, TimeoutError),
        (errors.PermissionDenied, PermissionError),
        (errors.Unavailable, ConnectionError),
        (errors.DiskFull, OSError),
    ],
)
def test_what_python_has_a_class_for_is_that_too(found, builtin):
    with pytest.raises(builtin):
        raise found("message")
