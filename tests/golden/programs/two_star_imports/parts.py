import time

import torch
from torch import nn

data = torch.randn(4, 3)


def make_model():
    return nn.Linear(3, 1)
