#include "strategy/compile/native/machine_code.h"

#include <algorithm>
#include <utility>

namespace palimpsest {

MachineCode::MachineCode(ProgramSource source, LoadedLibrary loaded)
    : loaded_(std::move(loaded)),
      table_(std::move(source.table)),
      literals_(std::move(source.literals)),
      products_(std::move(source.products)),
      is_complete_(source.is_complete) {
  const NativeLibrary& library = *loaded_.library;
  for (const ProgramSource::Group& group : source.groups) {
    Group& made = groups_.emplace_back();
    if (group.name.empty()) continue;
    made.code = reinterpret_cast<FusedKernel::Code>(library.function(group.name));
    made.first_entry = group.first_entry;
  }
  if (source.has_run) run_ = reinterpret_cast<Run>(library.function("run"));
}

bool MachineCode::runs(const Tape& tape) const {
  if (run_ == nullptr) return false;
  return std::ranges::all_of(products_, [&](const ProgramSource::Product& product) {
    return tape.attributes(product.node) == product.attributes;
  });
}

bool MachineCode::fits(std::span<const FusedKernel::Number> numbers) const {
  return std::ranges::all_of(literals_, [&](const GroupSource::Literal& literal) {
    return numbers[literal.index].bytes == literal.number.bytes;
  });
}

void MachineCode::fill_table(const Tape& tape, std::vector<const void*>& table) const {
  table.resize(table_.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    const GroupSource::Entry& entry = table_[i];
    table[i] = entry.node == none ? entry.address : &tape.attributes(entry.node);
  }
}

}  // namespace palimpsest
