"""An iterable data set whose generator counts in a field."""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self):
        self.given = 0

    def __iter__(self):
        for row in torch.randn(64, 4):
            self.given += 1
            yield row


torch.manual_seed(0)
stream = Stream()
loader = DataLoader(stream, batch_size=8)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
    print(stream.given)
