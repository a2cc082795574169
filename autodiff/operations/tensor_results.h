// Written by tools/tensor_functions.py, as `./dev docs` does. Do not edit.
#pragma once

#include <cstdint>
#include <optional>

#include "autodiff/operations/sorting.h"
#include "autodiff/tensor.h"

/// Results of functions of tensors that return several, and options that have tensors.
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

/// `AttentionOptions` of tensors. There is no dropout, which draws random numbers.
struct TensorAttentionOptions {
  Tensor mask = {};
  bool causal = false;
  std::optional<double> scale = std::nullopt;
};

/// `AttentionParameters` of tensors.
struct TensorAttentionParameters {
  Tensor query;
  Tensor key;
  Tensor value;
  Tensor output;
  Tensor query_bias = {};
  Tensor key_bias = {};
  Tensor value_bias = {};
  Tensor output_bias = {};
  std::int64_t key_heads = 0;
};

/// `RotaryOptions` of tensors.
struct TensorRotaryOptions {
  Tensor positions = {};
  std::int64_t offset = 0;
  double base = 10000;
  bool interleaved = false;
};

/// `CellParameters` of tensors.
struct TensorCellParameters {
  Tensor input;
  Tensor hidden;
  Tensor bias = {};
  Tensor hidden_bias = {};
};

/// `LstmState` of tensors.
struct TensorLstmState {
  Tensor h;
  Tensor c;
};

/// `RecurrentOutput` of tensors.
struct TensorRecurrentOutput {
  Tensor outputs;
  Tensor h;
};

/// `LstmOutput` of tensors.
struct TensorLstmOutput {
  Tensor outputs;
  TensorLstmState state;
};

/// `BincountOptions` of tensors.
struct TensorBincountOptions {
  Tensor weights = {};
  std::int64_t minlength = 0;
  std::optional<std::int64_t> size = std::nullopt;
};

/// `Histogram` of tensors.
struct TensorHistogram {
  Tensor counts;
  Tensor edges;
};

/// `HistogramOptions` of tensors.
struct TensorHistogramOptions {
  std::optional<HistogramRange> range = std::nullopt;
  Tensor weights = {};
  bool density = false;
};

/// `Unique` of tensors.
struct TensorUnique {
  Tensor values;
  Tensor inverse;
  Tensor counts;
};

}  // namespace palimpsest
