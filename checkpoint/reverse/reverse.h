#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "autodiff/error.h"
#include "autodiff/export.h"
#include "checkpoint/reverse/reverse_options.h"
#include "checkpoint/reverse/stored_object.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// A chain of steps as `ReverseRunner` sees it: one state and one adjoint, which all functions work
/// on in place.
class ReverseChain {
 public:
  virtual ~ReverseChain() = default;
  /// Makes state `step + 1` of state `step`.
  virtual void advance(std::uint64_t step) = 0;
  /// Makes the adjoint of state `first` from that of state `last`. State `first` is current; its
  /// content may be lost.
  virtual void reverse(std::uint64_t first, std::uint64_t last) = 0;
  /// Makes the adjoint of the current state, which is the last one.
  virtual void seed() = 0;
  /// Whether state `step`, which is current, is the last one.
  virtual bool done(std::uint64_t step) = 0;
  virtual bool has_done() const = 0;
  /// Whether `reverse` takes several steps at once.
  virtual bool has_segments() const = 0;
  virtual StoredObject& state() = 0;
  /// Null if its bytes are not known.
  virtual StoredObject* adjoint() = 0;
  /// Throws `ArgumentError` if the adjoint cannot be made of its bytes in another process.
  virtual void require_loadable_adjoint() const = 0;
  virtual std::span<const NamedObject> accumulated() = 0;
  virtual std::span<const NamedObject> inputs() = 0;
};

/// The driver without the types of states and adjoints.
class ReverseRunner {
 public:
  /// Throws `ArgumentError` for options that contradict each other.
  explicit ReverseRunner(ReverseOptions options, Where where = Where::current());
  ~ReverseRunner();
  ReverseRunner(ReverseRunner&&) noexcept;
  ReverseRunner& operator=(ReverseRunner&&) noexcept;

  /// Returns false if the run ended early and the journal continues it.
  bool run(ReverseChain& chain);
  /// A forecast of `run`, and a report on the last run.
  ReverseForecast forecast(ReverseChain& chain) const;
  const ReverseReport& report() const;

 private:
  struct Parts;
  /// Throws `ArgumentError` if this object was moved from.
  const std::shared_ptr<Parts>& parts() const;

  std::shared_ptr<Parts> parts_;  // a run holds it too, because its functions may move the driver
};

/// What a `ReverseDriver` needs to know of a program. States are numbered: step n makes state n + 1
/// of state n. Steps must be reproducible. With the same state, they make the same bits.
template <class State, class Adjoint = State>
struct ReverseFunctions {
  /// One step forward, in place.
  std::function<void(State& state, std::uint64_t step)> advance;
  /// The adjoint of step `step`: makes the adjoint of state `step`, which is given, from that of
  /// state `step + 1`. In place; `state` may be overwritten. Also adds what the step contributes to
  /// the accumulated objects.
  std::function<void(State& state, Adjoint& adjoint, std::uint64_t step)> reverse = {};
  /// The adjoint of steps `first` … `last - 1`, instead of `reverse`, for programs that record
  /// several steps on a tape. `state` is state `first`.
  std::function<void(State& state, Adjoint& adjoint, std::uint64_t first, std::uint64_t last)>
      reverse_segment = {};
  /// The adjoint of the last state.
  std::function<Adjoint(State& state)> seed;
  /// Whether state `step` is the last one. Only if `ReverseOptions::steps` is not given.
  std::function<bool(const State& state, std::uint64_t step)> done = {};
  /// The bytes of a state, and the state of its bytes. Not needed for states that `stored` takes.
  std::function<std::vector<std::byte>(const State& state)> save = {};
  std::function<State(std::span<const std::byte> bytes)> load = {};
  /// The bytes of an adjoint, and the adjoint of its bytes, to resume and with a lossy codec.
  /// Needed for adjoints that `stored` does not take. To resume, those that do not own their
  /// memory, such as spans, need them too.
  std::function<std::vector<std::byte>(const Adjoint& adjoint)> save_adjoint = {};
  std::function<Adjoint(std::span<const std::byte> bytes)> load_adjoint = {};
  /// What `reverse` adds to, such as a loss and the gradient of parameters: `{named("loss",
  /// loss)}`. They are saved and resumed. In a run that continues they have the sizes that they
  /// began with, or those of the last record.
  std::vector<NamedObject> accumulated = {};
  /// What the functions read and do not change, such as parameters. A journal of other ones is
  /// rejected.
  std::vector<NamedObject> inputs = {};
};

/// Computes the adjoint of a chain of steps within a budget of memory. States are kept in memory
/// and on disk, and the others are made again from these by as few steps as possible:
///
/// - A known number of steps: binomial checkpointing (Griewank and Walther, 2000). With a disk, the
///   cheapest two-tier schedule (Aupy, Herrmann, Hovland and Robert, 2016).
/// - An unknown number of steps: online checkpointing (Stumm and Walther, 2010; Wang, Moin and
///   Iaccarino, 2009). With a disk, periodic writes (Aupy and Herrmann, 2017).
/// - States whose sizes differ, and compressed states: online, by bytes.
///
/// With `ReverseOptions::resume`, a run that was killed at any moment continues, and its result has
/// the same bits.
///
///     ReverseFunctions<std::vector<double>> functions{
///         .advance = [&](auto& u, auto n) { step(u, n); },
///         .reverse = [&](auto& u, auto& adjoint, auto n) { adjoint_step(u, adjoint, n); },
///         .seed = [&](auto& u) { return gradient_of_loss(u); }};
///     ReverseDriver driver(functions, {.steps = 1'000'000, .memory_budget = 2_GiB});
///     const std::vector<double> gradient = *driver.run(u);
template <class State, class Adjoint = State>
class ReverseDriver {
  using Functions = ReverseFunctions<State, Adjoint>;

 public:
  /// Throws `ArgumentError` for options or functions that are missing or contradict each other.
  ReverseDriver(Functions functions, ReverseOptions options, Where where = Where::current())
      : functions_(std::make_shared<const Functions>(std::move(functions))),
        runner_(std::move(options), where) {
    if (!functions_->advance || !functions_->seed ||
        !functions_->reverse == !functions_->reverse_segment) {
      throw ArgumentError(
          "reverse",
          "functions are missing; give advance, seed, and one of reverse and reverse_segment",
          where);
    }
  }

  /// The adjoint of `state`, state 0. `state` is also the memory in which the steps run; its
  /// content is undefined afterwards. Nothing if the run ended early, as `stop_after` or `stop`
  /// wanted; running it again, in this process or another one, continues.
  ///
  /// Throws before the first step: `BudgetError` if the budget is too small, `FileError` if a
  /// directory cannot be used, `ArgumentError` if the journal is not of this run. Later:
  /// `EnvironmentError` when the disk is full, `ArgumentError` for states of other sizes and, with
  /// `check`, for steps that are not reproducible, and any exception of a function. `StoppedError`
  /// when stopped without `resume`, and with `group` a `RankError` when another rank fails. After
  /// an exception without `resume`, the accumulated objects have partial sums.
  std::optional<Adjoint> run(State& state) {
    runner_.report();  // refuses a driver that was moved from
    Chain chain(functions_, state);
    if (!runner_.run(chain)) return {};
    return std::move(chain.adjoint_value());
  }

  /// What `run` will take. Advances the state by a few steps and puts it back if the costs of the
  /// disk must be measured.
  ReverseForecast forecast(State& state) const {
    runner_.report();  // likewise
    Chain chain(functions_, state);
    return runner_.forecast(chain);
  }

  /// What the last run has taken.
  const ReverseReport& report() const { return runner_.report(); }

 private:
  class Chain final : public ReverseChain {
   public:
    Chain(std::shared_ptr<const Functions> functions, State& state)
        : held_(std::move(functions)),
          functions_(*held_),
          state_value_(state),
          state_(object(state, functions_.save, functions_.load)),
          adjoint_(object(adjoint_value_, functions_.save_adjoint, functions_.load_adjoint)) {
      if (state_ == nullptr) {
        throw ArgumentError(
            "[reverse] the bytes of the state are not known; give save and load, or give its type "
            "a member parts() that returns std::tie of what it consists of");
      }
    }

    void advance(std::uint64_t step) override { functions_.advance(state_value_, step); }
    void reverse(std::uint64_t first, std::uint64_t last) override {
      if (functions_.reverse) return functions_.reverse(state_value_, adjoint_value_, first);
      functions_.reverse_segment(state_value_, adjoint_value_, first, last);
    }
    void seed() override { adjoint_value_ = functions_.seed(state_value_); }
    bool done(std::uint64_t step) override { return functions_.done(state_value_, step); }
    bool has_done() const override { return static_cast<bool>(functions_.done); }
    bool has_segments() const override { return static_cast<bool>(functions_.reverse_segment); }
    StoredObject& state() override { return *state_; }
    StoredObject* adjoint() override { return adjoint_.get(); }
    void require_loadable_adjoint() const override {
      if constexpr (detail::Storable<Adjoint>) {
        // Numbers, and rows of them that can be resized, need no copy to be certain.
        constexpr bool is_certain =
            detail::Plain<Adjoint> || (detail::PlainRange<Adjoint> && detail::Resizable<Adjoint>);
        if (is_certain || functions_.load_adjoint) return;
        std::vector<std::byte> bytes;
        adjoint_->save([&](std::span<const std::byte> piece) {
          bytes.insert(bytes.end(), piece.begin(), piece.end());
        });
        Adjoint other{};
        try {
          stored(other)->load(std::ssize(bytes),
                              [from = bytes.data()](std::span<std::byte> piece) mutable {
                                std::copy_n(from, piece.size(), piece.data());
                                from += piece.size();
                              });
        } catch (const ArgumentError&) {
          throw ArgumentError(
              "[reverse] another process could not continue with the adjoint, because an empty "
              "object of its type cannot take its bytes; give save_adjoint and load_adjoint, or "
              "return a type that owns its memory from seed");
        }
      }
    }
    std::span<const NamedObject> accumulated() override { return functions_.accumulated; }
    std::span<const NamedObject> inputs() override { return functions_.inputs; }
    Adjoint& adjoint_value() { return adjoint_value_; }

   private:
    template <class T>
    static std::unique_ptr<StoredObject> object(
        T& value, const std::function<std::vector<std::byte>(const T&)>& save,
        const std::function<T(std::span<const std::byte>)>& load) {
      if (!save != !load) {
        throw ArgumentError("[reverse] one of save and load is missing; give both or none");
      }
      if (save) return std::make_unique<detail::ObjectByFunctions<T>>(value, save, load);
      if constexpr (detail::Storable<T>) {
        return stored(value);
      } else {
        return nullptr;
      }
    }

    std::shared_ptr<const Functions> held_;
    const Functions& functions_;
    State& state_value_;
    Adjoint adjoint_value_{};
    std::unique_ptr<StoredObject> state_;
    std::unique_ptr<StoredObject> adjoint_;
  };

  std::shared_ptr<const Functions> functions_;  // a run holds them too
  ReverseRunner runner_;
};

}  // namespace palimpsest
