"""A nested function that counts in a variable of the function around it, read by an LR lambda."""

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    seen = 0
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda _: 1 / (1 + seen))

    def update(batch):
        nonlocal seen
        optimizer.zero_grad()
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        seen += len(batch)
        return loss

    for batch in torch.randn(20, 8, 4):
        loss = update(batch)
        scheduler.step()
    print(seen, loss.item())


main()
