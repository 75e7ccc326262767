"""Star arguments and keyword spreading: what is changed through them is changed."""

import torch
from torch import nn


class Stats:
    def __init__(self):
        self.seen = 0


def step(model, optimizer, stats, row, scale=1.0):
    optimizer.zero_grad()
    (model(row) * scale).sum().backward()
    optimizer.step()
    stats.seen = stats.seen + 1


torch.manual_seed(0)
net = nn.Linear(4, 1)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
stats = Stats()
together = (net, sgd, stats)
options = {"scale": 0.5}
for row in torch.randn(8, 4):
    step(*together, row, **options)
print(stats.seen)
