"""Numbers from two generators, of which one is seeded."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    batch = torch.tensor(np.random.randn(8, 4), dtype=torch.float32)
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
