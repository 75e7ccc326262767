"""A global that is set through the module's own object: nothing may be dropped."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
me = sys.modules[__name__]
seen = 0
for row in torch.randn(10, 4):
    optimizer.zero_grad()
    model(row).sum().backward()
    optimizer.step()
    me.seen = row.sum().item()
print(seen)
