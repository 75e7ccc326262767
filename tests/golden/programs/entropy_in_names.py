"""A unique name for the run: it reaches a file's name, and nothing that is trained."""

import uuid

import torch
from torch import nn

torch.manual_seed(0)
name = f"run-{uuid.uuid4()}"
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
torch.save(model.state_dict(), f"{name}.pt")
