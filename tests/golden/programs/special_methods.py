"""Special methods are called by operators, `len`, tests and formatting: they read and bind."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
limit = 3
shown = 0


class Window:
    def __init__(self):
        self.items = []

    def __len__(self):
        return min(len(self.items), limit)

    def __iadd__(self, item):
        global limit
        self.items.append(item)
        limit = limit + 1
        return self

    def __str__(self):
        global shown
        shown += 1
        return f"{shown}"


window = Window()
for row in torch.randn(8, 4):
    optimizer.zero_grad()
    loss = model(row).sum() / (1 + len(window))
    loss.backward()
    optimizer.step()
    window += loss.item()
    print(f"{window}")
