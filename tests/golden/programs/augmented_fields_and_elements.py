"""Sums in fields, elements and another module's names, of what the analysis can't know to be numbers."""

import torch
from torch import nn

import somewhere

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
stats = {"loss": somewhere.start()}


class Meter:
    def __init__(self):
        self.total = 0
        self.peak = somewhere.start()

    def add(self, value):
        self.total += value
        self.peak += somewhere.weight(value)


meter = Meter()
for batch in torch.randn(8, 2, 4):
    optimizer.zero_grad()
    loss = model(batch).sum()
    loss.backward()
    optimizer.step()
    meter.add(loss)
    stats["loss"] += somewhere.weight(loss)
print(stats, meter.total, meter.peak)
