// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#pragma once

#include "autodiff/tensor.h"

/// What functions of tensors with several results return.
namespace palimpsest {

/// `Slogdet` of tensors.
struct TensorSlogdet {
  Tensor sign;
  Tensor log_magnitude;
};

/// `Qr` of tensors.
struct TensorQr {
  Tensor q;
  Tensor r;
};

/// `Eigh` of tensors.
struct TensorEigh {
  Tensor values;
  Tensor vectors;
};

/// `Svd` of tensors.
struct TensorSvd {
  Tensor u;
  Tensor values;
  Tensor vh;
};

/// `BatchNorm` of tensors.
struct TensorBatchNorm {
  Tensor y;
  Tensor mean;
  Tensor variance;
};

/// `SpectralNorm` of tensors.
struct TensorSpectralNorm {
  Tensor weight;
  Tensor u;
  Tensor sigma;
};

/// `ValuesAndIndices` of tensors.
struct TensorValuesAndIndices {
  Tensor values;
  Tensor indices;
};

/// `Histogram` of tensors.
struct TensorHistogram {
  Tensor counts;
  Tensor edges;
};

/// `Unique` of tensors.
struct TensorUnique {
  Tensor values;
  Tensor inverse;
  Tensor counts;
};

}  // namespace palimpsest
