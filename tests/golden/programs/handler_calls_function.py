"""The handler calls a function that reads a global: its old value, if the step failed."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = None


def report():
    print("best", best)


try:
    while True:
        optimizer.zero_grad()
        loss = model(torch.randn(2, 4)).sum()
        loss.backward()
        optimizer.step()
        best = loss.item()
        if best < -10:
            break
except ValueError:
    report()
    sys.exit(1)
