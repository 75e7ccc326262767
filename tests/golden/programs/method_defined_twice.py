"""A method that is one of two, as something decides: both count."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = other = 0


class Counter:
    if sys.argv[1:]:

        def add(self):
            global seen
            seen += 1

    else:

        def add(self):
            global other
            other += 1


counter = Counter()
for row in torch.randn(10, 4):
    optimizer.zero_grad()
    model(row).sum().backward()
    optimizer.step()
    counter.add()
print(seen, other)
