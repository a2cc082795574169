#include "autodiff/var.h"

namespace palimpsest {

Tape& Var::tape() const {
  if (tape_ == nullptr) throw TapeError("[var] this Var holds no value; assign one first");
  if (generation_ != tape_->generation()) {
    throw TapeError("[var] this Var was recorded before its tape was cleared; record it again");
  }
  return *tape_;
}

Var Var::output(std::uint32_t index) const {
  Tape& owner = tape();
  const NodeId producer = owner.producer(id_);
  if (index >= owner.output_count(producer)) {
    throw ArgumentError(owner.operation(producer).name,
                        "has " + std::to_string(owner.output_count(producer)) +
                            " outputs; there is no output " + std::to_string(index),
                        owner.where(producer));
  }
  return Var(owner, owner.first_output(producer) + index);
}

const Var& Var::named(std::string_view name) const {
  tape().set_name(node(), name);
  return *this;
}

void throw_foreign(const Var& var, std::string_view operation, const Where& where) {
  if (!var.defined()) {
    throw TapeError(operation, "an argument is a Var without a value; assign one first", where);
  }
  var.tape();
  throw TapeError(operation,
                  "its arguments belong to different tapes; record them on one, or pass a value "
                  "across with tape.constant(x.value())",
                  where);
}

Tape& common_tape(std::span<const Var> vars, std::string_view operation, const Where& where) {
  if (vars.empty()) throw ArgumentError(operation, "needs at least one argument", where);
  if (!vars[0].defined()) throw_foreign(vars[0], operation, where);
  Tape& tape = vars[0].tape();
  for (const Var& var : vars) {
    if (!var.belongs_to(tape)) throw_foreign(var, operation, where);
  }
  return tape;
}

}  // namespace palimpsest
