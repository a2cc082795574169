#include "autodiff/custom.h"

#include <new>
#include <type_traits>

#include "autodiff/enumerators.h"
#include "autodiff/in_use.h"
#include "autodiff/run_scope.h"

namespace palimpsest {

struct CustomOperation::State {
  explicit State(CustomDefinition user);

  CustomDefinition definition;
  Operation operation;
};

namespace {

/// Attributes that own the operation of their node; both live as long as the node.
template <class State>
struct Owner {
  using IsOfOneTape = void;  // user functions may count rounds themselves

  std::shared_ptr<const State> state;

  bool operator==(const Owner&) const = default;
};

template <class State>
const CustomDefinition& definition_of(const Attributes& attributes) {
  return attributes.as<Owner<State>>().state->definition;
}

std::vector<Tensor> tensors_of(std::span<const Operand> operands) {
  std::vector<Tensor> tensors;
  tensors.reserve(operands.size());
  for (const Operand& operand : operands) {
    tensors.emplace_back(Buffer(Buffer(), operand.data), operand.shape(), operand.dtype());
  }
  return tensors;
}

void pull_back(const CustomDefinition& definition, const Pullback& p) {
  const auto refuse = [&](std::size_t i, const std::string& what) {
    throw ArgumentError(definition.name,
                        "a derivative with respect to argument " + std::to_string(i) + " " +
                            to_string(p.input(i).type()) + " is needed, but " + what,
                        p.where());
  };
  for (std::size_t i = 0; i < p.input_count() && definition.vjp == nullptr; ++i) {
    if (p.wants(i)) {
      refuse(i, "the operation has no vjp; define one, or pass stop_gradient of the argument");
    }
  }
  definition.vjp(p);
  for (std::size_t i = 0; i < p.input_count(); ++i) {
    if (p.wants(i) && !p.is_set(i)) {
      refuse(i, "its vjp did not set it; call set(" + std::to_string(i) + ", …), or set_none(" +
                    std::to_string(i) + ") if no gradient flows to it");
    }
  }
}

/// The result of a user's function about a node. Its exceptions become errors that name the
/// operation and the line that recorded the node; lack of memory stays what it is.
template <class F>
auto asked_of_user(const NodeView& node, const char* function, F f) {
  const auto refuse = [&](const std::string& what) {
    throw ArgumentError(node.operation().name, "its " + std::string(function) + " " + what,
                        node.where());
  };
  const UserCall call;
  try {
    auto result = f();
    if constexpr (std::is_same_v<decltype(result), Bytes>) {
      if (result < 0) refuse("returned " + std::to_string(result) + " bytes; return 0 or more");
    }
    return result;
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const Error&) {
    throw;
  } catch (const std::exception& error) {
    refuse("threw: " + std::string(error.what()));
  } catch (...) {
    refuse("threw an unknown exception");
  }
  return decltype(f())();
}

}  // namespace

CustomOperation::State::State(CustomDefinition user) : definition(std::move(user)) {
  operation.name = definition.name;
  operation.formula = "defined by the user";
  operation.summary = "user-defined operation";
  operation.half = definition.half;
  operation.mixed = MixedPrecision::recorded;
  operation.opaque = !definition.shares_threads;
  operation.of_user = true;
  operation.compute = [](const KernelCall& call) {
    const std::vector<Tensor> inputs = tensors_of(call.inputs);
    const std::vector<Tensor> outputs = tensors_of(call.outputs);
    const UserCall user;
    definition_of<State>(call.attributes)
        .forward({inputs, outputs, call.workspace, call.threads, call.round,
                  call.scope != nullptr ? call.scope->control : nullptr, call.scope});
  };
  operation.vjp = [](const Pullback& p) {
    const Attributes attributes = p.attributes();  // a copy, because the tape grows meanwhile
    pull_back(definition_of<State>(attributes), p);
  };
  if (definition.cost != nullptr) {
    operation.cost = [](const NodeView& node) {
      const CustomDefinition& user = definition_of<State>(node.attributes());
      return asked_of_user(node, "cost", [&] { return user.cost(node); });
    };
  }
  if (definition.workspace != nullptr) {
    operation.workspace = [](const NodeView& node, int threads) {
      const CustomDefinition& user = definition_of<State>(node.attributes());
      return asked_of_user(node, "workspace", [&] { return user.workspace(node, threads); });
    };
  }
}

const CustomDefinition* CustomOperation::definition(const NodeView& node) {
  if (!node.operation().of_user) return nullptr;
  return &definition_of<State>(node.attributes());
}

CustomOperation::CustomOperation(CustomDefinition definition, Where where) {
  if (definition.name.empty()) {
    throw ArgumentError("custom", "the operation needs a name; set it in the definition", where);
  }
  if (definition.forward == nullptr) {
    throw ArgumentError(definition.name,
                        "the operation has no forward function; set it in the definition", where);
  }
  require_enumerator(definition.half, {HalfSupport::widened, HalfSupport::native}, definition.name,
                     "its support of 16 bits", where);
  state_ = std::make_shared<const State>(std::move(definition));
}

Var CustomOperation::operator()(Tape& tape, std::span<const Var> inputs, Where where) const {
  std::vector<ValueType> types;
  for (const Var& input : inputs) types.push_back(input.type());
  if (state_->definition.types != nullptr) {
    const InUse::Use use(tape.recording().in_use(), tape_use::inner_program,
                         state_->definition.name, &where);
    types = state_->definition.types(types);
  } else if (!types.empty()) {
    types.resize(1);
  }
  if (types.empty()) {
    throw ArgumentError(state_->definition.name,
                        "the operation has no output; return at least one type from `types`",
                        where);
  }
  return tape.record(state_->operation, inputs, types, Owner<State>{state_}, where);
}

Var CustomOperation::operator()(std::span<const Var> inputs, Where where) const {
  return (*this)(common_tape(inputs, state_->definition.name, where), inputs, where);
}

Var CustomOperation::operator()(std::initializer_list<Var> inputs, Where where) const {
  return (*this)(std::span<const Var>(inputs.begin(), inputs.size()), where);
}

}  // namespace palimpsest
