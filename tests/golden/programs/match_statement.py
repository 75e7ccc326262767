"""A `match` that chooses the loss; a capture is bound in some of its cases only."""

import sys

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
command = sys.argv[1:]
used = "none"
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    out = model(batch)
    match command:
        case ["power", power]:
            used = power
            loss = out.abs().pow(float(power)).mean()
        case ["huber"]:
            loss = nn.functional.huber_loss(out, torch.zeros_like(out))
        case _:
            loss = out.pow(2).mean()
    loss.backward()
    optimizer.step()
    print(used)
