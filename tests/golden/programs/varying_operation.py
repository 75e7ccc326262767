"""An operation whose bits may vary on some devices."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
index = torch.randint(0, 8, (8,))
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    out = torch.zeros(8, 4).index_add_(0, index, model(batch))
    out.mean().backward()
    optimizer.step()
