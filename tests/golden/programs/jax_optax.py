"""JAX: parameters and optimizer state are made anew from what they were."""

import jax
import jax.numpy as jnp
import optax


def loss_of(params, x):
    return jnp.mean((x @ params["w"] + params["b"]) ** 2)


params = {"w": jnp.ones((4, 1)), "b": jnp.zeros(1)}
optimizer = optax.adam(1e-3)
state = optimizer.init(params)


@jax.jit
def update(params, state, x):
    loss, gradients = jax.value_and_grad(loss_of)(params, x)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss


for step in range(100):
    x = jnp.ones((8, 4)) * step
    params, state, loss = update(params, state, x)
    if step % 10 == 0:
        print(step, loss)
