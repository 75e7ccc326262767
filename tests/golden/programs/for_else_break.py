"""A loop with `break` and `else`: which of the two ended it can't be seen from outside."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step, batch in enumerate(torch.randn(100, 8, 4)):
    optimizer.zero_grad()
    loss = model(batch).pow(2).mean()
    loss.backward()
    optimizer.step()
    if loss < 0.01:
        break
else:
    print("never good enough", loss.item())
print("ended at", step)
