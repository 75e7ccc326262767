"""`contextlib.suppress` around a step: what stands in it may not happen."""

from contextlib import suppress

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.randn(2, 4) for _ in range(8)]
good = None
for batch in batches:
    with suppress(ValueError):
        optimizer.zero_grad()
        loss = model(batch).sum()
        loss.backward()
        optimizer.step()
        good = loss.item()
    print(good)
