"""A hook that the library keeps and calls: it reads a global and counts in another."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
strength = 1.0
calls = 0


def scaled(module, args, output):
    global calls
    calls += 1
    return output * strength


model.register_forward_hook(scaled)
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    strength = 1 / (1 + abs(loss.item()))
