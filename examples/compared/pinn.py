"""A physics-informed network solves Δu = -2π² sin πx sin πy on a square, with u = 0 on its rim."""

import jax
import jax.numpy as jnp
import optax

from support import first_value, numbers

jax.config.update("jax_enable_x64", True)

x = numbers((256,), "x", jnp.float64)
y = numbers((256,), "y", jnp.float64)
exact = jnp.sin(jnp.pi * x) * jnp.sin(jnp.pi * y)


def layer(name, inputs, outputs):
    weight = first_value((inputs, outputs), f"{name}/weight", jnp.float64)
    return {"weight": weight, "bias": jnp.zeros(outputs)}


def linear(layer, x):
    return x @ layer["weight"] + layer["bias"]


def solution(params, x, y):
    features = jnp.tanh(linear(params["first"], jnp.stack([x, y])))
    features = jnp.tanh(linear(params["second"], features))
    return (1 - x**2) * (1 - y**2) * linear(params["last"], features)[0]


def laplacian(params, x, y):
    u_xx = jax.grad(jax.grad(solution, argnums=1), argnums=1)(params, x, y)
    u_yy = jax.grad(jax.grad(solution, argnums=2), argnums=2)(params, x, y)
    return u_xx + u_yy


def objective(params):
    residual = jax.vmap(laplacian, (None, 0, 0))(params, x, y) + 2 * jnp.pi**2 * exact
    error = jnp.max(jnp.abs(jax.vmap(solution, (None, 0, 0))(params, x, y) - exact))
    return jnp.mean(residual**2), error


params = {
    "first": layer("first", 2, 32),
    "second": layer("second", 32, 32),
    "last": layer("last", 32, 1),
}
optimizer = optax.adam(optax.cosine_decay_schedule(0.01, 400))
state = optimizer.init(params)


@jax.jit
def improve(params, state):
    (loss, error), gradients = jax.value_and_grad(objective, has_aux=True)(params)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(params, updates), state, loss, error


for step in range(400):
    params, state, loss, error = improve(params, state)
    if step % 50 == 0:
        print(f"step {step} loss {loss:.12g} error {error:.12g}")
