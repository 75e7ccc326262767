"""A walrus in a comprehension binds a name of the function around it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
last = 0.0
for batch in torch.randn(20, 8, 4):
    big = [last := row.sum().item() for row in batch if row.sum() > 3]
    optimizer.zero_grad()
    loss = model(batch).mean() * (1 + last) + len(big)
    loss.backward()
    optimizer.step()
