"""A seed that can be given and is never used."""

import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--lr", type=float, default=0.1)
args = parser.parse_args()
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=args.lr)
for batch in torch.randn(20, 8, 4):
    optimizer.zero_grad()
    model(batch).mean().backward()
    optimizer.step()
