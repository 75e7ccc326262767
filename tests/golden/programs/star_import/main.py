"""Names that come with a star: the module's own are not the script's."""

import torch
from torch import nn
from tools import *

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    count(loss.item())
    history.append(loss.item())
    rate = loss.item()
show()
print(rate)
