"""Fields by name: `getattr`, `setattr`, `__dict__`, and `__setattr__` of the project."""

import torch
from torch import nn


class State:
    def __init__(self):
        self.loss = 0.0
        self.best = 1e9

    def __setattr__(self, name, value):
        global changes
        changes += 1
        object.__setattr__(self, name, value)


changes = 0
torch.manual_seed(0)
state = State()
plain = nn.Module()
plain.seen = 0
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).mean() * getattr(state, "best")
    loss.backward()
    optimizer.step()
    setattr(state, "loss", loss.item())
    state.best = min(state.best, state.loss)
    plain.__dict__["seen"] += 1
print(changes, plain.seen)
