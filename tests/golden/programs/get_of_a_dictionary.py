"""A dictionary is asked for something where queues of processes have a method of that name."""

from multiprocessing import cpu_count

import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
model = nn.Linear(4, {1: 2, 3: 1}.get(3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(torch.randn(64, 4), batch_size=8, num_workers=cpu_count())
for batch in loader:
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
