"""A function for the end of the program: what it reads lives on, though no line shows it."""

import atexit

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
last = None
atexit.register(lambda: print("last loss", last))
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    last = loss.item()
