#include <cmath>
#include <string>

#include "autodiff/convert.h"
#include "autodiff/number_text.h"
#include "autodiff/operations/attributes.h"
#include "autodiff/operations/binary.h"
#include "autodiff/operations/construction.h"
#include "autodiff/operations/functions/binary_functions.h"
#include "autodiff/operations/leaf.h"
#include "autodiff/parallel.h"
#include "autodiff/tape.h"

namespace palimpsest {
namespace {

template <class T>
void compute_linspace(const KernelCall& call) {
  const auto& [start, step, stop, has_stop] = call.attributes.as<LinspaceAttributes>();
  const std::int64_t n = call.output().elements();
  const std::int64_t turn = has_stop ? (n + 1) / 2 : n;
  T* const y = call.output().as<T>();
  parallel_chunks(
      n, grain_for(2),
      [&, start = start, step = step, stop = stop](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const double number = i < turn ? start + static_cast<double>(i) * step
                                         : stop - static_cast<double>(n - 1 - i) * step;
          y[i] = convert_element<T>(number);
        }
      });
}

}  // namespace

const Operation linspace_operation{
    .name = "linspace",
    .formula = "yᵢ = start + i·step",
    .summary = "numbers at equal distances",
    .compute =
        [](const KernelCall& call) {
          visit(call.output().dtype(), [&]<class T>(T) { compute_linspace<T>(call); });
        },
    .half = HalfSupport::native,
    .mixed = MixedPrecision::recorded,
};

namespace {

Var record_linspace(Tape& tape, const LinspaceAttributes& attributes, std::int64_t count,
                    DType dtype, const Where& where) {
  const ValueType type{{count}, dtype};
  return tape.record(linspace_operation, {}, {&type, 1}, attributes, where);
}

}  // namespace

Var arange(Tape& tape, double start, double stop, double step, DType dtype, Where where) {
  const double count = std::ceil((stop - start) / step);
  if (!(std::abs(count) < 0x1p62)) {
    throw ArgumentError("arange",
                        "start " + number_text(start) + ", stop " + number_text(stop) +
                            " and step " + number_text(step) +
                            " do not give a number of elements; give finite ones and a step other "
                            "than 0",
                        where);
  }
  return record_linspace(tape, {start, step, stop, false},
                         count > 0 ? static_cast<std::int64_t>(count) : 0, dtype, where);
}

Var linspace(Tape& tape, double start, double stop, std::int64_t count, DType dtype, Where where) {
  if (count < 0) {
    throw ArgumentError("linspace", "the count is " + std::to_string(count) + "; give 0 or more",
                        where);
  }
  const double step = count > 1 ? (stop - start) / static_cast<double>(count - 1) : 0;
  return record_linspace(tape, {start, step, stop, true}, count, dtype, where);
}

Var logspace(Tape& tape, double start, double stop, std::int64_t count, double base, DType dtype,
             Where where) {
  const Var exponents = linspace(tape, start, stop, count, DType::f64, where);
  return cast(pow(base, exponents, where), dtype, where);
}

}  // namespace palimpsest
