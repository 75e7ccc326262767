"""Two closures made by one function have variables of their own."""

import torch
from torch import nn


def make(model):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    best = None

    def run(rows):
        nonlocal best
        for row in rows:
            optimizer.zero_grad()
            loss = model(row).sum()
            loss.backward()
            optimizer.step()
            best = loss.item()

    def report():
        print(best)

    return run, report


torch.manual_seed(0)
run_a, report_a = make(nn.Linear(4, 1))
run_a(torch.randn(8, 4))
run_b, report_b = make(nn.Linear(4, 1))
run_b(torch.randn(8, 4))
report_a()
report_b()
