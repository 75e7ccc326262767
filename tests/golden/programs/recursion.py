"""A training loop in a function that calls itself: its variables are there more than once."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
deepest = 0


def train(depth, scale):
    global deepest
    kept = scale * depth
    for batch in torch.randn(4, 8, 4):
        optimizer.zero_grad()
        loss = (model(batch) * scale).mean()
        loss.backward()
        optimizer.step()
        deepest = max(deepest, depth)
        if depth < 3:
            train(depth + 1, loss.item())
    print(kept)


train(0, 1.0)
