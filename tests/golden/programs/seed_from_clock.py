"""A seed that is the time of day."""

import time

import torch
from torch import nn

torch.manual_seed(int(time.time()))
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
