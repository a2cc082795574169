#include "strategy/export/emit_optimizer.h"

#include "strategy/export/c_text.h"
#include "strategy/training/optimizer.h"

namespace palimpsest {
namespace {

void require_no_groups(const std::vector<ParameterGroup>& groups, const Where& where) {
  if (groups.empty()) return;
  throw ArgumentError("export_c",
                      "the optimizer has " + std::to_string(groups.size()) +
                          " groups of parameters, which are not exported; export without groups",
                      where);
}

}  // namespace

COptimizerText::COptimizerText(const COptimizer& optimizer, const Where& where)
    : optimizer_(optimizer) {
  if (const auto* options = std::get_if<SgdOptions>(&optimizer)) {
    require_no_groups(options->groups, where);
    sgd(*options);  // checks the settings
    kind_ = "sgd";
    if (options->momentum != 0) slots_ = {"momentum"};
    learning_rate_ = options->learning_rate;
  } else if (const auto* options = std::get_if<AdamOptions>(&optimizer)) {
    require_no_groups(options->groups, where);
    adam(*options);
    kind_ = "adam";
    slots_ = {"mean", "square"};
    learning_rate_ = options->learning_rate;
  } else if (const auto* options = std::get_if<AdamWOptions>(&optimizer)) {
    require_no_groups(options->groups, where);
    adamw(*options);
    kind_ = "adamw";
    slots_ = {"mean", "square"};
    learning_rate_ = options->learning_rate;
  }
  counts_steps_ = slots_.size() == 2;
}

std::string COptimizerText::function_name(DType dtype) const {
  return "@" + kind_ + "_" + std::string(name_of(dtype));
}

std::string COptimizerText::function(DType dtype) const {
  const std::string type = c_type(dtype);
  std::string text =
      "@@FUNCTION void " + function_name(dtype) + "(" + type + " *p, const " + type + " *g, ";
  for (const std::string& slot : slots_) text += type + " *" + slot + ", ";
  text += "long n, double learning_rate";
  text += counts_steps_ ? ", double steps) {\n" : ") {\n";
  return text + (kind_ == "sgd" ? sgd_body(dtype) : adam_body(dtype)) + "}\n";
}

std::string COptimizerText::sgd_body(DType dtype) const {
  const auto& options = std::get<SgdOptions>(optimizer_);
  const std::string direction =
      options.weight_decay == 0 ? std::string("g[i]")
                                : "(g[i] + " + c_literal(options.weight_decay, dtype) + " * p[i])";
  if (options.momentum == 0) {
    return filled(R"(  const $T rate = ($T)learning_rate;
  for (long i = 0; i < n; ++i) p[i] -= rate * $direction;
)",
                  {{"T", c_type(dtype)}, {"direction", direction}});
  }
  return filled(R"(  const $T rate = ($T)learning_rate;
  for (long i = 0; i < n; ++i) {
    const $T direction = $direction;
    momentum[i] = $momentum * momentum[i] + direction;
    p[i] -= rate * $step;
  }
)",
                {{"T", c_type(dtype)},
                 {"direction", direction},
                 {"momentum", c_literal(options.momentum, dtype)},
                 {"step", options.nesterov ? "(direction + " + c_literal(options.momentum, dtype) +
                                                 " * momentum[i])"
                                           : std::string("momentum[i]")}});
}

std::string COptimizerText::adam_body(DType dtype) const {
  const bool decoupled = kind_ == "adamw";
  AdamOptions options;
  if (decoupled) {
    const auto& given = std::get<AdamWOptions>(optimizer_);
    options = {given.learning_rate, given.beta1,        given.beta2,
               given.epsilon,       given.weight_decay, {}};
  } else {
    options = std::get<AdamOptions>(optimizer_);
  }
  const bool decays = options.weight_decay != 0;
  const std::string decay = c_literal(options.weight_decay, dtype);
  return filled(
      R"(  const $T rate = ($T)(learning_rate / (1 - pow($wide1, steps)));
  const $T scale = ($T)(1 / sqrt(1 - pow($wide2, steps)));
$shrink  for (long i = 0; i < n; ++i) {
    const $T gradient = $gradient;
$shrinking    mean[i] = $beta1 * mean[i] + (1 - $beta1) * gradient;
    square[i] = $beta2 * square[i] + (1 - $beta2) * gradient * gradient;
    p[i] -= rate * mean[i] / ($sqrt(square[i]) * scale + $epsilon);
  }
)",
      {{"T", c_type(dtype)},
       {"wide1", c_literal(options.beta1, DType::f64)},
       {"wide2", c_literal(options.beta2, DType::f64)},
       {"beta1", c_literal(options.beta1, dtype)},
       {"beta2", c_literal(options.beta2, dtype)},
       {"epsilon", c_literal(options.epsilon, dtype)},
       {"sqrt", c_function("sqrt", dtype)},
       {"gradient", decoupled || !decays ? std::string("g[i]") : "g[i] + " + decay + " * p[i]"},
       {"shrink",
        decoupled && decays
            ? filled("  const $T shrink = ($T)(1 - learning_rate * $decay);\n",
                     {{"T", c_type(dtype)}, {"decay", c_literal(options.weight_decay, DType::f64)}})
            : std::string()},
       {"shrinking", decoupled && decays ? "    p[i] *= shrink;\n" : ""}});
}

}  // namespace palimpsest
