#include "strategy/mpi/tape_digest.h"

#include <bit>

#include "autodiff/number_text.h"
#include "strategy/base/digest.h"

namespace palimpsest {
namespace {

/// `#3`, or `#3.1` for a node with several outputs.
std::string reference(const Tape& tape, ValueId value) {
  const NodeId node = tape.producer(value);
  std::string text = "#" + std::to_string(node);
  if (tape.output_count(node) > 1) text += "." + std::to_string(value - tape.first_output(node));
  return text;
}

}  // namespace

std::uint64_t digest_of(std::span<const Tape::Update> updates) {
  Digest digest;
  for (const Tape::Update& update : updates) {
    digest.put(std::uint64_t{update.value});
    digest.put(std::bit_cast<std::uint64_t>(update.weight));
    digest.put(static_cast<std::uint64_t>(update.target.dtype()));
    digest.put(update.target.shape());
  }
  return digest.value();
}

std::uint64_t digest_of(std::span<const Tensor> tensors) {
  Digest digest;
  for (const Tensor& tensor : tensors) {
    digest.put(static_cast<std::uint64_t>(tensor.dtype()));
    digest.put(tensor.shape());
  }
  return digest.value();
}

void append_lines(const Tape& tape, NodeId nodes, bool with_shapes,
                  std::vector<std::string>& lines) {
  for (NodeId node = 0; node < nodes; ++node) {
    std::string line = "node " + std::to_string(node) + ": ";
    for (std::uint32_t i = 0; i < tape.output_count(node); ++i) {
      const ValueType type = tape.type(tape.first_output(node) + i);
      line += (i > 0 ? ", " : "") + std::string(name_of(type.dtype)) + " " +
              (with_shapes ? to_string(type.shape)
                           : "of " + std::to_string(type.shape.rank()) + " axes");
    }
    line += " = " + std::string(tape.operation(node).name);
    for (const ValueId input : tape.inputs(node)) line += " " + reference(tape, input);
    lines.push_back(std::move(line));
  }
}

void append_lines(const Tape& tape, std::span<const Tape::Update> updates,
                  std::vector<std::string>& lines) {
  for (const Tape::Update& update : updates) {
    lines.push_back("update of " + to_string(update.target.type()) + " by " +
                    reference(tape, update.value) + ", weight " + number_text(update.weight));
  }
}

void append_lines(std::span<const Tensor> parameters, std::vector<std::string>& lines) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    lines.push_back("parameter " + std::to_string(i) + ": " + to_string(parameters[i].type()));
  }
}

}  // namespace palimpsest
