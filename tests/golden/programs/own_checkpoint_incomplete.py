"""The program's own checkpoint has the optimizer and no scheduler."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
for epoch in range(10):
    for batch in torch.randn(20, 8, 4):
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
    scheduler.step()
    state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, "last.pt")
