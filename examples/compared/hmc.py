"""Hamiltonian Monte Carlo draws from the posterior of a logistic regression."""

import jax
import jax.numpy as jnp

from support import classes, normals, numbers

jax.config.update("jax_enable_x64", True)

LENGTH = 0.1
x = normals((200, 8), "x")
y = classes((200,), "y", 2)


def potential(q):
    logits = x @ q
    return jnp.sum(jax.nn.softplus(logits) - y * logits) + 0.5 * jnp.sum(q**2)


def transition(state, random):
    momentum, chance = random
    q = state
    p = momentum - 0.5 * LENGTH * jax.grad(potential)(q)
    for leap in range(10):
        q = q + LENGTH * p
        p = p - (LENGTH if leap < 9 else 0.5 * LENGTH) * jax.grad(potential)(q)
    before = potential(state) + 0.5 * jnp.sum(momentum**2)
    after = potential(q) + 0.5 * jnp.sum(p**2)
    accepted = jnp.log(0.5 + 0.5 * chance) < before - after
    state = jnp.where(accepted, q, state)
    return state, (state, accepted)


@jax.jit
def chain(start, momenta, chances):
    end, (draws, accepted) = jax.lax.scan(transition, start, (momenta, chances))
    return end, draws.mean(), draws.var(axis=0, ddof=1).mean(), accepted.mean(dtype=float)


state = jnp.zeros(8)
for step in range(1, 11):
    momenta = normals((100, 8), f"p {step}")
    chances = numbers((100,), f"u {step}", jnp.float64)
    state, mean, variance, accepted = chain(state, momenta, chances)
    print(f"step {step} mean {mean:.12g} variance {variance:.12g} accepted {accepted:.12g}")
