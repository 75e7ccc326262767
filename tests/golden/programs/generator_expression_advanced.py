"""A generator expression made before the loop and advanced in it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = (torch.randn(8, 4) for _ in range(100))
for step in range(20):
    batch = next(rows)
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
