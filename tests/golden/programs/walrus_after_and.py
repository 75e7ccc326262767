"""A walrus behind `and` may not run: the name may keep its value."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
checked = 0.0
for number, row in enumerate(torch.randn(8, 4)):
    optimizer.zero_grad()
    loss = model(row).sum()
    loss.backward()
    optimizer.step()
    if number % 3 == 0 and (checked := loss.item()) > 2:
        print("high")
    print(checked)
