"""`exec` in the loop: any variable may be read or bound, so nothing is dropped."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
hook = open("hook.py").read()
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    exec(hook)
