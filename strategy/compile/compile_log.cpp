#include "strategy/compile/compile_log.h"

#include <array>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "autodiff/file_size_limit.h"
#include "strategy/compile/form_choice.h"

namespace palimpsest {
namespace {

constexpr std::array<std::string_view, 5> level_names = {"passes", "plan", "instructions", "native",
                                                         "all"};

/// `file.cpp:12`, without folders.
std::string line_of(const Tape& tape, NodeId node) {
  const std::string text = to_string(tape.where(node));
  const std::size_t folder = text.rfind('/');
  return folder == std::string::npos ? text : text.substr(folder + 1);
}

/// Source lines, each once, as in `a.cpp:12, 14, b.cpp:3`.
class Lines {
 public:
  void add(const std::string& line) {
    if (!seen_.insert(line).second) return;
    const std::size_t colon = line.rfind(':');
    const std::string file = line.substr(0, colon);
    text_.append(text_.empty() ? "" : ", ").append(file == file_ ? line.substr(colon + 1) : line);
    file_ = file;
  }
  const std::string& text() const { return text_; }

 private:
  std::set<std::string> seen_;
  std::string file_;
  std::string text_;
};

/// Lines of a list. Equal lines become one line with a count, as in `99 × tanh (a.cpp:14)`.
class CountedLines {
 public:
  void add(const std::string& line) {
    const auto [found, is_new] = place_.emplace(line, lines_.size());
    if (is_new) lines_.emplace_back(line, 0);
    ++lines_[found->second].second;
  }
  void write(std::ostream& stream) const {
    for (const auto& [line, count] : lines_) {
      stream << "    " << (count == 1 ? "" : std::to_string(count) + " × ") << line << '\n';
    }
  }

 private:
  std::vector<std::pair<std::string, int>> lines_;
  std::map<std::string, std::size_t> place_;
};

std::string name_of(const Tape& tape, NodeId node) {
  const std::string_view name = tape.name(node);
  return std::string(tape.operation(node).name) + (name.empty() ? "" : " " + std::string(name)) +
         " (" + line_of(tape, node) + ")";
}

/// The operations of a unit, in order, and the lines that recorded them.
std::string members_of(const Tape& tape, const Lowered& lowered, NodeId unit) {
  std::string operations;
  Lines lines;
  for (const NodeId node : lowered.members(unit)) {
    operations.append(operations.empty() ? "" : ", ").append(tape.operation(node).name);
    lines.add(line_of(tape, node));
  }
  return operations + " (" + lines.text() + ")";
}

std::string plural(std::int64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string bytes_or_none(Bytes bytes) {
  return bytes == unlimited ? "no budget" : "a budget of " + format_bytes(bytes);
}

}  // namespace

std::optional<DumpLevel> dump_level_of_environment() {
  const char* const asked = std::getenv("PALIMPSEST_DUMP");
  if (asked == nullptr || *asked == '\0') return {};
  for (std::size_t i = 0; i < level_names.size(); ++i) {
    if (level_names[i] == asked) return static_cast<DumpLevel>(i);
  }
  throw ArgumentError("[dump] PALIMPSEST_DUMP=" + std::string(asked) +
                      " is no level; use passes, plan, instructions, native or all");
}

std::unique_ptr<CompileLog> CompileLog::of_environment() {
  const std::optional<DumpLevel> level = dump_level_of_environment();
  return level ? std::make_unique<CompileLog>(*level) : nullptr;
}

std::ostream& CompileLog::line(std::string_view pass) { return text_ << "  " << pass << ": "; }

void CompileLog::begin(const Tape& tape, const ProgramSpec& spec, const RunOptions& options) {
  text_ << "compile " << plural(std::ssize(spec.targets), "target") << " of "
        << plural(tape.node_count(), "node");
  if (spec.backward_begins < tape.node_count()) {
    text_ << ", backward part from node " << spec.backward_begins;
  }
  text_ << ", for " << plural(spec.threads, "thread") << ", "
        << bytes_or_none(options.memory_budget)
        << (options.planner != nullptr ? ", planner " + options.planner->name() : "") << '\n';
}

void CompileLog::loop_state_budgets(const std::string& summary) {
  if (!summary.empty()) line("reserve loop state budgets") << summary << '\n';
}

void CompileLog::common_subexpressions(const Tape& tape, const Simplification& simplification) {
  line("eliminate common subexpressions, fold constants")
      << plural(simplification.common_subexpressions(), "node") << " removed, "
      << plural(std::ssize(simplification.folded_constants()), "node") << " folded\n";
  CountedLines removed;
  for (NodeId node = 0; node < tape.node_count(); ++node) {
    const ValueId value = tape.first_output(node);
    const ValueId other = simplification.replacement(value);
    if (other == value) continue;
    removed.add(name_of(tape, node) + " is " + name_of(tape, tape.producer(other)));
  }
  for (const auto& [node, attributes] : simplification.folded_constants()) {
    removed.add(name_of(tape, node) + " is a constant");
  }
  removed.write(text_);
}

void CompileLog::cache_budget(const RunOptions& options, Bytes chosen) {
  if (chosen == options.memory_budget) return;
  line("fit cache budget") << bytes_or_none(chosen)
                           << ", so that values stay in the machine's caches\n";
}

void CompileLog::lowered(const Tape& tape, const Lowered& lowered, GraphForm form) {
  const std::vector<NodeId> units = lowered.graph().needed_nodes();
  line("lower") << (form.fuse ? "fused" : "unfused") << (form.simplify ? "" : ", as recorded")
                << ", " << plural(std::ssize(units), "unit") << ", "
                << plural(lowered.groups(), "fused kernel") << '\n';
  CountedLines fused;
  for (const NodeId unit : units) {
    std::string how;
    if (lowered.program(unit) != nullptr && lowered.members(unit).size() > 1) how = "one kernel";
    if (lowered.epilogue(unit) != nullptr) how = "an epilogue";
    if (lowered.accumulates(unit)) how = "accumulated into the product";
    if (!how.empty()) fused.add(members_of(tape, lowered, unit) + ": " + how);
  }
  fused.write(text_);
}

void CompileLog::planned(const Tape& tape, const Lowered& lowered, const Plan& plan) {
  line("plan") << plan.summary() << '\n';
  const Graph& graph = lowered.graph();
  std::vector<bool> computed(graph.node_count());
  CountedLines recomputed;
  for (const Step& step : plan.schedule.steps) {
    if (step.kind != Step::Kind::compute) continue;
    if (computed[step.id]) recomputed.add(members_of(tape, lowered, step.id) + ": recomputed");
    computed[step.id] = true;
  }
  recomputed.write(text_);
  if (!shows_plan()) return;
  computed.assign(graph.node_count(), false);
  for (const Step& step : plan.schedule.steps) {
    if (step.kind == Step::Kind::compute) {
      text_ << (computed[step.id] ? "    recompute unit " : "    compute unit ") << step.id << ": "
            << members_of(tape, lowered, step.id) << '\n';
      computed[step.id] = true;
    } else {
      text_ << "    drop value " << step.id << ", " << format_bytes(graph.bytes(step.id))
            << ", of unit " << graph.producer(step.id) << '\n';
    }
  }
}

void CompileLog::free_memory(Bytes budget) {
  line("fit free memory") << bytes_or_none(budget) << ", since less memory is free; again\n";
}

void CompileLog::emitted(const Tape& tape, const Instructions& instructions) {
  line("emit instructions") << plural(std::ssize(instructions.steps()), "step") << ", an arena of "
                            << format_bytes(instructions.arena_size()) << '\n';
  if (!shows_instructions()) return;
  const auto place = [&](Instructions::Place at) {
    if (at == instructions.empty_place()) return std::string("empty");
    if (instructions.is_source(at)) {
      const ValueId value = instructions.sources()[at - instructions.source_place(0)];
      return "leaf " + tape.describe(tape.producer(value));
    }
    const Interval& interval = instructions.intervals()[at];
    return std::to_string(interval.offset) + "+" + std::to_string(interval.bytes);
  };
  for (std::size_t k = 0; k < instructions.steps().size(); ++k) {
    const Instructions::Instruction& step = instructions.steps()[k];
    if (step.unit == none || (step.operation == nullptr && step.group == nullptr)) continue;
    text_ << "    " << k << " " << members_of(tape, instructions.lowered(), step.unit) << ":";
    for (std::uint32_t i = 0; i < step.inputs + step.outputs; ++i) {
      text_ << (i == 0             ? " "
                : i == step.inputs ? " -> "
                                   : ", ")
            << place(instructions.places()[step.first_operand + i]);
    }
    text_ << '\n';
  }
}

void CompileLog::refused(const BudgetError& refusal) { line("refused") << refusal.what() << '\n'; }

void CompileLog::write(std::ostream& stream) {
  stream << text_.str();
  text_.str({});
}

void CompileLog::write_where_environment_says() {
  write_dump(text_.str());
  text_.str({});
}

void write_dump(std::string_view text) {
  static std::mutex mutex;  // programs of several threads are written one after the other
  const std::lock_guard lock(mutex);
  const char* const path = ::secure_getenv("PALIMPSEST_DUMP_FILE");
  if (path == nullptr || *path == '\0') {
    std::cerr << text;
    return;
  }
  const FileSizeScope no_signal;
  std::ofstream file(path, std::ios::app);
  file << text;
  file.close();
  if (!file)
    throw FileError("[dump] cannot write " + std::string(path) +
                    "; set PALIMPSEST_DUMP_FILE to another file");
}

}  // namespace palimpsest
