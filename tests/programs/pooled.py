"""Draws in the tasks of every kind of pool; what comes out is printed as one digest.

pooled.py KIND WORKERS CHUNKSIZE START [torch]
"""

import hashlib
import json
import multiprocessing
import random
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import numpy as np

if "torch" in sys.argv:
    import torch
else:
    torch = None


def drawn(number):
    """One of each generator; the last two are made without a seed."""
    numbers = [random.random(), float(np.random.standard_normal())]
    numbers += [float(np.random.default_rng().random()), random.Random().random()]
    return number, numbers + ([float(torch.rand(()))] if torch is not None else [])


def sum_of(first, second):
    return drawn(first + second)


def by_executor(pool, chunksize):
    found = list(pool.map(drawn, range(7), chunksize=chunksize))
    found += pool.map(sum_of, range(5), range(5), chunksize=chunksize)
    return found + [each.result() for each in [pool.submit(drawn, n) for n in range(4)]]


def by_pool(pool, chunksize):
    found = pool.map(drawn, range(7), chunksize)
    found += pool.starmap(sum_of, enumerate(range(5)), chunksize)
    return found + [each.get() for each in [pool.apply_async(drawn, (n,)) for n in range(4)]]


def by_iterating(pool, chunksize):
    found = list(pool.imap(drawn, range(7), chunksize))
    found += pool.starmap_async(sum_of, list(enumerate(range(5))), chunksize).get()
    return found + [pool.apply(drawn, (n,)) for n in range(4)]


def main(kind, workers, chunksize, start):
    context = multiprocessing.get_context(start)
    makers = {
        "processes": lambda: ProcessPoolExecutor(workers, mp_context=context),
        "threads": lambda: ThreadPoolExecutor(workers),
        "pool": lambda: context.Pool(workers),
        "imap": lambda: context.Pool(workers),
        "threadpool": lambda: ThreadPool(workers),
        "thread imap": lambda: ThreadPool(workers),
    }
    ways = {"processes": by_executor, "threads": by_executor, "none": lambda *_: []}
    way = ways.get(kind, by_iterating if "imap" in kind else by_pool)
    tasks, own = [], []
    for _ in range(2):
        if kind == "none":
            tasks.append([])
        else:
            with makers[kind]() as pool:
                tasks.append(way(pool, chunksize))
                tasks.append(way(pool, chunksize))
        own += [random.random(), float(np.random.standard_normal())]
        own += [float(torch.rand(()))] if torch is not None else []
    every = [numbers for group in tasks for _, numbers in group]
    assert len({json.dumps(each) for each in every}) == len(every), "two tasks drew the same"
    print("tasks", hashlib.sha256(json.dumps(tasks).encode()).hexdigest())
    print("own", hashlib.sha256(json.dumps(own).encode()).hexdigest())


if __name__ == "__main__":
    random.seed(1)
    np.random.seed(2)
    if torch is not None:
        torch.manual_seed(3)
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
