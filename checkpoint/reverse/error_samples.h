#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/meter.h"
#include "checkpoint/reverse/extent_file.h"
#include "checkpoint/reverse/journal.h"
#include "checkpoint/reverse/reverse.h"

namespace palimpsest {

/// Estimates the error of a result whose states were kept by a lossy codec. Some windows of the
/// chain are reversed twice: as the run does, and from an exact state, both from the same adjoint.
///
/// The differences of accumulated objects add up over the windows of the chain. Let Δ be those of m
/// windows out of N. The square of the norm of all N together is estimated by N·mean|Δ|² + N·(N −
/// 1)·c, where c is the mean of the products ⟨Δᵢ, Δⱼ⟩ over i ≠ j. The adjoint's relative
/// differences are taken as independent, and as kept by the steps before a window. So they make up
/// √N of their root mean square, and on average over the chain 1/√2 of that, which adds to the
/// relative errors of accumulated objects.
class ErrorSamples {
 public:
  /// For a chain whose units have `segment` steps. States are written to the file if there is one.
  ErrorSamples(int samples, std::optional<std::uint64_t> steps, std::uint64_t segment,
               ReverseChain& chain, ExtentFile* file, Meter meter);
  ~ErrorSamples();
  ErrorSamples(const ErrorSamples&) = delete;
  ErrorSamples& operator=(const ErrorSamples&) = delete;

  /// State `step`, which begins a unit, is current for the first time, and is exact.
  void visit(std::uint64_t step);
  /// The chain has ended, with so many states kept.
  void end_sweep(std::uint64_t length, std::uint64_t kept);
  /// The steps from `left` on are reversed, and the adjoint is that of state `left`. May run steps
  /// again. Then no state is current.
  void reversed_to(std::uint64_t left);
  std::uint64_t steps_advanced() const { return steps_advanced_; }
  std::vector<ObjectError> errors() const;

  /// For a record of the journal, and from it. Needs a file. The caller releases the first entry.
  std::vector<JournalEntry> save() const;
  /// Returns false if the entries are damaged.
  bool load(const std::vector<JournalEntry>& entries);

  /// Bytes of copies of the adjoint and of the accumulated objects. The size of the adjoint is
  /// known only after the last step; that of the largest state is taken for it.
  static Bytes copies_bytes(Bytes largest_state, std::span<const Bytes> accumulated);
  /// Bytes of states, at a time.
  static Bytes states_bytes(int samples, Bytes largest_state, bool has_file);

 private:
  struct Sample {
    std::uint64_t first = 0;
    Bytes bytes = 0;
    Buffer memory = {};
    Extent extent = {};
  };
  /// An object of the result.
  struct Object {
    std::string name;
    StoredObject* object;
    std::vector<double> sum;  // of the differences
    double squares = 0;       // of their norms, or of the relative norms of the adjoint
  };
  bool is_place(std::uint64_t step) const;
  void drop(Sample& sample);
  bool load_exact(const Sample& sample);
  void copy_objects(std::vector<std::byte>& to) const;
  void put_objects(std::span<const std::byte> from);
  void compare(std::span<const std::byte> lossy);
  void replay(const Sample& sample, std::uint64_t last);

  int most_;
  std::uint64_t segment_;
  std::uint64_t distance_;
  std::uint64_t offset_;  // of the first sample
  ReverseChain& chain_;
  ExtentFile* file_;
  Meter meter_;
  std::vector<Sample> samples_;  // by step
  std::vector<Object> objects_;
  std::uint64_t length_ = 0;
  std::uint64_t window_ = 0;  // steps
  std::uint64_t begun_ = 0;   // last step of the window that is being reversed; 0: none
  std::uint64_t compared_ = 0;
  std::vector<std::byte> before_;  // the objects at the end of that window
  std::uint64_t steps_advanced_ = 0;
};

}  // namespace palimpsest
