"""A generator that binds a global first, and reads it when it is gone on with."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
hard = 0.0


def batches(data):
    global hard
    hard = 0.0
    for row in data:
        yield row * hard


for row in batches(torch.randn(10, 4)):
    optimizer.zero_grad()
    loss = model(row).sum()
    loss.backward()
    optimizer.step()
    hard = loss.item()
