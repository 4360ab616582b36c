"""A loader can stop anywhere and go on, with any ranks: every sample exactly once an epoch."""

import json
import os
import pickle
import signal
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import farhaul
from farhaul import errors


def take(loader, batches):
    epoch = iter(loader)
    rows = [row for _ in range(batches) for row in next(epoch).rows]
    epoch.close()
    return rows


@given(
    stages=st.lists(
        st.tuples(
            st.integers(1, 150), st.integers(1, 4), st.sampled_from(["arrival", "window", "strict"]), st.floats(0, 1)
        ),
        min_size=1,
        max_size=4,
    ),
    seed=st.integers(0, 1 << 32),
)
@settings(max_examples=30, deadline=None)
def test_any_stops_and_resumes_give_every_sample_exactly_once(thousand, stages, seed):
    data = farhaul.open(thousand)
    rows, state = [], None
    for number, (batch, ranks, order, share) in enumerate(stages):
        states = []
        for rank in range(ranks):
            loader = data.loader(
                batch_size=batch, decode=False, rank=rank, world_size=ranks, order=order, seed=seed, threads=1
            )
            if state is not None:
                loader.load_state_dict(state)
            length = len(loader)
            stop = length if number == len(stages) - 1 else int(length * share)
            if loader.epoch == 0:
                rows += take(loader, stop)
            states.append(json.loads(json.dumps(loader.state_dict())))
        state = farhaul.merge_states(states)
    assert sorted(rows) == list(range(1000))


def test_a_resumed_loader_knows_how_much_is_left(thousand):
    data = farhaul.open(thousand)
    loader = data.loader(batch_size=64, decode=False)
    assert len(loader) == 16
    first = take(loader, 5)
    again = data.loader(batch_size=64, decode=False)
    again.load_state_dict(loader.state_dict())
    assert (again.epoch, len(again)) == (0, 11)
    rest = take(again, 11)
    assert sorted(first + rest) == list(range(1000))
    assert (again.epoch, len(again)) == (1, 16)
    last = data.loader(batch_size=64, decode=False)
    last.load_state_dict(again.state_dict())
    assert (last.epoch, len(last)) == (1, 16), "a complete epoch is followed by the next"


def test_prefetched_samples_do_not_count_as_seen(thousand):
    loader = farhaul.open(thousand).loader(batch_size=10, decode=False, prefetch="fixed:64")
    take(loader, 3)
    state = loader.state_dict()
    assert state["handed_batches"] == 3


def test_a_state_is_small_json_and_has_two_names(thousand):
    loader = farhaul.open(thousand).loader(batch_size=7, decode=False)
    take(loader, 50)
    state = loader.get_state()
    assert state == loader.state_dict()
    assert len(json.dumps(state)) < 4096
    loader.set_state(state)
    assert loader.state_dict() == state


def test_a_state_says_which_epoch_was_set(thousand):
    loader = farhaul.open(thousand).loader(batch_size=100, decode=False)
    take(loader, 3)
    loader.set_epoch(5)
    state = loader.state_dict()
    assert (state["epoch"], state["handed_batches"]) == (5, 0)
    again = farhaul.open(thousand).loader(batch_size=100, decode=False)
    again.load_state_dict(state)
    assert (again.epoch, len(again)) == (5, 10)


def test_a_state_brings_its_seed(thousand):
    data = farhaul.open(thousand)
    loader = data.loader(batch_size=100, decode=False, seed=3, order="strict")
    take(loader, 10)
    other = data.loader(batch_size=100, decode=False, seed=4, order="strict")
    other.load_state_dict(loader.state_dict())
    assert take(other, 10) == take(loader, 10)


def test_a_state_of_something_else_is_refused(thousand, data):
    state = data.loader(decode=False).state_dict()
    with pytest.raises(errors.Incompatible, match="data set"):
        farhaul.open(thousand).loader(decode=False).load_state_dict(state)
    half = data.loader(batch_size=8, decode=False, rank=0, world_size=2).state_dict()
    with pytest.raises(errors.Incompatible, match="merge_states"):
        data.loader(batch_size=8, decode=False).load_state_dict(half)
    with pytest.raises(errors.Incompatible):
        farhaul.merge_states([half])
    with pytest.raises(errors.UnknownVersion):
        data.loader().load_state_dict(state | {"version": 99})
    with pytest.raises(errors.Malformed):
        data.loader().load_state_dict({"epoch": 3})


def test_an_iterator_of_before_does_not_speak_for_the_loader_any_more(thousand):
    loader = farhaul.open(thousand).loader(batch_size=100, decode=False)
    old = iter(loader)
    next(old)
    new = iter(loader)
    next(old)
    next(new)
    assert (loader.state_dict()["epoch"], loader.state_dict()["handed_batches"]) == (1, 1)


def test_a_pickled_loader_stands_where_it_stood(thousand):
    loader = farhaul.open(thousand).loader(batch_size=100, decode=False, order="strict", seed=9)
    first = take(loader, 4)
    again = pickle.loads(pickle.dumps(loader))
    assert len(again) == 6
    assert sorted(first + take(again, 6)) == list(range(1000))
    loader.set_epoch(7)
    assert pickle.loads(pickle.dumps(loader)).epoch == 7


KILLED = """
import json, sys, farhaul
uri, rank, state = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
loader = farhaul.open(uri).loader(batch_size=10, decode=False, rank=rank, world_size=2, threads=3)
if state:
    loader.load_state_dict(state)
for batch in loader:
    print(json.dumps([batch.rows, loader.state_dict()]), flush=True)
    sys.stdin.readline()
"""


def killed_after(uri, rank, state, batches):
    """Runs a rank, kills it after so many batches, and gives the rows that it printed and its state then."""
    command = [sys.executable, "-c", KILLED, uri, str(rank), json.dumps(state)]
    rows = []
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        for _ in range(batches):
            line = process.stdout.readline()
            if not line:
                break
            more, state = json.loads(line)
            rows += more
            process.stdin.write("\n")
            process.stdin.flush()
        os.kill(process.pid, signal.SIGKILL)
    return rows, state


@pytest.mark.parametrize("batches", [1, 7, 23])
def test_after_kill_nine_each_key_comes_exactly_once(thousand, batches):
    rows = []
    for rank in range(2):
        first, state = killed_after(thousand, rank, None, batches)
        rest, _ = killed_after(thousand, rank, state, 1000)
        rows += first + rest
    assert sorted(rows) == list(range(1000))
