"""Parameters changed by hand from their gradients, without an optimizer."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
lr = 0.1
for batch in torch.randn(20, 8, 4):
    loss = model(batch).pow(2).mean()
    model.zero_grad()
    loss.backward()
    with torch.no_grad():
        for p in model.parameters():
            p.data -= lr * p.grad
    lr *= 0.99
