"""A lambda that keeps what it has seen in a default argument."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
smooth = lambda value, seen=[]: (seen.append(value), sum(seen) / len(seen))[1]  # noqa: E731
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    print(smooth(loss.item()))
