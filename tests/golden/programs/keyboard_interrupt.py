"""The loop in a `try` that only somebody at the keyboard ends: nothing is lost by that."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
try:
    for batch in torch.randn(20, 8, 4):
        optimizer.zero_grad()
        loss = model(batch).mean()
        loss.backward()
        optimizer.step()
        last = loss.item()
except KeyboardInterrupt:
    print("stopped early")
torch.save(model.state_dict(), "model.pt")
