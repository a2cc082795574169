// Usage: write_rows FOLDER. Computes every row in every dtype, with first and second derivatives,
// and writes rows.jsonl and tensors.bin into FOLDER for compare.py.
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "autodiff/gradient.h"
#include "autodiff/operation.h"
#include "autodiff/tape.h"
#include "tests/oracle/oracle_rows.h"

namespace {

using palimpsest::DType;
using palimpsest::OperationRow;
using palimpsest::Shape;
using palimpsest::Tape;
using palimpsest::Tensor;
using palimpsest::Var;

/// Numbers that every floating dtype represents, in an order without a period, because derivatives
/// of normalisations would cancel over a period. Few are negative, so that sums do not cancel
/// either.
Tensor weights(const Shape& shape, std::uint64_t seed, DType dtype) {
  static constexpr double numbers[] = {1.25, 0.5, 0.75, -1.5, 1, 0.625, 0.875};
  const Tensor made = Tensor::zeros(shape, DType::f64);
  std::uint64_t state = seed;
  for (double& element : made.data<double>()) {
    state = state * 6364136223846793005 + 1442695040888963407;
    element = numbers[(state >> 33) % std::size(numbers)];
  }
  return made.to(dtype);
}

/// A file with the bytes of tensors one after the other. The JSON contains their positions.
class TensorFile {
 public:
  explicit TensorFile(const std::filesystem::path& path) : file_(path, std::ios::binary) {}

  std::string write(const Tensor& tensor) {
    std::ostringstream json;
    json << R"({"dtype": ")" << name_of(tensor.dtype()) << R"(", "offset": )" << offset_
         << R"(, "shape": [)";
    const char* comma = "";
    for (const std::int64_t size : tensor.shape()) json << std::exchange(comma, ", ") << size;
    json << "]}";
    const auto bytes = tensor.elements() * palimpsest::size_of(tensor.dtype());
    file_.write(reinterpret_cast<const char*>(tensor.raw()), bytes);
    offset_ += bytes;
    return json.str();
  }
  std::string write(const std::vector<Tensor>& tensors) {
    std::string json = "[";
    for (const Tensor& tensor : tensors) json += (json.size() > 1 ? ", " : "") + write(tensor);
    return json + "]";
  }
  bool good() const { return file_.good(); }

 private:
  std::ofstream file_;
  std::int64_t offset_ = 0;
};

/// The results of one row in one dtype.
struct Outcome {
  std::vector<Tensor> inputs;
  std::optional<Tensor> value;
  std::vector<Tensor> seeds, gradients;  ///< one for every floating input
  /// The derivatives of direction·gradient, for each gradient by every input. They are not summed,
  /// because a sum would hide digits of its terms.
  std::vector<Tensor> directions, second;
  std::string error;  ///< message of an error, instead of the other members
};

std::vector<Tensor> values_of(const std::vector<Var>& vars) {
  std::vector<Tensor> values;
  for (const Var& var : vars) values.push_back(var.value());
  return values;
}

Outcome compute(const OperationRow& row, std::vector<Tensor> inputs,
                std::set<std::string_view>& recorded) {
  Outcome out;
  out.inputs = std::move(inputs);
  Tape tape;
  std::vector<Var> xs, floating;
  for (const Tensor& input : out.inputs) {
    xs.push_back(is_floating(input.dtype()) ? tape.parameter(input) : tape.constant(input));
    if (is_floating(input.dtype())) floating.push_back(xs.back());
  }
  try {
    const Var y = row.call(xs);
    out.value = y.value();
    if (row.order > 0 && is_floating(y.dtype())) {
      out.seeds = {weights(y.shape(), 1, y.dtype())};
      const Var seed = tape.constant(out.seeds[0]);
      const std::vector<Var> slopes = vjp({&y, 1}, floating, {&seed, 1});
      out.gradients = values_of(slopes);
      if (row.order > 1) {
        for (const Var& slope : slopes) {
          out.directions.push_back(
              weights(slope.shape(), 3 + out.directions.size(), slope.dtype()));
          const Var direction = tape.constant(out.directions.back());
          for (const Tensor& part : values_of(vjp({&slope, 1}, floating, {&direction, 1}))) {
            out.second.push_back(part);
          }
        }
      }
    }
  } catch (const palimpsest::Error& error) {
    out.error = error.what();
  }
  for (palimpsest::NodeId node = 0; node < tape.node_count(); ++node) {
    recorded.insert(tape.operation(node).name);
  }
  return out;
}

class Writer {
 public:
  explicit Writer(const std::filesystem::path& folder)
      : tensors_(folder / "tensors.bin"), lines_(folder / "rows.jsonl") {}

  void write(const OperationRow& row, const std::string& family, std::vector<Tensor> inputs,
             std::string_view dtype) {
    const Outcome out = compute(row, std::move(inputs), recorded_);
    lines_ << R"({"operation": )" << std::quoted(row.operation) << R"(, "label": )"
           << std::quoted(label_of(row, family, dtype)) << R"(, "family": )" << std::quoted(family)
           << R"(, "dtype": )" << std::quoted(std::string(dtype)) << R"(, "inputs": )"
           << tensors_.write(out.inputs);
    if (out.value) lines_ << R"(, "value": )" << tensors_.write(*out.value);
    if (!out.gradients.empty()) {
      lines_ << R"(, "seeds": )" << tensors_.write(out.seeds) << R"(, "gradients": )"
             << tensors_.write(out.gradients);
    }
    if (!out.second.empty()) {
      lines_ << R"(, "directions": )" << tensors_.write(out.directions) << R"(, "second": )"
             << tensors_.write(out.second);
    }
    if (!out.error.empty()) lines_ << R"(, "error": )" << std::quoted(out.error);
    lines_ << "}\n";
  }

  /// Writes the last line: all registered operations, and those that no row recorded.
  bool finish() {
    lines_ << R"({"never_recorded": [)";
    const char* comma = "";
    for (const palimpsest::Operation* operation : palimpsest::operations()) {
      if (recorded_.contains(operation->name)) continue;
      lines_ << std::exchange(comma, ", ") << std::quoted(std::string(operation->name));
    }
    lines_ << "]}\n";
    return lines_.flush().good() && tensors_.good();
  }

 private:
  /// The label of a row, with a number where several rows have the same label.
  std::string label_of(const OperationRow& row, const std::string& family, std::string_view dtype) {
    const int count = ++seen_[{row.operation, row.label, family, std::string(dtype)}];
    if (count == 1) return row.label;
    return row.label + (row.label.empty() ? "(" : " (") + std::to_string(count) + ")";
  }

  TensorFile tensors_;
  std::ofstream lines_;
  std::map<std::vector<std::string>, int> seen_;
  std::set<std::string_view> recorded_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: " << argv[0] << " FOLDER\n";
    return 2;
  }
  Writer writer(argv[1]);
  for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    for (const palimpsest::RowFamily& family : palimpsest::row_families()) {
      for (const OperationRow& row : family.rows()) {
        if (is_half(dtype) && !row.half) continue;
        std::vector<Tensor> inputs = row.inputs;
        for (Tensor& input : inputs) {
          if (is_floating(input.dtype())) input = input.to(dtype);
        }
        writer.write(row, family.name, inputs, name_of(dtype));
      }
    }
    for (const OperationRow& row : palimpsest::oracle::rows_of(dtype)) {
      writer.write(row, "oracle", row.inputs, name_of(dtype));
    }
  }
  for (const OperationRow& row : palimpsest::oracle::rows_of_other_dtypes()) {
    writer.write(row, "oracle", row.inputs, "mixed");
  }
  if (!writer.finish()) {
    std::cerr << argv[0] << ": cannot write to " << argv[1] << '\n';
    return 1;
  }
  return 0;
}
