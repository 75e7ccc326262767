"""A function called in a `try` binds a global after what may fail: the handler sees the old one."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
last = None


def step(batch):
    global last
    optimizer.zero_grad()
    loss = model(batch).sum()
    if loss > 1e6:
        raise ValueError("diverged")
    loss.backward()
    optimizer.step()
    last = loss.item()


def train():
    while True:
        step(torch.randn(2, 4))
        if last < -10:
            return


try:
    train()
except ValueError:
    print("the last good loss", last)
