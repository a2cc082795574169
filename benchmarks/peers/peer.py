"""Runs training steps of one model in PyTorch, for the suite `peers`.

    peer.py                    prints the version, such as `2.6.0`
    peer.py MODEL THREADS      prints the bytes of the gradients; then, for each line with a number of
                               steps that it reads, the seconds they took
    peer.py MODEL peak         prints the bytes of the gradients, and those by which the resident size
                               grew in a step at its peak
"""

import ctypes
import gc
import sys
import time

try:
    import torch
except ImportError:
    sys.exit(1)

import models


def resident(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))


def main():
    if len(sys.argv) == 1:
        print(torch.__version__)
        return
    model, how = sys.argv[1:]
    torch.manual_seed(1)
    torch.set_num_threads(1 if how == "peak" else int(how))
    parameters, loss = getattr(models, model)()

    def step(small=False):
        for parameter in parameters:
            parameter.grad = None
        loss(small).backward()

    step(small=True)
    print(sum(parameter.nbytes for parameter in parameters), flush=True)
    if how == "peak":
        for parameter in parameters:
            parameter.grad = None
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)
        with open("/proc/self/clear_refs", "w") as peak:
            peak.write("5")
        before = resident("VmRSS")
        step()
        print(resident("VmHWM") - before)
        return
    gc.disable()
    for line in sys.stdin:
        start = time.perf_counter()
        for _ in range(int(line)):
            step()
        print(time.perf_counter() - start, flush=True)


main()
