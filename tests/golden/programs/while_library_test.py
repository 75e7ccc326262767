"""A `while` whose test is a library's answer and reads nothing here: it does end."""

import torch
from torch import nn

import somewhere

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
best = 1e9
while somewhere.running():
    optimizer.zero_grad()
    loss = model(torch.randn(2, 4)).sum()
    loss.backward()
    optimizer.step()
    best = loss.item()
print(best)
