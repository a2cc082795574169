"""PyTorch's counterparts of all rows that write_rows computes.

Looks up a row's counterpart by `operation: label`, then by its operation. It takes the row's inputs in order.
"""

import composed_counterparts
import function_counterparts
import layer_counterparts
import matrix_counterparts
import order_counterparts
from function_counterparts import adjoint_of

# Operations of which no row is compared.
WITHOUT_COUNTERPART = {
    "uniform": "its random numbers are others than PyTorch's",
    "normal": "its random numbers are others than PyTorch's",
    "bernoulli": "its random numbers are others than PyTorch's",
    "dropout": "its random numbers are others than PyTorch's",
    "truncated_normal": "its random numbers are others than PyTorch's",
    "log_gamma_variate": "its random numbers are others than PyTorch's",
    "gamma_derivative": "its random numbers are others than PyTorch's",
    "poisson": "its random numbers are others than PyTorch's",
    "multinomial": "its random numbers are others than PyTorch's",
    "randperm": "its random numbers are others than PyTorch's",
    "attention: dropping, a scale": "its random numbers are others than PyTorch's",
    "attention: grouped, dropping": "its random numbers are others than PyTorch's",
    "attention: dropping, in blocks": "its random numbers are others than PyTorch's",
    "attention_adjoint: dropping": "its random numbers are others than PyTorch's",
    "share": "PyTorch has no such function; the rows of maximum and minimum compare what it is for",
}

# Rows of which PyTorch has no second derivatives.
WITHOUT_SECOND = {
    "hardtanh: hardsigmoid": "PyTorch does not differentiate the adjoint of hardsigmoid",
    "scatter_recurrence: products of the source, with zeros": "PyTorch refuses second derivatives where several are 0",
    "one_hot: multi_margin_loss": "PyTorch does not differentiate the adjoint of multi_margin_loss",
    "ctc_loss: mean": "PyTorch does not differentiate the adjoint of ctc_loss",
    "grid_sample": "PyTorch does not differentiate grid_sampler_2d_backward",
    "grid_sample_image_adjoint": "PyTorch does not differentiate grid_sampler_2d_backward",
    "grid_sample_grid_adjoint": "PyTorch does not differentiate grid_sampler_2d_backward",
}

FUNCTIONS = function_counterparts.FUNCTIONS | composed_counterparts.FUNCTIONS
OTHERS = (function_counterparts.ROWS | composed_counterparts.ROWS | layer_counterparts.ROWS | matrix_counterparts.ROWS |
          order_counterparts.ROWS)


def find(table, operation, label):
    """The entry for a row in a table of operations and labels, or None."""
    return table.get(f"{operation}: {label}" if label else operation, table.get(operation))


def counterpart(operation, label):
    """(PyTorch's function, whether every element is compared by itself), or None."""
    key = f"{operation}: {label}" if label else operation
    for table, by_element in ((FUNCTIONS, True), (OTHERS, False)):
        if key in table:
            return table[key], by_element
    base = operation.removesuffix("_adjoint")
    if base != operation and (function := find(FUNCTIONS, base, label)):
        return adjoint_of(function), True
    for table, by_element in ((FUNCTIONS, True), (OTHERS, False)):
        if operation in table:
            return table[operation], by_element
    return None
