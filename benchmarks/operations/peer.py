"""Runs single operations in PyTorch on one thread, for the suite `operations`.

    peer.py            prints the version, such as `2.6.0`
    peer.py OPERATION  for each line with a number of runs that it reads, prints the seconds they took
"""

import gc
import sys
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError:
    sys.exit(1)

LINE, ROWS, SHORT_ROWS, COLUMNS = (1 << 20,), (4096, 256), (32768, 32), (1024, 1024)
OPERATIONS = {
    "sort_line": (LINE, lambda x, i: x.sort().values),
    "sort_line_f64": (LINE, lambda x, i: x.sort().values),
    "sort_rows": (ROWS, lambda x, i: x.sort().values),
    "sort_short_rows": (SHORT_ROWS, lambda x, i: x.sort().values),
    "sort_columns": (COLUMNS, lambda x, i: x.sort(0).values),
    "scatter_rows": (COLUMNS, lambda x, i: x.scatter(1, i, x)),
    "scatter_columns": (COLUMNS, lambda x, i: x.scatter(0, i, x)),
    "topk_line": (LINE, lambda x, i: x.topk(100).values),
    "topk_rows": (ROWS, lambda x, i: x.topk(8).values),
    "median_rows": (ROWS, lambda x, i: x.median(1).values),
    "cumsum_rows": (COLUMNS, lambda x, i: x.cumsum(1)),
    "cumsum_columns": (COLUMNS, lambda x, i: x.cumsum(0)),
    "cumprod_rows": (COLUMNS, lambda x, i: x.cumprod(1)),
    "cummax_rows": (COLUMNS, lambda x, i: x.cummax(1).values),
    "cummax_columns": (COLUMNS, lambda x, i: x.cummax(0).values),
    "logcumsumexp_rows": (COLUMNS, lambda x, i: x.logcumsumexp(1)),
    "unfold_images": ((8, 16, 56, 56), lambda x, i: F.unfold(x, 3, padding=1)),
    "fold_images": ((8, 144, 3136), lambda x, i: F.fold(x, (56, 56), 3, padding=1)),
}


def main():
    if len(sys.argv) == 1:
        print(torch.__version__)
        return
    torch.manual_seed(1)
    torch.set_num_threads(1)
    shape, function = OPERATIONS[sys.argv[1]]
    x = torch.randn(shape, dtype=torch.float64 if sys.argv[1].endswith("f64") else torch.float32)
    index = torch.randint(shape[-1], shape)
    gc.disable()
    with torch.no_grad():
        for line in sys.stdin:
            start = time.perf_counter()
            for _ in range(int(line)):
                function(x, index)
            print(time.perf_counter() - start, flush=True)


main()
