"""A name that is deleted, one bound in a branch only, and a loop that may run no time."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scratch = torch.zeros(1)
for number, batch in enumerate(torch.randn(20, 8, 4)):
    optimizer.zero_grad()
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    if number % 2:
        seldom = loss.item()
    for argument in sys.argv:
        inner = argument
    if number > 2:
        print(seldom, inner)
    del scratch
    scratch = loss
