"""An endless loop in a `try`: what the `finally` reads is read, however the loop is left."""

import torch
from torch import nn


def train():
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    steps = 0
    loss = None
    try:
        while True:
            optimizer.zero_grad()
            loss = model(torch.randn(2, 4)).sum()
            loss.backward()
            optimizer.step()
            steps = steps + 1
            note = f"step {steps}"
            if loss < -10:
                return model
    finally:
        print("ended at", note)


train()
