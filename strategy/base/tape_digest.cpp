#include "strategy/base/tape_digest.h"

#include "strategy/base/digest.h"

namespace palimpsest {

TapeDigest digest_of(const Tape& tape) {
  Digest structure;
  Digest shapes;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    structure.put(tape.operation(node).name);
    structure.put(tape.inputs(node).size());
    for (const ValueId input : tape.inputs(node)) structure.put(std::uint64_t{input});
    for (std::uint32_t i = 0; i < tape.output_count(node); ++i) {
      const ValueType type = tape.type(tape.first_output(node) + i);
      structure.put(static_cast<std::uint64_t>(type.dtype));
      structure.put(static_cast<std::uint64_t>(type.shape.rank()));
      shapes.put(type.shape);
    }
  }
  return {structure.value(), shapes.value(), tape.node_count()};
}

}  // namespace palimpsest
