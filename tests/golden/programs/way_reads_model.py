"""The way to the inner loop looks at the model: the outer level must have it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
easy, hard = torch.randn(20, 8, 4), torch.randn(20, 8, 4)
for epoch in range(5):
    with torch.no_grad():
        rows = easy if model(easy[0]).mean() > 0 else hard
    for batch in rows:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
