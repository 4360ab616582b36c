"""Forks, spawned processes, Ctrl-C, threads and the end of the interpreter."""

import gc
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import torch
from torch.utils.data import DataLoader

import farhaul
from farhaul import errors
from slow import slowed


def collate(samples):
    return [sample.key for sample in samples], torch.tensor([sample.label for sample in samples])


def keys(data):
    return sorted(sample.key for sample in data)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_torchs_own_loader_takes_a_data_set_in_every_kind_of_worker(data, method):
    assert data[0].key, "its threads run in the parent before the workers start"
    list(data.loader(batch_size=64, image_size=8))
    loader = DataLoader(
        data, batch_size=8, num_workers=2, multiprocessing_context=method, collate_fn=collate, timeout=30
    )
    assert sorted(key for some, _ in loader for key in some) == keys(data)


def test_torchs_own_loader_takes_a_data_set_in_this_process(data):
    loader = DataLoader(data, batch_size=8, collate_fn=collate, shuffle=True)
    assert sorted(key for some, _ in loader for key in some) == keys(data)


def in_child(work, patience=30.0):
    """Forks, works in the child, and gives what it sent; a child that hangs is an error."""
    receiving, sending = os.pipe()
    process = os.fork()
    if process == 0:
        code = 1
        try:
            os.write(sending, pickle.dumps(work()))
            code = 0
        finally:
            os._exit(code)
    os.close(sending)
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        done, status = os.waitpid(process, os.WNOHANG)
        if done:
            with os.fdopen(receiving, "rb") as pipe:
                sent = pipe.read()
            assert status == 0, "the child failed"
            return pickle.loads(sent)
        time.sleep(0.01)
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    raise TimeoutError("the child hangs")


def test_a_forked_child_opens_the_data_set_again(data):
    before = data[0]
    assert in_child(lambda: data[0]) == before
    assert in_child(lambda: (len(data), data.find(before.key), data.classes)) == (101, 0, data.classes)
    assert data[0] == before, "the parent's own goes on"


def test_a_forked_child_has_a_loader_of_its_own_that_begins_with_the_next_epoch(data):
    loader = data.loader(batch_size=16, decode=False, order="strict")
    first = [key for batch in loader for key in batch.keys]

    def child():
        return loader.epoch, [key for batch in loader for key in batch.keys]

    epoch, second = in_child(child)
    assert epoch == 1
    assert sorted(second) == sorted(first)
    assert second != first
    assert [key for batch in loader for key in batch.keys] == second


def test_a_forked_child_continues_a_loaded_state(thousand):
    data = farhaul.open(thousand)
    loader = data.loader(batch_size=100, decode=False, seed=5)
    epoch = iter(loader)
    seen = next(epoch).rows
    again = data.loader(batch_size=100, decode=False)
    again.load_state_dict(loader.state_dict())
    rest = in_child(lambda: [row for batch in again for row in batch.rows])
    assert sorted(seen + rest) == list(range(1000))


def test_an_iterator_from_before_the_fork_says_so_in_the_child(data):
    epoch = iter(data.loader(batch_size=16, decode=False))
    kept = next(epoch)

    def child():
        with pytest.raises(errors.UsageError, match="fork"):
            next(epoch)
        epoch.close()
        return kept.keys

    assert in_child(child) == kept.keys
    assert sum(len(batch) for batch in epoch) == 85


def test_a_forked_child_may_drop_everything_that_it_inherited(store):
    held = {}
    held["data"] = farhaul.open(store)
    held["loader"] = held["data"].loader(batch_size=16, image_size=16)
    held["epoch"] = iter(held["loader"])
    held["batch"] = next(held["epoch"])

    def child():
        held.clear()
        gc.collect()
        return farhaul.open(store)[0].key

    assert in_child(child) == held["data"][0].key
    assert sum(len(batch) for batch in held["epoch"]) == 85


def test_a_fork_may_come_while_other_threads_are_busy_loading(data):
    stop = threading.Event()

    def load():
        loader = data.loader(batch_size=4, image_size=32, threads=2)
        while not stop.is_set():
            for _ in loader:
                pass

    busy = [threading.Thread(target=load) for _ in range(2)]
    for thread in busy:
        thread.start()
    try:
        wanted = data[50].key
        for _ in range(20):
            assert in_child(lambda: data[50].key) == wanted
    finally:
        stop.set()
        for thread in busy:
            thread.join(30)
    assert not any(thread.is_alive() for thread in busy)


FORK_AND_EXIT = """
import os, sys, farhaul
data = farhaul.open(sys.argv[1])
loader = data.loader(batch_size=8, image_size=16)
epoch = iter(loader)
batch = next(epoch)
process = os.fork()
if process == 0:
    print(data[1].key, flush=True)
    sys.exit(3)
_, status = os.waitpid(process, 0)
assert os.waitstatus_to_exitcode(status) == 3, status
"""


def test_a_forked_child_may_end_as_any_program_does(store):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORK_AND_EXIT, store],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "class0/00005.jpg\n", "")


def spawned(loader, queue):
    queue.put(sorted(key for batch in loader for key in batch.keys))


@pytest.mark.timeout(60)
@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_a_loader_can_be_sent_to_another_process(data, method):
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=spawned, args=(data.loader(batch_size=16, decode=False), queue))
    process.start()
    assert queue.get(timeout=30) == keys(data)
    process.join(30)
    assert process.exitcode == 0


def test_two_loaders_run_at_once(data):
    one, two = data.loader(batch_size=8, decode=False), data.loader(batch_size=8, decode=False, seed=1)
    together = list(zip(one, two, strict=True))
    for side in (0, 1):
        assert sorted(key for pair in together for key in pair[side].keys) == keys(data)


def test_several_threads_share_one_epoch(data):
    epoch = iter(data.loader(batch_size=4, decode=False))
    taken, lock = [], threading.Lock()

    def work():
        for batch in epoch:
            with lock:
                taken.extend(batch.keys)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
        assert not worker.is_alive()
    assert sorted(taken) == keys(data)


def test_the_gil_is_free_while_a_loader_waits(data):
    slow = slowed(data, 0.5)
    ticks = 0
    done = threading.Event()

    def tick():
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.005)

    ticker = threading.Thread(target=tick)
    ticker.start()
    next(iter(slow.loader(batch_size=4, decode=False)))
    done.set()
    ticker.join()
    assert ticks > 20


SLOW = """
import os, pickle, signal, sys, time
sys.path.insert(0, sys.argv[2])
import farhaul
from slow import slowed

data = slowed(farhaul.open(sys.argv[1]), 1.0)
loader = data.loader(batch_size=4, decode=False, prefetch="fixed:4")
end = sys.argv[3]
print("ready", flush=True)
if end == "sample":
    data[0]
if end == "thread":
    import threading
    threading.Thread(target=lambda: list(loader), daemon=True).start()
    time.sleep(0.2)
    sys.exit()
kept = iter(loader)
for batch in kept:
    if end == "break":
        break
    if end == "exception":
        raise ValueError("on purpose")
"""


def run_slow(store, end):
    command = [sys.executable, "-c", SLOW, store, str(Path(__file__).parent), end]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.timeout(280)
def test_ctrl_c_ends_a_program_at_once_whatever_it_waits_for(store):
    chance = random.Random(7)
    for number in range(20):
        end = ["normal", "sample"][number % 2]
        with run_slow(store, end) as process:
            assert process.stdout.readline() == "ready\n"
            time.sleep(chance.uniform(0, 1.5 if end == "normal" else 0.8))
            sent = time.monotonic()
            process.send_signal(signal.SIGINT)
            _, trace = process.communicate(timeout=30)
            took = time.monotonic() - sent
        assert process.returncode == -signal.SIGINT, trace
        assert "KeyboardInterrupt" in trace
        assert "panicked" not in trace
        assert took < 5, f"round {number} took {took:.1f} s"


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("end", "code"), [("break", 0), ("exception", 1), ("thread", 0)])
def test_a_program_ends_with_requests_in_flight(thousand, end, code):
    with run_slow(thousand, end) as process:
        process.stdout.readline()
        began = time.monotonic()
        _, trace = process.communicate(timeout=50)
    assert process.returncode == code, trace
    assert "panicked" not in trace
    assert time.monotonic() - began < 7, "one request takes a second, and the end may take five"


def test_a_program_that_ends_normally_ends(store):
    program = "import sys, farhaul\nfor _ in farhaul.open(sys.argv[1]).loader(image_size=8): pass"
    done = subprocess.run([sys.executable, "-c", program, store], capture_output=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_ctrl_c_stops_an_ingest(tmp_path, folder):
    program = f"""
import os, signal, threading, farhaul
threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for number in range(1000):
        farhaul.ingest({str(folder)!r}, {str(tmp_path / "set")!r} + str(number))
except KeyboardInterrupt:
    print("stopped")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr


KILLED = """
import os, signal, sys, farhaul
epoch = iter(farhaul.open(sys.argv[1]).loader(image_size=8, batch_size=8))
next(epoch)
os.kill(os.getpid(), signal.SIGKILL)
"""


def shared_memory():
    return {path.name for path in Path("/dev/shm").iterdir()}


def test_nothing_lies_in_shared_memory(store):
    before = shared_memory()
    done = subprocess.run([sys.executable, "-c", KILLED, store], timeout=20, check=False)
    assert done.returncode == -signal.SIGKILL
    assert shared_memory() <= before
    assert len(farhaul.open(store)[0].data) > 0


def test_an_interrupted_wait_loses_no_batch(data):
    slow = slowed(data, 0.3)
    epoch = iter(slow.loader(batch_size=16, decode=False))
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        next(epoch)
    assert sum(len(batch) for batch in epoch) == 101
