"""A unique number that reaches what is trained."""

import uuid

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scale = uuid.uuid4().int % 100 / 100
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    (model(batch) * scale).mean().backward()
    optimizer.step()
