"""A training function called alone and from a comprehension, which has no cut of its own."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scale = 1.0


def train(rows):
    global scale
    used = scale
    for row in rows:
        optimizer.zero_grad()
        loss = model(row * used).sum()
        loss.backward()
        optimizer.step()
        scale = loss.item()
    return loss


train(torch.randn(8, 4))
losses = [train(torch.randn(2, 4)) for _ in range(3)]
