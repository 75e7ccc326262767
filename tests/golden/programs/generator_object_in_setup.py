"""A generator of the project made once and gone on with in every epoch."""

from itertools import islice

import torch
from torch import nn


def stream(data):
    while True:
        for row in data:
            yield row


torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
rows = stream(torch.randn(10, 4))
for epoch in range(3):
    first = list(islice(rows, 2))
    for row in islice(rows, 7):
        optimizer.zero_grad()
        (model(row) + first[0]).sum().backward()
        optimizer.step()
