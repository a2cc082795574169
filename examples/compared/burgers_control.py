"""Finds the force that carries a fluid from rest to a given velocity. The velocity u obeys Burgers'
equation u_t + u u_x = v u_xx + force, and L-BFGS changes the force at all times and places."""

import itertools

import jax
import jax.numpy as jnp
from scipy.optimize import minimize

import support  # noqa: F401 (it measures)

jax.config.update("jax_enable_x64", True)

STEPS, CELLS = 400, 100
INTERVAL, WIDTH, VISCOSITY = 0.0025, 0.01, 0.01
target = jnp.sin(2 * jnp.pi * jnp.arange(CELLS) * WIDTH)


def step(u, force):
    left, right = jnp.roll(u, 1), jnp.roll(u, -1)
    advection = u * (right - left) / (2 * WIDTH)
    diffusion = VISCOSITY * (right - 2 * u + left) / WIDTH**2
    return u + INTERVAL * (diffusion - advection + force), None


@jax.jit
@jax.value_and_grad
def objective(force):
    force = force.reshape(STEPS, CELLS)
    end, _ = jax.lax.scan(step, jnp.zeros(CELLS), force)
    misfit = 0.5 * WIDTH * jnp.sum((end - target) ** 2)
    return misfit + 0.05 * WIDTH * INTERVAL * jnp.sum(force**2)


iterations = itertools.count(1)
found = minimize(
    objective,
    jnp.zeros(STEPS * CELLS),
    jac=True,
    method="L-BFGS-B",
    options={"maxiter": 200, "gtol": 1e-12, "ftol": 0},
    callback=lambda intermediate_result: print(
        f"iteration {next(iterations)} {intermediate_result.fun:.12g}"
    ),
)
print(f"objective {found.fun:.12g}")
