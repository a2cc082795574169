"""The Levenberg-Marquardt method fits two damped oscillations to noisy readings."""

import jax
import jax.numpy as jnp

from support import normals

jax.config.update("jax_enable_x64", True)


def signal(p, times):
    t = times[:, None]
    amplitude, decay, frequency, phase = p
    return jnp.sum(amplitude * jnp.exp(-decay * t) * jnp.cos(frequency * t + phase), axis=1)


truth = jnp.array([[1.0, 0.7], [0.3, 0.1], [3.0, 7.0], [0.5, -0.4]])
times = jnp.arange(400) / 40
readings = signal(truth, times) + 0.01 * normals((400,), "noise")


def residuals(p):
    return signal(p, times) - readings


@jax.jit
def improve(p, damping):
    r = residuals(p)
    J = jax.jacfwd(residuals)(p).reshape(400, 8)
    squares = J.T @ J
    change = jnp.linalg.solve(squares + damping * jnp.diag(jnp.diag(squares)), J.T @ r)
    trial = p - change.reshape(4, 2)
    before, after = jnp.sum(r**2), jnp.sum(residuals(trial) ** 2)
    better = after < before
    damping = damping * jnp.where(better, 0.3, 3)
    return jnp.where(better, trial, p), damping, jnp.minimum(before, after)


found = jnp.array([[0.8, 0.8], [0.2, 0.2], [3.2, 6.8], [0.0, 0.0]])
damping = 1e-3
for step in range(1, 21):
    found, damping, cost = improve(found, damping)
    print(f"step {step} cost {cost:.12g}")
for element in found.ravel():
    print(f"found {element:.12g}")
