"""Files in the order of the directory."""

import os

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for name in os.listdir("data"):
    batch = torch.load(os.path.join("data", name))
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
