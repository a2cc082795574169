#pragma once

#include <memory>
#include <vector>

#include "palimpsest.h"

namespace palimpsest {

/// What a function of the user changes while it is called for a tape.
struct TapeInUse {
  Tape& tape;
  EngineEvaluator& evaluator;
  Var x;      ///< a parameter
  Var other;  ///< a value of one element that was not computed
};

/// A public function that changes a tape or its evaluator.
struct TapeChange {
  enum class Kind : std::uint8_t {
    removes,    ///< never allowed while something is recorded or run
    records,    ///< allowed in functions that record, on their thread
    evaluator,  ///< allowed while nothing is computed
    runs_only,  ///< only its refusal in runs is checked
  };
  const char* name;
  Kind kind;
  void (*change)(const TapeInUse&);

  /// Whether a function of the user that a run or a recording calls may not make the change.
  bool is_refused(bool is_called_by_run, bool on_another_thread) const {
    if (is_called_by_run) return true;
    if (kind == Kind::evaluator) return false;
    return on_another_thread || kind == Kind::removes;
  }
};

inline const std::vector<TapeChange>& tape_changes() {
  using enum TapeChange::Kind;
  static const std::vector<TapeChange> all{
      {"clear", removes, [](const TapeInUse& s) { s.tape.clear(); }},
      {"copy_nodes", removes, [](const TapeInUse& s) { s.tape.copy_nodes(Tape()); }},
      {"accompany", removes, [](const TapeInUse& s) { s.tape.accompany(Tape()); }},
      {"set_generation", removes, [](const TapeInUse& s) { s.tape.set_generation(3); }},
      {"expire_handles", removes, [](const TapeInUse& s) { s.tape.expire_handles(); }},
      {"set_evaluator", removes, [](const TapeInUse& s) { s.tape.set_evaluator(nullptr); }},
      {"record", records, [](const TapeInUse& s) { static_cast<void>(s.x * 2.0); }},
      {"parameter", records, [](const TapeInUse& s) { s.tape.parameter(Tensor::ones({2})); }},
      {"constant", records, [](const TapeInUse& s) { s.tape.constant(Tensor::ones({2}), "c"); }},
      {"placeholder", records,
       [](const TapeInUse& s) { s.tape.placeholder({{2}, DType::f64}, Where::current()); }},
      {"find_or_record", records,
       [](const TapeInUse& s) { s.tape.find_or_record(Tensor::ones({2}), false, "w"); }},
      {"find_leaf", records, [](const TapeInUse& s) { s.tape.find_leaf(s.x.value()); }},
      {"update_after_run", runs_only,
       [](const TapeInUse& s) {
         s.tape.update_after_run(Tensor::zeros(s.x.shape(), s.x.dtype()), s.x);
       }},
      {"forget_updates", records, [](const TapeInUse& s) { s.tape.forget_updates(); }},
      {"set_seed", records, [](const TapeInUse& s) { s.tape.set_seed(0); }},
      {"set_part", records, [](const TapeInUse& s) { s.tape.set_part(0); }},
      {"fresh_stream", records, [](const TapeInUse& s) { s.tape.fresh_stream(); }},
      {"dropout", records, [](const TapeInUse& s) { dropout(s.x, 0.5); }},
      {"scope", records, [](const TapeInUse& s) { const auto scope = s.tape.scope("inner"); }},
      {"module scope", records,
       [](const TapeInUse& s) { const Tape::ModuleScope scope(s.tape, "inner"); }},
      {"no_gradient", records, [](const TapeInUse& s) { const auto none = s.tape.no_gradient(); }},
      {"named", records, [](const TapeInUse& s) { s.x.named("x"); }},
      {"set_buffer", runs_only,
       [](const TapeInUse& s) { s.tape.set_buffer(s.other.id(), Tensor::scalar(3).buffer()); }},
      {"drop", records, [](const TapeInUse& s) { s.tape.drop(s.other.id()); }},
      {"resize", runs_only, [](const TapeInUse& s) { s.tape.resize(s.other.id(), {}); }},
      {"value", records,
       [](const TapeInUse& s) {
         if (s.tape.has_value(s.other.id())) s.tape.drop(s.other.id());  // a stage computed it
         s.other.value();
       }},
      {"evaluate", records, [](const TapeInUse& s) { evaluate(s.other); }},
      {"backward", records, [](const TapeInUse& s) { backward(s.other); }},
      {"plan_backward", records, [](const TapeInUse& s) { plan_backward(s.other); }},
      {"forecast_backward", records, [](const TapeInUse& s) { forecast_backward(s.other); }},
      {"gradient", records, [](const TapeInUse& s) { gradient(s.other, s.x); }},
      {"jacobian", records, [](const TapeInUse& s) { jacobian(s.other, s.x); }},
      {"hessian", records, [](const TapeInUse& s) { hessian(s.other, s.x); }},
      {"checkpoint", records,
       [](const TapeInUse& s) { checkpoint([](const Var& v) { return sin(v); }, s.x); }},
      {"scan", records,
       [](const TapeInUse& s) {
         scan(s.x, 2, [](const Var& v, const StepNumber&) { return sin(v); });
       }},
      {"set_memory_budget", evaluator,
       [](const TapeInUse& s) { s.evaluator.set_memory_budget(unlimited); }},
      {"set_engine", evaluator,
       [](const TapeInUse& s) { s.evaluator.set_engine(s.evaluator.shared_engine()); }},
      {"release_memory", evaluator, [](const TapeInUse& s) { s.evaluator.release_memory(); }},
  };
  return all;
}

}  // namespace palimpsest
