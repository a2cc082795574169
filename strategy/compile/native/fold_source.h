#pragma once

#include <string>
#include <vector>

#include "strategy/compile/native/group_source.h"

namespace palimpsest {

/// C code that reduces the elements of strips, for one reduction of a group. Its statements use
/// these variables: `first` and `end` of the strip; for more elements than those of a strip also
/// `result`, `part`, `begin_of_part` and `end_of_part` of the segment that the strip is in.
class FoldSource {
 public:
  /// `table` gets the functions and attributes that the statements use.
  FoldSource(const GroupParts& parts, std::size_t index, std::vector<GroupSource::Entry>& table);

  /// The name of its state in the code.
  const std::string& name() const { return name_; }
  /// The variables that it needs.
  std::string declarations() const;
  /// Statements that reduce a strip of whole results. Its elements are at `x`.
  std::string whole_results(const std::string& x);
  /// Statements that begin a segment, add the strip at `x` to it, and finish it.
  std::string begin_segment();
  std::string add(const std::string& x);
  std::string end_segment();

 private:
  std::string rows(const std::string& x);
  std::string begin(const std::string& elements);
  std::string add(const std::string& x, const std::string& count);
  std::string end();
  std::string finish(const std::string& group);
  std::string address(const void* function);
  std::string attributes();

  const GroupParts& parts_;
  const GroupParts::Fold& fold_;
  const FoldKernel& kernel_;
  std::size_t index_;
  std::vector<GroupSource::Entry>& table_;
  std::string name_;
  std::string type_;  // of elements and results
};

}  // namespace palimpsest
