#pragma once

/// What the programs of this folder share with those in Python, besides what they compute: numbers
/// and first parameters. support.py makes the same.

#include <palimpsest.h>
#include <palimpsest/nn/nn.h>

#include <string_view>

/// Numbers in [−1, 1). They depend on the name and the position alone, and are exact in f32.
palimpsest::Tensor numbers(const palimpsest::Shape& shape, std::string_view name,
                           palimpsest::DType dtype = palimpsest::DType::f32);

/// Numbers that are nearly normal, with mean 0 and deviation 1: sums of twelve `numbers`.
palimpsest::Tensor normals(const palimpsest::Shape& shape, std::string_view name);

/// Integers from 0 to `classes` − 1, as i64.
palimpsest::Tensor classes(const palimpsest::Shape& shape, std::string_view name,
                           std::int64_t classes);

/// Images (count, 1, size, size) of a disc in noise, and 1 where the disc is.
struct Discs {
  palimpsest::Tensor images, masks;
};
Discs discs(std::int64_t count, std::int64_t size);

/// Sets biases to 0, and parameters with several axes to `numbers` by their names. They get the
/// variance 1/fan-in. Other parameters stay as they are.
void same_parameters(const palimpsest::nn::Parameters& parameters);
