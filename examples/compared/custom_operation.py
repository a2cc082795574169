"""Fits the orbit of a planet. Kepler's equation E - e sin E = M is a custom operation: Newton's
method solves it, and the implicit function theorem gives its derivative."""

import jax
import jax.numpy as jnp
import optax

from support import normals

jax.config.update("jax_enable_x64", True)


@jax.custom_vjp
def kepler(M, e):
    def improve(_, E):
        return E - (E - e * jnp.sin(E) - M) / (1 - e * jnp.cos(E))

    return jax.lax.fori_loop(0, 10, improve, M)


def forward(M, e):
    E = kepler(M, e)
    return E, (E, e)


def backward(kept, adjoint):
    E, e = kept
    slope = adjoint / (1 - e * jnp.cos(E))
    return slope, jnp.sum(slope * jnp.sin(E))


kepler.defvjp(forward, backward)


def positions(orbit):
    e, frequency, phase = orbit
    times = jnp.arange(1000) / 50
    E = kepler(frequency * times + phase, e)
    return jnp.stack([jnp.cos(E) - e, jnp.sqrt(1 - e**2) * jnp.sin(E)], axis=1)


noise = 0.01 * normals((1000, 2), "noise")
seen = positions(jnp.array([0.4, 1.0, 0.3])) + noise
orbit = jnp.array([0.1, 1.05, 0.0])
optimizer = optax.adam(0.01)
state = optimizer.init(orbit)


def objective(orbit):
    return jnp.mean((positions(orbit) - seen) ** 2)


@jax.jit
def improve(orbit, state):
    loss, gradients = jax.value_and_grad(objective)(orbit)
    updates, state = optimizer.update(gradients, state)
    return optax.apply_updates(orbit, updates), state, loss


for step in range(200):
    orbit, state, loss = improve(orbit, state)
    if step % 20 == 0:
        print(f"step {step} loss {loss:.12g}")
print(f"found {orbit[0]:.12g} {orbit[1]:.12g} {orbit[2]:.12g}")
