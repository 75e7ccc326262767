"""Trains on batches that a pool makes ahead, with a pool that lives as long as the run."""

import random
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor, as_completed

import numpy as np
import torch
from torch import nn

held = np.random.default_rng(5)


def batch(step):
    return torch.randn(8, 4) + float(np.random.rand()) + random.random() + step


def score(number):
    return float(np.random.normal()) + number


def main(kind, workers):
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.3), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    pool = (ProcessPoolExecutor if kind == "processes" else ThreadPoolExecutor)(workers)
    ahead = pool.submit(batch, 0)
    total = 0.0
    for step in range(10):
        inputs = ahead.result()
        ahead = pool.submit(batch, step + 1)
        optimizer.zero_grad()
        loss = model(inputs).pow(2).mean()
        loss.backward()
        optimizer.step()
        for future in as_completed({pool.submit(score, number) for number in range(3)}):
            total = total * 0.5 + future.result()
        print(step, loss.item(), total, random.random())
    pool.shutdown()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
