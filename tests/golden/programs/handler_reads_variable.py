"""A real handler that reads a variable of the loop and goes on."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
good = None
for batch in torch.randn(20, 8, 4):
    try:
        optimizer.zero_grad()
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        good = loss.item()
    except RuntimeError as error:
        print("after", good, error)
