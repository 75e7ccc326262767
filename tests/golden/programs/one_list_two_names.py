"""Two names for one list: what the one changes, the other has."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
history = shown = []
for row in torch.randn(8, 4):
    optimizer.zero_grad()
    loss = model(row).sum()
    loss.backward()
    optimizer.step()
    history.append(loss.item())
print(shown)
