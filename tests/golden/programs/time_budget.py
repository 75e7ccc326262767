"""The clock decides when training stops: a warning, and the answers are recorded."""

import time

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
begin = time.monotonic()
for batch in torch.randn(2000, 8, 4):
    optimizer.zero_grad()
    model(batch).pow(2).mean().backward()
    optimizer.step()
    if time.monotonic() - begin > 60:
        break
