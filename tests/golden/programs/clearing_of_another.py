"""Two optimizers of which one is cleared in a branch: gradients that stay may be stepped with."""

import torch
from torch import nn

torch.manual_seed(0)
first, second = nn.Linear(4, 4), nn.Linear(4, 1)
one = torch.optim.SGD(first.parameters(), lr=0.1)
other = torch.optim.SGD(second.parameters(), lr=0.1)
for step in range(20):
    one.zero_grad()
    if step % 2:
        other.zero_grad()
    second(first(torch.randn(8, 4))).sum().backward()
    one.step()
    other.step()
