"""The optimizer that is cleared is not the one that steps: a name is bound anew in between."""

import torch
from torch import nn

torch.manual_seed(0)
models = [nn.Linear(4, 1), nn.Linear(4, 1)]
optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in models]
optimizer = optimizers[0]
for step in range(20):
    optimizer.zero_grad()
    optimizer = optimizers[(step + 1) % 2]
    sum(model(torch.randn(8, 4)).sum() for model in models).backward()
    optimizer.step()
