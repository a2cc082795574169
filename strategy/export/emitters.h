#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "strategy/export/c_function.h"

/// How operations are expressed in C. Each file emit_*.cpp adds the operations of one topic.
namespace palimpsest {

/// One operation in C.
struct CEmitter {
  /// Writes the body of a function that computes a node.
  std::function<void(const CNode&, CBody&)> emit;
  /// Bytes of scratch that the function needs; null: none.
  Bytes (*workspace)(const NodeView&, int threads) = nullptr;
  /// As `Operation::in_place`; null: never.
  int (*in_place)(const NodeView&, std::size_t output) = nullptr;
};

/// By the name of the operation.
using CEmitters = std::map<std::string, CEmitter, std::less<>>;

/// All supported operations. Made at the first call.
const CEmitters& c_emitters();
/// The emitter of an operation, or null.
const CEmitter* find_c_emitter(std::string_view operation);

void add_elementwise_emitters(CEmitters& emitters);
void add_conversion_emitters(CEmitters& emitters);
void add_reduction_emitters(CEmitters& emitters);
void add_cumulative_emitters(CEmitters& emitters);
void add_shape_emitters(CEmitters& emitters);
void add_index_emitters(CEmitters& emitters);
void add_product_emitters(CEmitters& emitters);
void add_convolution_emitters(CEmitters& emitters);
void add_pool_emitters(CEmitters& emitters);
void add_normalization_emitters(CEmitters& emitters);
void add_softmax_emitters(CEmitters& emitters);
void add_factorization_emitters(CEmitters& emitters);

/// For elementwise operations: an input of the output's type, whose memory the output may take
/// over; −1 if there is none. Memory of another dtype is not taken over, since C compilers assume
/// that pointers to different types do not overlap.
int first_alike_input(const NodeView& node, std::size_t output);

}  // namespace palimpsest
