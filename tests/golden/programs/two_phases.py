"""Two phases of training one after the other, the second with an optimizer of its own."""

import torch
from torch import nn

torch.manual_seed(0)
body = nn.Linear(4, 4)
head = nn.Linear(4, 1)
optimizer = torch.optim.Adam(body.parameters())
warm = 0.0
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    loss = (body(batch) - batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    warm = loss.item()
optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    loss = head(body(batch)).mean() * warm
    loss.backward()
    optimizer.step()
