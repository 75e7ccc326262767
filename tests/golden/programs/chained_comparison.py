"""A comparison of three that may end at the second: the walrus in the third may not run."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
late = 0.0


def step(row):
    optimizer.zero_grad()
    loss = model(row).sum()
    loss.backward()
    optimizer.step()
    return loss.item()


for n, row in enumerate(torch.randn(10, 4)):
    step(row)
    if 3 < n < (late := step(row)):
        print("late")
    print(late)
