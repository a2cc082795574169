#pragma once

#include <span>
#include <string>
#include <vector>

#include "strategy/compile/native/group_parts.h"

namespace palimpsest {

/// A loop over elements that computes the formulas of some operations of a group. Between stages,
/// the group calls kernels.
struct Stage {
  std::vector<std::uint32_t> operations;
};

/// Writes the functions of a stage, and the calls of them.
class StageSource {
 public:
  /// `buffered` marks slots that have a buffer of their own, such as copied loads.
  StageSource(const GroupParts& parts, const Stage& stage, std::size_t number,
              const std::vector<bool>& buffered);

  /// C statements that run the stage on elements [first, end) of the group, or on all elements if
  /// `whole`. Buffers begin with element `first`. Returns false if that takes too much code.
  bool write_calls(bool whole, std::string& to);
  /// A sum of elements that an operation of the stage makes in `slot`, and its state in the code.
  struct Sum {
    std::uint32_t slot;
    std::string state;
  };
  /// Statements that run the stage on the `strip` elements from `first` on, a multiple of
  /// 4·`width`. They are added to sums of `width` elements in the order of `PieceFold`, without
  /// buffers. The stage must be the only one, without loads.
  void write_sums(std::span<const Sum> sums, std::int64_t strip, std::int64_t width,
                  std::string& to);
  /// The functions that these statements call.
  const std::string& functions() const { return functions_; }

 private:
  /// A parameter of the functions.
  struct Parameter {
    enum class Kind : std::uint8_t { scalar, input, output, buffer, load } kind;
    std::uint32_t slot;
  };
  void collect();
  void need(std::uint32_t slot, std::vector<bool>& known);
  void need(Parameter parameter);
  void write_ranges(std::span<const ElementRange> ranges, const std::string& base, int depth,
                    bool whole, std::string& to);
  void write_leaf(const ElementRange& range, const std::string& base, bool whole, std::string& to);
  std::string argument(const Parameter& parameter, const ElementRange* range,
                       const std::string& begin, const std::string& skipped, bool whole) const;
  std::string load_argument(std::uint32_t slot, const ElementRange& range,
                            const std::string& skipped) const;
  std::string function_for(const ElementRange* range);
  /// The parameters of a function, statements before its loop, and statements for element `i`.
  struct Text {
    std::string header;
    std::string before;
    std::string loop;
  };
  Text text(const std::vector<std::int64_t>& steps, bool stores_buffers) const;
  bool is_made_here(std::uint32_t slot) const;

  const GroupParts& parts_;
  const Stage& stage_;
  std::size_t number_;
  const std::vector<bool>& buffered_;
  std::int64_t row_ = 0;  // length of rows that are never divided
  std::vector<Parameter> parameters_;
  std::vector<std::uint32_t> loads_;                 // slots of loads that are read
  std::vector<std::vector<std::int64_t>> variants_;  // steps of the loads, by function
  std::string functions_;
};

}  // namespace palimpsest
