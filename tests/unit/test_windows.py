"""Arrays that two threads copy, each window once; and what a run makes of it."""

from __future__ import annotations

import ctypes
import random
import threading
import time

import pytest
import torch

import detrain
from detrain.checkpoint import buffers
from detrain.checkpoint import windows as windows_module
from detrain.checkpoint.buffers import Arena, Places
from detrain.checkpoint.commit import manifest_steps, read_checkpoint
from detrain.checkpoint.copying import Copying, Pace
from detrain.checkpoint.reading import verified_arrays
from detrain.checkpoint.store import LocalStore
from detrain.checkpoint.windows import Abandoned, Late, Row, Windows
from detrain.trace.digest import digest_array

WINDOW = 1000


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    monkeypatch.setattr(windows_module, "WINDOW", WINDOW)


def made(sizes, seed=0, passing=None, places=1):
    """Windows over arrays of some sizes, those arrays, and the block."""
    passing = len(sizes) if passing is None else passing
    draw = random.Random(seed)
    sources = [ctypes.create_string_buffer(draw.randbytes(size), size) for size in sizes]
    block = memoryview(bytearray(sum(sizes)))
    late = [Late(str(n), ctypes.addressof(each), len(each)) for n, each in enumerate(sources)]
    return (
        Windows(Row(late, passing), block, memoryview(bytearray(places * WINDOW)), Places(places)),
        sources,
        block,
    )


def test_the_writer_alone():
    windows, sources, block = made([2500, 10, 990, 7, 3000])
    found = b"".join(map(bytes, windows.pieces()))
    assert found == b"".join(source.raw for source in sources)
    assert windows.digests == {str(n): digest_array(s.raw) for n, s in enumerate(sources)}
    assert bytes(block) == bytes(len(block))
    assert windows.left() == 0
    assert not windows.copy_last()


def test_up_to_an_array_the_rest_is_in_the_block():
    windows, sources, block = made([2500, 3000], passing=1)
    while not windows.may_rest():
        assert windows.copy_last()
    found = b"".join(map(bytes, windows.pieces()))
    assert found == sources[0].raw
    assert list(windows.digests) == ["0"]
    assert windows.is_copied(1)
    assert bytes(block[2500:]) == sources[1].raw


@pytest.mark.parametrize(
    ("spent", "places"),
    [
        ([3, 3, 3, 3, 3, 3], [0, 0, 0, 0, 0, 0]),
        ([8, 3, 3, 8, 3, 3], [0, 0, 0, 0, 0, 0]),
        ([3, 10, 3, 3, 3, 3], [0, 0, 1, 2, 0, 0]),
        ([3, 3, 3, 10, 3, 3], [0, 0, 0, 0, 1, 2]),
        # It is tried again, after twice as many each time, until it is over.
        ([3, 10, *[3] * 3, 10, *[3] * 6, 3, 3, 10], [0, 0, 1, 2, 0, 0, 1, 2, 0, 1, 2, 0, 0, 0, 0]),
        ([3, 10, *[3] * 4, 10, *[3] * 3], [0, 0, 1, 2, 0, 0, 0, 1, 2, 0]),
    ],
)
def test_where_to_fill_a_place_again_takes_long_it_goes_round(monkeypatch, spent, places):
    monkeypatch.setattr(buffers, "_TRIAL", 3)
    chosen, found = Places(3), []
    for seconds in spent:
        found.append(chosen.next())
        chosen.filled(seconds)
    assert found == places


def test_one_place_is_enough():
    chosen = Places(1)
    for seconds in (1, 9, 1, 1):
        assert chosen.next() == 0
        chosen.filled(seconds)


def test_no_two_pieces_that_follow_lie_in_one_place_where_that_takes_long(monkeypatch):
    windows, sources, _ = made([7 * WINDOW], places=3)
    times = iter([0, 1, 1, 9, *range(9, 40)])
    monkeypatch.setattr(windows_module, "thread_time", lambda: next(times))
    room, at = windows_module.address_of(windows._room), windows_module.address_of
    pieces = [(at(piece) - room, bytes(piece)) for piece in windows.pieces()]
    assert [at // WINDOW for at, _ in pieces] == [0, 0, 1, 2, 0, 1, 2]
    assert b"".join(piece for _, piece in pieces) == sources[0].raw


@pytest.mark.parametrize("seed", range(20))
def test_both_at_once(seed):
    draw = random.Random(seed)
    sizes = [draw.randrange(1, 5000) for _ in range(30)]
    windows, sources, _ = made(sizes, seed, places=1 + seed % 3)

    def copy():
        while windows.copy_last():
            time.sleep(draw.random() / 2000)

    other = threading.Thread(target=copy)
    other.start()
    found = b""
    for piece in windows.pieces():
        found += bytes(piece)
        time.sleep(draw.random() / 2000)
    other.join()
    assert found == b"".join(source.raw for source in sources)
    assert windows.digests == {str(n): digest_array(s.raw) for n, s in enumerate(sources)}


def test_what_is_stopped_is_abandoned():
    windows, _, _ = made([5000])
    pieces = windows.pieces()
    next(pieces)
    windows.stop()
    with pytest.raises(Abandoned):
        next(pieces)
    with pytest.raises(Abandoned):
        windows.wait_for(0)
    assert not windows.copy_last()


@pytest.mark.parametrize("who", ["the writer waits for a window", "the rest waits for the writer"])
def test_each_waits_for_what_the_other_has_begun(monkeypatch, who):
    windows, sources, _ = made([WINDOW])
    begun, go_on, done = threading.Event(), threading.Event(), []

    def waiting(plain):
        def copy(*args):
            begun.set()
            go_on.wait()
            plain(*args)

        return copy

    monkeypatch.setattr(Windows, "_copy", waiting(Windows._copy))
    monkeypatch.setattr(windows_module, "digest_copy", waiting(windows_module.digest_copy))
    ways = [windows.copy_last, lambda: done.append(b"".join(map(bytes, windows.pieces())))]
    if who.startswith("the rest"):
        ways = [ways[1], lambda: (windows.wait_for_front(), done.append("waited"))]
    threads = [threading.Thread(target=way, daemon=True) for way in ways]
    threads[0].start()
    begun.wait()
    threads[1].start()
    threads[1].join(0.2)
    assert threads[1].is_alive()
    go_on.set()
    for thread in threads:
        thread.join()
    assert sources[0].raw in done


def test_who_rests_is_woken_before_and_after():
    """That time is short may be said before the rest begins: it must not begin then."""
    for first in (True, False):
        windows, _, _ = made([5000])
        if first:
            windows.hasten()
        else:
            threading.Timer(0.05, windows.hasten).start()
        began = time.monotonic()
        windows.rest(60)
        assert time.monotonic() - began < 30


def test_there_is_time_if_the_shortest_of_the_last_was_long_enough():
    pace = Pace()
    assert pace.spare(10**8) == 0.0
    pace.copied(10**9, 1.0)
    assert pace.spare(10**8) == 0.0
    for seconds in (0.1, 1.0, 0.5, 2.0):
        pace.wanted_after(seconds)
    assert pace.spare(10**8) == pytest.approx(0.8 * 0.5 - 1.5 * 0.1)
    assert pace.spare(10**9) < 0


@pytest.mark.parametrize("started", [False, True])
def test_a_copy_that_is_given_up_tells_nothing_of_the_pace_and_nobody_waits_for_it(started):
    pace = Pace()
    copying = Copying(Row([Late("x", 0, 0)]), Arena().turn(0), pace)
    copying.begin()
    if started:
        copying.start()
    copying.cancel()
    copying.start()  # who writes may come late
    copying.finish()
    assert not pace._times


@pytest.mark.parametrize("slow_disk", [False, True])
def test_a_run_whose_arrays_are_written_from_where_they_lie(tmp_path, monkeypatch, slow_disk):
    """Each checkpoint has the bytes of its step, whoever copied them."""
    passed, copied = [], []
    plain, plain_digest = Windows._copy, windows_module.digest_copy

    def copy(self, number, into):
        copied.append(number)
        plain(self, number, into)

    def digest_copy(running, into, source):
        passed.append(source)
        plain_digest(running, into, source)
        if slow_disk:
            time.sleep(0.01)

    monkeypatch.setattr(windows_module, "WINDOW", 256 << 10)
    monkeypatch.setattr(Windows, "_copy", copy)
    monkeypatch.setattr(windows_module, "digest_copy", digest_copy)
    # Whatever else this machine does: there is time for some of it, or for all.
    monkeypatch.setattr(Pace, "spare", lambda self, _: 0.03 if slow_disk else 9.0)
    model = torch.nn.Linear(1500, 1500)
    optimizer = torch.optim.Adam(model.parameters())
    weights, options = [], {"save_every": 1, "digest_every": 0, "keep": 99}
    with detrain.run(name="run", seed=1, runs=tmp_path, **options) as run:
        for _ in run.loop(range(8), model=model, optimizer=optimizer):
            weights.append(model.weight.detach().clone())
            if len(weights) == 4:  # by now it is known what changes
                passed.clear()
                copied.clear()
            model(torch.ones(1, 1500)).sum().backward()
            time.sleep(0.1)
            optimizer.step()
            optimizer.zero_grad()
    store = LocalStore(tmp_path / "run" / "checkpoints")
    steps = manifest_steps(store)
    assert steps[-1] == 7
    for step in steps:
        state = read_checkpoint(store, step).levels[-1].state
        found = verified_arrays(store, state)["model.weight"]
        assert bytes(found) == weights[step].numpy().tobytes(), step
    assert len(passed) > 5
    assert len(copied) > 5 or not slow_disk
