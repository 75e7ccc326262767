"""LBFGS: the step is given a closure that computes the loss and keeps it."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.8)
x, y = torch.randn(64, 4), torch.randn(64, 1)
evaluations = 0
for step in range(15):

    def closure():
        global evaluations
        evaluations += 1
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        return loss

    loss = optimizer.step(closure)
    print(step, loss.item(), evaluations)
