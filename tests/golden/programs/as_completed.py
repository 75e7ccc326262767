"""Batches in the order in which threads have made them."""

from concurrent.futures import ThreadPoolExecutor, as_completed

import torch
from torch import nn


def load(number):
    return torch.full((8, 4), float(number))


torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with ThreadPoolExecutor(4) as pool:
    futures = [pool.submit(load, number) for number in range(20)]
    for future in as_completed(futures):
        optimizer.zero_grad()
        model(future.result()).mean().backward()
        optimizer.step()
