"""`loss = 0; loss += criterion(...)`: a number that becomes a tensor, and is differentiated."""

import torch
from torch import nn

torch.manual_seed(0)
cell = nn.RNNCell(3, 5)
head = nn.Linear(5, 1)
optimizer = torch.optim.Adam([*cell.parameters(), *head.parameters()], lr=1e-3)
sequences = torch.randn(16, 7, 2, 3)
for sequence in sequences:
    hidden = torch.zeros(2, 5)
    loss = 0
    for x in sequence:
        hidden = cell(x, hidden)
        loss += head(hidden).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
