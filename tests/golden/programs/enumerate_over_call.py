"""`enumerate(f())` calls `f` once: what it binds is not bound anew in each iteration."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
position = 0


def rows():
    global position
    position = 0
    return torch.randn(8, 4)


for number, row in enumerate(rows()):
    optimizer.zero_grad()
    (model(row) * position).sum().backward()
    optimizer.step()
    position += number
