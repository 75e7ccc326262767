"""Processes that train one model in shared memory."""

import torch
import torch.multiprocessing as mp
from torch import nn


def train(model, seed):
    torch.manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for batch in torch.randn(20, 8, 4):
        optimizer.zero_grad()
        model(batch).mean().backward()
        optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(0)
    shared = nn.Linear(4, 1)
    shared.share_memory()
    workers = []
    for rank in range(4):
        worker = mp.Process(target=train, args=(shared, rank))
        worker.start()
        workers.append(worker)
    for worker in workers:
        worker.join()
