#include "tests/programs/composed_modules.h"

#include <random>
#include <utility>

namespace palimpsest {
namespace {

class ModuleMaker {
 public:
  ModuleMaker(std::uint64_t seed, std::uint32_t number)
      : random_(generator_of(seed, number)),
        dtype_(below(2) == 0 ? DType::f32 : DType::f64),
        scope_(nn::Parameters(seed, dtype_) / ("step" + std::to_string(number))) {}

  ComposedModules::Module make() {
    switch (below(10)) {
      case 0:
        linear();
        break;
      case 1:
        tied_linear();
        break;
      case 2:
        convolution();
        break;
      case 3:
        norm_of_rows();
        break;
      case 4:
        norm_of_groups();
        break;
      case 5:
      case 6:
        norm_of_batch();
        break;
      case 7:
        embedding();
        break;
      case 8:
        attention();
        break;
      default:
        below(2) == 0 ? recurrent() : sequence();
    }
    const bool frozen = below(5) == 0;
    if (frozen) scope_.freeze();
    const bool in_checkpoint = below(4) == 0;
    line_ = std::string(in_checkpoint ? "checkpoint of " : "") + (frozen ? "frozen " : "") + line_;
    return {line_, scope_, {shape_, dtype_}, call_, in_checkpoint};
  }

 private:
  static std::mt19937_64 generator_of(std::uint64_t seed, std::uint32_t number) {
    std::seed_seq sequence{static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32),
                           number, 11u};
    return std::mt19937_64(sequence);
  }
  std::uint64_t below(std::uint64_t n) { return random_() % n; }

  void set(std::string line, const Shape& shape, std::function<Var(const Var&)> call) {
    line_ = std::move(line);
    shape_ = shape;
    call_ = std::move(call);
  }

  void linear() {
    const nn::Linear layer(scope_, 3, 4, {.bias = below(2) == 0});
    set("linear", {2, 3}, [layer](const Var& x) { return layer(x); });
  }

  void tied_linear() {
    const nn::Linear first(scope_, 3, 3);
    const nn::Linear second(first.weight);
    set("tied linear", {2, 3}, [first, second](const Var& x) { return second(tanh(first(x))); });
  }

  void convolution() {
    const std::uint64_t axes = 1 + below(3);
    const nn::ConvolutionLayerOptions options{.bias = below(2) == 0};
    if (axes == 1) {
      const nn::Conv1d layer(scope_, 2, 3, 2, options);
      set("conv1d", {2, 2, 5}, [layer](const Var& x) { return layer(x); });
    } else if (axes == 2) {
      const nn::Conv2d layer(scope_, 2, 3, 2, options);
      set("conv2d", {2, 2, 3, 4}, [layer](const Var& x) { return layer(x); });
    } else {
      const nn::Conv3d layer(scope_, 1, 2, 2, options);
      set("conv3d", {1, 1, 3, 2, 3}, [layer](const Var& x) { return layer(x); });
    }
  }

  void norm_of_rows() {
    if (below(2) == 0) {
      const nn::LayerNorm layer(scope_, 4);
      set("layer norm", {3, 4}, [layer](const Var& x) { return layer(x); });
    } else {
      const nn::RmsNorm layer(scope_, 4);
      set("rms norm", {3, 4}, [layer](const Var& x) { return layer(x); });
    }
  }

  void norm_of_groups() {
    const nn::GroupNorm layer(scope_, 4, 2);
    set("group norm", {2, 4, 3}, [layer](const Var& x) { return layer(x); });
  }

  /// Some apply the layer twice, so that its running statistics are updated twice in a run.
  void norm_of_batch() {
    const nn::BatchNormLayer layer(scope_, 2);
    const bool is_training = below(4) != 0;
    scope_.set_training(is_training);
    const bool twice = below(3) == 0;
    set(std::string("batch norm") + (is_training ? "" : " by running statistics") +
            (twice ? ", twice" : ""),
        {4, 2, 3}, [layer, twice](const Var& x) {
          const Var y = layer(x);
          return twice ? layer(y * 0.5 + 1.0) : y;
        });
  }

  void embedding() {
    const nn::Embedding layer(scope_, 5, 3);
    std::vector<std::int64_t> ids(4);
    for (std::int64_t& id : ids) id = static_cast<std::int64_t>(below(5));
    const Tensor rows = Tensor::from(ids, {2, 2});
    set("embedding", {2, 2, 3},
        [layer, rows](const Var& x) { return layer(x.tape().constant(rows)) * x; });
  }

  /// "attention" is the name of an operation that may draw random numbers.
  void attention() {
    const nn::AttentionLayerOptions options{.causal = below(2) == 0,
                                            .dropout = below(3) == 0 ? 0.3 : 0};
    const nn::Attention layer(scope_, 4, 2, options);
    set(options.dropout > 0 ? "attention with dropout" : "multi-head layer", {2, 3, 4},
        [layer](const Var& x) { return layer(x); });
  }

  void recurrent() {
    const Shape shape{3, 2, 2};
    switch (below(3)) {
      case 0: {
        const nn::Rnn layer(scope_, 2, 2);
        return set("rnn", shape, [layer](const Var& x) { return layer(x).outputs; });
      }
      case 1: {
        const nn::Gru layer(scope_, 2, 2);
        return set("gru", shape, [layer](const Var& x) { return layer(x).outputs; });
      }
      default: {
        const nn::Lstm layer(scope_, 2, 2);
        return set("lstm", shape, [layer](const Var& x) {
          const LstmOutput made = layer(x);
          return made.outputs + made.state.c;
        });
      }
    }
  }

  void sequence() {
    const auto squashed = [](const Var& x) { return tanh(x); };
    const nn::Sequential layers(nn::Linear(scope_ / "first", 3, 2), squashed,
                                nn::Dropout(scope_, 0.4),
                                nn::Residual{nn::Linear(scope_ / "second", 2, 2)});
    scope_.set_training(below(3) != 0);
    set("sequential with dropout", {3, 3}, [layers](const Var& x) { return layers(x); });
  }

  std::mt19937_64 random_;
  DType dtype_;
  nn::Parameters scope_;
  std::string line_;
  Shape shape_;
  std::function<Var(const Var&)> call_;
};

}  // namespace

const ComposedModules::Module& ComposedModules::of_step(std::uint32_t number) {
  const auto known = modules_.find(number);
  if (known != modules_.end()) return known->second;
  return modules_.emplace(number, ModuleMaker(seed_, number).make()).first->second;
}

}  // namespace palimpsest
