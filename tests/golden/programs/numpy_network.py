"""A network written by hand in numpy."""

import numpy as np

rng = np.random.default_rng(0)
x = rng.normal(size=(64, 4))
y = rng.normal(size=(64, 1))
w1 = rng.normal(size=(4, 8))
w2 = rng.normal(size=(8, 1))
rate = 0.1
for epoch in range(100):
    order = rng.permutation(64)
    for start in range(0, 64, 8):
        rows = order[start : start + 8]
        hidden = np.maximum(x[rows] @ w1, 0)
        error = hidden @ w2 - y[rows]
        grad2 = hidden.T @ error
        grad1 = x[rows].T @ ((error @ w2.T) * (hidden > 0))
        w1 -= rate * grad1
        w2 -= rate * grad2
    print(epoch, float((error**2).mean()))
