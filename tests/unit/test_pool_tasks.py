"""Pools, with DETrain before them in this process: keys, turns, order, and all that stays as is."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import multiprocessing.pool
import queue
import random
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import (
    FIRST_COMPLETED,
    FIRST_EXCEPTION,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from functools import partial
from multiprocessing.pool import Pool, ThreadPool

import numpy as np
import pytest
import torch

from detrain.checkpoint import commit
from detrain.frameworks import held
from detrain.frameworks.calls import CALLS
from detrain.frameworks.find import positions_now, reposition
from detrain.plan import Plan, PlanItem
from detrain.rng import Address
from detrain.world.pools import idle, turns
from detrain.world.pools.drawing import drawing
from detrain.world.pools.install import Pools
from detrain.world.pools.judge import Judge, is_own

HELD = np.random.default_rng(9)


def owns(file):
    return file == __file__


def draw(number=0):
    return number, random.random(), float(np.random.standard_normal())


def draw_from_held(number):
    return float(HELD.random())


def double(number):
    return 2 * number


def fail(number):
    raise ValueError(f"number {number}")


def draw_then_submit(pool, number):
    first = random.random()
    inner = [each.result() for each in [pool.submit(draw, n) for n in range(2)]]
    return first, inner, random.random()


@pytest.fixture
def said():
    return []


@pytest.fixture
def pools(said):
    random.seed(4)
    np.random.seed(5)
    found = Pools(owns, None, said.append)
    found.start()
    yield found
    found.stop()


def test_all_is_python_s_own_again_when_the_run_is_over(said):
    def now():
        modules = (concurrent.futures, multiprocessing.pool)
        owners = (*modules, Pool, ThreadPool, ProcessPoolExecutor, ThreadPoolExecutor)
        return [dict(vars(each)) for each in owners]

    before = now()
    found = Pools(owns, None, said.append)
    found.start()
    assert now() != before
    found.stop()
    assert now() == before


def test_a_task_draws_by_its_number_and_the_main_thread_as_if_there_were_none(pools):
    with ThreadPoolExecutor(3) as pool:
        threads = list(pool.map(draw, range(4)))
        after = random.random()
    random.seed(4)
    np.random.seed(5)
    assert random.random() == after
    random.seed(4)
    CALLS.put({})
    with ProcessPoolExecutor(2) as pool:
        assert list(pool.map(draw, range(4), chunksize=3)) == threads


def test_calls_that_find_the_generators_at_one_place_are_told_apart(pools):
    with ThreadPoolExecutor(1) as pool:
        found = [pool.submit(draw).result() for _ in range(3)]
        at = positions_now()
        later = pool.submit(draw).result()
        assert len({*found, later}) == 4
        # As after a resume: the count goes on from what a checkpoint holds.
        reposition(at)
        assert pool.submit(draw).result() == later
        # Each framework goes by its own generator.
        np.random.seed(6)
        assert pool.submit(draw).result()[1] not in {each[1] for each in found}


def test_generators_that_a_function_reaches_are_keyed_in_processes(pools):
    found = []
    for workers, chunksize in ((1, 1), (3, 2)):
        CALLS.put({})
        with ProcessPoolExecutor(workers) as pool:
            found.append(list(pool.map(draw_from_held, range(5), chunksize=chunksize)))
    assert found[0] == found[1]
    assert len(set(found[0])) == 5


def test_a_task_may_submit_tasks_even_in_a_pool_of_one_thread(pools):
    found = []
    for workers in (1, 3):
        CALLS.put({})
        with ThreadPoolExecutor(workers) as pool:
            found.append([pool.submit(draw_then_submit, pool, n).result() for n in range(2)])
    assert found[0] == found[1]


def test_a_task_that_waits_for_the_main_thread_does_not_stand_still(pools, said, monkeypatch):
    monkeypatch.setattr(turns, "_PATIENCE", 0.2)
    given = queue.Queue()

    def wait_and_draw():
        return given.get(), random.random()

    random.seed(4)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(wait_and_draw)
        first = random.random()
        given.put("hello")
        assert future.result()[0] == "hello"
    assert "waits for something that other threads have to do" in said[0]
    random.seed(4)
    assert random.random() == first


def test_tasks_that_a_plan_does_not_see_draw_run_side_by_side(said):
    found = Pools(owns, Plan(), said.append)
    found.start()
    try:
        together = threading.Barrier(2, timeout=5)

        def meet(number):
            if number >= 3:
                together.wait()
            return number

        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(meet, range(5))) == [0, 1, 2, 3, 4]
            # One that does draw, though no plan says so, is seen to, and keeps its turns.
            drawn = list(pool.map(draw, range(6)))
        assert len(set(drawn)) == 6
        CALLS.put({})
    finally:
        found.stop()


def test_a_line_of_the_plan_is_found_through_names():
    line = draw.__code__.co_firstlineno + 1
    item = PlanItem("draw", "rekey", "", line, __file__)
    judge = Judge(Plan(items=(item,)), owns)
    assert judge.judge(draw_then_submit) == "turn"
    assert judge.judge(partial(draw, 3)) == "turn"
    assert judge.judge(double) == "trial"
    for _ in range(3):
        judge.tried(double, drew=False)
    assert judge.judge(double) == "free"
    assert Judge(None, owns).judge(double) == "turn"


def with_a_pool(number):
    with Pool(2) as pool:
        return pool.map(draw, range(number))


class Teller:
    def __init__(self):
        self.generator = random.Random(1)

    def say(self, text):
        pass


def test_what_stands_before_pools_is_not_taken_for_the_program():
    found = Pools(owns, None, Teller().say)
    found.start()
    try:
        assert held.look({"task": with_a_pool}).held == ()
        assert [each.path for each in held.look({"task": draw_from_held}).held] == ["HELD"]
    finally:
        found.stop()


def test_detrain_s_own_threads_are_left_alone(said):
    found = Pools(lambda file: True, None, said.append)
    found.start()
    before = positions_now()
    code = compile("pool.submit(int, 1).result()", commit.__file__, "exec")
    try:
        with ThreadPoolExecutor(1) as pool:
            exec(code, {"pool": pool})
    finally:
        found.stop()
    assert positions_now() == before


def test_functions_of_libraries_are_left_alone(pools):
    assert not is_own(queue.Queue, owns)
    assert is_own(partial(map, double), owns)
    before = positions_now()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(double, 1).result()
    assert positions_now() != before  # a call of the program's counts
    before = positions_now()
    code = compile("pool.submit(int, 1).result()", "library.py", "exec")
    with ThreadPoolExecutor(1) as pool:
        exec(code, {"pool": pool})
    assert positions_now() == before


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_errors_callbacks_and_shutdown_are_as_before(pools, kind):
    with kind(2) as pool:
        future = pool.submit(fail, 3)
        with pytest.raises(ValueError, match="number 3"):
            future.result()
        called = []
        pool.submit(double, 4).add_done_callback(lambda each: called.append(each.result()))
        with pytest.raises(ValueError, match="number 0"):
            list(pool.map(fail, range(2)))
        assert list(pool.map(double)) == []
        with pytest.raises(TypeError):
            pool.submit(double, 1, 2).result()
    assert called == [8]
    with pytest.raises(RuntimeError, match="after shutdown"):
        pool.submit(double, 1)


@pytest.mark.parametrize("kind", [Pool, ThreadPool])
def test_results_of_multiprocessing_pools_are_as_before(pools, kind):
    with kind(2) as pool:
        with pytest.raises(ValueError, match="number"):
            pool.map(fail, range(3))
        found = []
        pool.map_async(double, range(3), callback=found.append).wait()
        pool.apply_async(fail, (1,), error_callback=found.append).wait()
        assert found[0] == [0, 2, 4]
        assert str(found[1]) == "number 1"
        results = pool.imap(double, (n for n in range(3)))
        assert results.next() == 0
        assert list(results) == [2, 4]
        assert pool.starmap(divmod, [(7, 2)]) == [(3, 1)]
    with pytest.raises(ValueError, match="not running"):
        pool.map(double, range(2))


def test_what_cannot_be_sent_to_a_process_says_so_as_before(pools):
    with ProcessPoolExecutor(1) as pool, pytest.raises(Exception, match="pickle"):
        pool.submit(lambda: 1).result()


def later(number):
    time.sleep(0.15 - 0.05 * number)
    return number


def test_the_first_to_be_done_is_the_first_submitted(pools):
    with ProcessPoolExecutor(3) as pool:
        every = {pool.submit(later, n) for n in range(3)}
        done, others = concurrent.futures.wait(every, return_when=FIRST_COMPLETED)
        assert [each.result() for each in done] == [0]
        # Asked again with all of them, it comes to an end.
        done, others = concurrent.futures.wait(every, return_when=FIRST_COMPLETED)
        assert [each.result() for each in done] == [0, 1]
        done, others = concurrent.futures.wait(done | others)
        assert [each.result() for each in done] == [0, 1, 2]
        failing = [pool.submit(later, 0), pool.submit(fail, 1), pool.submit(later, 2)]
        done, others = concurrent.futures.wait(failing, return_when=FIRST_EXCEPTION)
        assert [failing.index(each) for each in done] == [0, 1]
        with pytest.raises(TimeoutError, match="1 \\(of 1\\)"):
            list(concurrent.futures.as_completed([pool.submit(time.sleep, 0.3)], timeout=0.01))


STARTED = None


def start(value):
    global STARTED
    STARTED = value, random.random()


def started(number):
    return STARTED


def test_initializers_draw_the_same_in_all_workers(pools):
    with ProcessPoolExecutor(3, initializer=start, initargs=(7,)) as pool:
        found = set(pool.map(started, range(9)))
    assert len(found) == 1
    assert found.pop()[0] == 7
    CALLS.put({})
    with Pool(2, start, (7,)) as pool:
        assert {each[0] for each in pool.map(started, range(9), 1)} == {7}


def test_a_checkpoint_waits_for_tasks_and_not_for_workers(pools):
    with ProcessPoolExecutor(2) as pool:
        pool.submit(later, 0)
        children = {each.pid for each in multiprocessing.active_children()}
        assert children <= idle.workers()
        assert idle.settle() == 0
        results = pool.map(later, range(3))
        started_at = time.monotonic()
        assert idle.settle() == 0
        assert time.monotonic() - started_at < 0.1  # those are asked for again
        assert list(results) == [0, 1, 2]


def test_a_task_that_does_not_end_is_counted(pools, monkeypatch):
    monkeypatch.setattr(idle, "_PATIENCE", 0.1)
    with ProcessPoolExecutor(1) as pool:
        pool.submit(time.sleep, 0.8)
        assert idle.settle() == 1
    assert idle.settle() == 0


def test_a_worker_that_is_spawned_needs_no_framework():
    code = (
        "import sys; import detrain.world.pools.task as task; "
        "task.Task(abs, {'': task.CALLS.next({})['']})(0, -1); "
        "sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0


def draw_late(number):
    return random.random() if number > 5 else number


def test_a_task_that_draws_beside_others_only_later_is_said_once_with_its_line(said):
    found = Pools(owns, Plan(()), said.append)
    found.start()
    try:
        with ThreadPoolExecutor(2) as pool:
            for number in range(12):
                pool.submit(draw_late, number).result()
            for number in range(100):  # the main thread draws, these tasks don't
                pool.submit(double, number)
                random.random()
    finally:
        found.stop()
    assert len(said) == 1
    line = draw_late.__code__.co_firstlineno
    assert f"draw_late ({__file__}:{line})" in said[0]
    assert "though its first tasks did not" in said[0]


def test_frameworks_that_go_by_one_key_have_nothing_in_common():
    with drawing({"": Address(1, 2)}):
        python = set(random.getstate()[1][:624])
        of_numpy = set(np.random.get_state()[1].tolist())
        in_memory = torch.default_generator.get_state()[24 : 24 + 8 * 624].numpy()
    of_torch = set(in_memory.view(np.uint64).tolist())
    assert len(python) == len(of_numpy) == len(of_torch) == 624
    assert len(python | of_numpy | of_torch) == 3 * 624


def test_tasks_of_both_kinds_of_pools_are_waited_for(monkeypatch):
    monkeypatch.setattr(idle, "_PATIENCE", 0.02)
    go = threading.Event()
    with ThreadPool(1) as pool:
        idle.made(pool)
        pool.apply_async(go.wait, (10,))
        assert idle.settle() == 1
        go.set()
        pool.close()
        pool.join()
        assert idle.settle() == 0
    monkeypatch.setattr(idle, "_pools", weakref.WeakSet())  # its pool may be gone
    future = concurrent.futures.Future()
    idle.submitted(future)
    assert idle.settle() == 1
    future.set_result(None)
    assert idle.settle() == 0
