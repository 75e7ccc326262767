"""JAX: draws are functions of keys, and a key that is split is carried."""

import jax
import jax.numpy as jnp

key = jax.random.PRNGKey(0)
key, first = jax.random.split(key)
w = jax.random.normal(first, (4, 1))
gradient = jax.grad(lambda w, x: jnp.mean((x @ w) ** 2))
for step in range(100):
    key, use = jax.random.split(key)
    x = jax.random.normal(use, (8, 4))
    w = w - 0.1 * gradient(w, x)
print(w)
