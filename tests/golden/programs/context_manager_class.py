"""A context manager with state of its own, made anew for each block."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
blocks = 0


class Counting:
    def __init__(self, into):
        self.into = into

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        global blocks
        blocks += 1
        self.into.append(blocks)


log = []
for row in torch.randn(8, 4):
    with Counting(log):
        optimizer.zero_grad()
        model(row).sum().backward()
        optimizer.step()
print(blocks, log)
