"""Two optimizers, one of which gathers its gradients over four batches.

Known limitation: all gradients are one cell, and clearing those of the one counts as clearing all.
The run looks at gradients before a checkpoint without them is published.
"""

import torch
from torch import nn

torch.manual_seed(0)
body, head = nn.Linear(4, 4), nn.Linear(4, 1)
fast = torch.optim.SGD(head.parameters(), lr=0.1)
slow = torch.optim.SGD(body.parameters(), lr=0.1)
for number, batch in enumerate(torch.randn(20, 8, 4)):
    fast.zero_grad()
    head(body(batch)).mean().backward()
    fast.step()
    if number % 4 == 3:
        slow.step()
        slow.zero_grad()
