"""`torch.empty` as a parameter that is filled before it is used: nothing to warn of."""

import torch
from torch import nn

torch.manual_seed(0)
weight = nn.Parameter(torch.empty(4, 1))
nn.init.xavier_uniform_(weight)
optimizer = torch.optim.SGD([weight], lr=0.1)
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    (batch @ weight).mean().backward()
    optimizer.step()
