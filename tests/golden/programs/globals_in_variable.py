"""The dictionary of global variables under a name of its own: nothing may be dropped."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
names = globals()
best = None
for row in torch.randn(8, 4):
    optimizer.zero_grad()
    loss = model(row).sum()
    loss.backward()
    optimizer.step()
    names["best"] = loss.item()
print(best)
