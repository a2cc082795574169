#pragma once

#include <cstdint>
#include <type_traits>

namespace palimpsest {

/// A non-owning reference to a callable that takes a half-open range. Valid as long as the
/// callable.
class RangeFunction {
 public:
  template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, RangeFunction>)
  // NOLINTNEXTLINE(google-explicit-constructor): lambdas are passed where this is expected
  RangeFunction(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* object, std::int64_t begin, std::int64_t end) {
          (*static_cast<std::remove_reference_t<F>*>(object))(begin, end);
        }) {}
  void operator()(std::int64_t begin, std::int64_t end) const { call_(object_, begin, end); }

 private:
  void* object_;
  void (*call_)(void*, std::int64_t, std::int64_t);
};

/// Calls `f` on the chunks [0, grain), [grain, 2·grain) … of [0, n) in parallel. Runs in the
/// caller's TBB arena, isolated from its other tasks. Chunks depend on n and grain only, so kernels
/// whose results depend on the chunks give the same bits with any number of threads.
void parallel_chunks(std::int64_t n, std::int64_t grain, RangeFunction f);

/// A grain for chunks of about 32 Ki simple operations, when one item costs `item_cost` operations.
constexpr std::int64_t grain_for(double item_cost) {
  const double items = 32768.0 / (item_cost > 1 ? item_cost : 1);
  return items < 1 ? 1 : static_cast<std::int64_t>(items);
}

/// a/b rounded up.
constexpr std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }
/// The smallest multiple of `step` that is at least a.
constexpr std::int64_t round_up(std::int64_t a, std::int64_t step) {
  return divide_up(a, step) * step;
}

/// While one exists, `parallel_chunks` on this thread uses no other threads; or uses them again, if
/// not `serial`. A process whose kernels are all short so never starts TBB, which takes longer than
/// they do.
class SerialScope {
 public:
  explicit SerialScope(bool serial);
  ~SerialScope();
  SerialScope(const SerialScope&) = delete;
  SerialScope& operator=(const SerialScope&) = delete;

 private:
  bool before_;
};

/// Upper bound on threads that run at once in the caller's arena.
int max_threads();

/// Index of the calling thread in its arena, in [0, max_threads()). Selects its share of a
/// workspace.
int thread_index();

}  // namespace palimpsest
