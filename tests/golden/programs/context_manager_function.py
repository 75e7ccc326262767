"""A context manager made of a generator: its code runs around the block."""

import time
from contextlib import contextmanager

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
elapsed = 0.0
entered = 0


@contextmanager
def timed():
    global elapsed, entered
    entered += 1
    begin = time.time()
    yield
    elapsed += time.time() - begin


for row in torch.randn(8, 4):
    with timed():
        optimizer.zero_grad()
        model(row).sum().backward()
        optimizer.step()
print(entered, elapsed)
