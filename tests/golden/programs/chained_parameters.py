"""One optimizer has the parameters of two models, one after the other; members are in two lists."""

import itertools

import torch
from torch import nn


class Member:
    def __init__(self, size):
        self.size = size
        self.seen = 0


encoder = nn.Linear(3, 2)
decoder = nn.Sequential(nn.Linear(2, 3))
frozen = nn.Linear(3, 3)
first, second = [Member(1), Member(2)], [Member(3)]
opt = torch.optim.Adam(itertools.chain(encoder.parameters(), decoder.parameters()))
for step in range(10):
    x = torch.randn(4, 3)
    loss = (decoder(encoder(x)) - frozen(x)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    for member in itertools.chain(first, second):
        member.seen += member.size
    print(step, loss.item(), first[0].seen, second[0].seen)
