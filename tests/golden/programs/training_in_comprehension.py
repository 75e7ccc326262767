"""Training in a comprehension, which can't be re-entered."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def step(batch):
    optimizer.zero_grad()
    loss = model(batch).mean()
    loss.backward()
    optimizer.step()
    return loss.item()


losses = [step(batch) for batch in torch.randn(20, 8, 4)]
print(losses)
