#include "autodiff/var.h"

#include <ostream>

namespace palimpsest {
namespace {

constexpr const char* no_longer_there =
    "is no longer on its tape: the tape was cleared or destroyed, or a function given to "
    "checkpoint(), scan() or similar recorded it; record it again, keep the tape, or return the "
    "value from that function";

}  // namespace

bool Var::was_kept() const {
  const Tape* const tape = identity_->tape();
  return tape != nullptr && tape->has_kept(id_, epoch_);
}

void Var::throw_unusable() const {
  if (!defined()) throw TapeError("[var] this Var holds no value; assign one first");
  throw TapeError(std::string("[var] this Var ") + no_longer_there);
}

Var Var::output(std::uint32_t index) const {
  Tape& owner = tape();
  const NodeId producer = owner.producer(id_);
  if (index >= owner.output_count(producer)) {
    throw ArgumentError(owner.operation(producer).name,
                        "has " + std::to_string(owner.output_count(producer)) +
                            " outputs, numbered from 0; there is no output " +
                            std::to_string(index),
                        owner.where(producer));
  }
  return Var(owner, owner.first_output(producer) + index);
}

const Var& Var::named(std::string_view name) const {
  tape().set_name(node(), name);
  return *this;
}

std::ostream& operator<<(std::ostream& stream, const Var& x) {
  return x.defined() ? stream << x.value() : stream << "undefined Var";
}

void throw_foreign(const Var& var, std::string_view operation, const Where& where) {
  if (!var.defined()) {
    throw TapeError(operation, "an argument is a Var without a value; assign one first", where);
  }
  if (!var.is_current()) {
    throw TapeError(operation, std::string("an argument ") + no_longer_there, where);
  }
  throw TapeError(operation,
                  "its arguments belong to different tapes; record them on one tape, or copy a "
                  "value with tape.constant(x.value())",
                  where);
}

void require_floating(const Var& x, std::string_view operation, const Where& where) {
  require_value(x, operation, where);
  if (is_floating(x.dtype())) return;
  throw DTypeError(operation,
                   "takes floating dtypes, not " + to_string(x.type()) + "; cast it first", where);
}

Tape& common_tape(std::span<const Var> vars, std::string_view operation, const Where& where) {
  if (vars.empty()) throw ArgumentError(operation, "needs at least one argument", where);
  require_value(vars[0], operation, where);
  Tape& tape = vars[0].tape().recording();
  for (const Var& var : vars) {
    if (var.belongs_to(tape)) continue;
    require_value(var, operation, where);
    if (&var.tape().recording() != &tape) throw_foreign(var, operation, where);
  }
  return tape;
}

}  // namespace palimpsest
