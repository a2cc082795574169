#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "nn/nn.h"
#include "palimpsest.h"

namespace palimpsest {

/// The layers of nn/ that the steps of a random program apply. A layer depends on the program's
/// seed and on the step's number alone, so it has the same bits in each recording.
class ComposedModules {
 public:
  struct Module {
    std::string line;           ///< description; contains "dropout" if it drops elements
    nn::Parameters parameters;  ///< in a scope of the step; some of them are frozen
    ValueType input;
    std::function<Var(const Var&)> call;
    bool in_checkpoint = false;
  };

  explicit ComposedModules(std::uint64_t seed) : seed_(seed) {}

  /// The module of a step. It is made by the first call, and shared by recordings with this object.
  const Module& of_step(std::uint32_t number);

 private:
  std::uint64_t seed_;
  std::map<std::uint32_t, Module> modules_;
};

}  // namespace palimpsest
