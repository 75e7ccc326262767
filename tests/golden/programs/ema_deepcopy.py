"""A moving average of the weights in a copy of the model."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
average = copy.deepcopy(model)
best = None
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    loss = model(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for kept, new in zip(average.parameters(), model.parameters()):
            kept.mul_(0.99).add_(new, alpha=0.01)
    if loss < 0.1:
        best = copy.deepcopy(model.state_dict())
torch.save({"average": average.state_dict(), "best": best}, "out.pt")
