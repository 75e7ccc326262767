"""A `while` that ends when the loss says so."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss = torch.tensor(float("inf"))
patience = 0
while loss.item() > 0.01 and patience < 50:
    before = loss.item()
    optimizer.zero_grad()
    loss = model(torch.randn(8, 4)).pow(2).mean()
    loss.backward()
    optimizer.step()
    patience = patience + 1 if loss.item() >= before else 0
