"""Gradients that are gathered over four batches: they are carried over the cut."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
optimizer.zero_grad()
for step, batch in enumerate(torch.randn(20, 8, 4)):
    loss = model(batch).pow(2).mean() / 4
    loss.backward()
    if (step + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
