"""Members of a population in turns: a list is gone through, a policy copied, gradients stay."""

import copy
import random

import torch
from torch import nn


class Policy:
    def __init__(self):
        self.table = {name: [random.random(), 0.5] for name in ("shift", "noise")}

    def __call__(self, x):
        for probability, size in self.table.values():
            if random.random() < probability:
                x = x.clone()
                x[0] = size
        return x

    def explore(self):
        for values in self.table.values():
            values[0] = random.random()


class Member:
    def __init__(self):
        self.model = nn.Linear(4, 1)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1, momentum=0.9)
        self.policy = Policy()
        self.score = 0.0

    def train(self, rows):
        given = [self.policy(row) for row in rows]
        for row in given:
            loss = self.model(row).pow(2).sum()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.score = loss.item()


random.seed(0)
torch.manual_seed(0)
rows = torch.randn(16, 4)
members = [Member() for _ in range(3)]
for turn in range(4):
    for member in members:
        member.train(rows)
    best = min(members, key=lambda member: member.score)
    worst = max(members, key=lambda member: member.score)
    worst.policy = copy.deepcopy(best.policy)
    worst.policy.explore()
    print(turn, best.score)
