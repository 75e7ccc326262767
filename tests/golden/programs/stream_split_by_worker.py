"""Iterable data sets for several workers: one is split among them, one is not, one has no workers."""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info


class Split(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        for number in range(info.id, 64, info.num_workers):
            yield torch.ones(4) * number


class Whole(IterableDataset):
    def __iter__(self):
        for number in range(64):
            yield torch.ones(4) * number


class Longer(Split):
    pass


torch.manual_seed(0)
split = DataLoader(Split(), batch_size=8, num_workers=2)
whole = Whole()
copied = DataLoader(whole, batch_size=8, num_workers=4)
longer = DataLoader(Longer(), batch_size=8, num_workers=3)
alone = DataLoader(Whole(), batch_size=8, num_workers=1)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for loader in (split, copied, longer, alone):
    for batch in loader:
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()
