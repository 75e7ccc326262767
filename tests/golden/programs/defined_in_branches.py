"""One name, two definitions: either may be called."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
first = second = 0

if len(sys.argv) > 1:

    def after(loss):
        global first
        first += loss

else:

    def after(loss):
        global second
        second += loss


for row in torch.randn(8, 4):
    optimizer.zero_grad()
    loss = model(row).sum()
    loss.backward()
    optimizer.step()
    after(loss.item())
print(first, second)
