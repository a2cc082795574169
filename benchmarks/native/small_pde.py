"""Runs the gradient of a small PDE in JAX, compiled by XLA, for the suite `native`.

    small_pde.py        prints the version, such as `0.10.2`
    small_pde.py run    prints the derivative by the velocity; then, for each line with a number of runs that it reads,
                        the seconds they took
"""

import gc
import sys
import time

try:
    import jax
    import jax.numpy as jnp
except ImportError:
    sys.exit(1)

jax.config.update("jax_enable_x64", True)
CELLS, STEPS = 100, 2000


def loss(velocity, start):
    def advance(u, _):
        left = jnp.roll(u, 1)
        return u - velocity * (u - left) + 0.1 * (jnp.roll(u, -1) - 2.0 * u + left), None

    end, _ = jax.lax.scan(advance, start, None, length=STEPS)
    return jnp.sum(end * end)


def main():
    if len(sys.argv) == 1:
        print(jax.__version__)
        return
    gradient = jax.jit(jax.grad(loss, argnums=(0, 1)))
    inputs = jnp.asarray(0.2), jnp.sin(0.1 * jnp.arange(CELLS))
    print(float(gradient(*inputs)[0]), flush=True)
    gc.disable()
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            jax.block_until_ready(gradient(*inputs))
        print(time.perf_counter() - start, flush=True)


main()
