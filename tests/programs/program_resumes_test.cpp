#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "autodiff/gradient.h"
#include "tests/autodiff/operation_rows.h"
#include "tests/cases.h"
#include "tests/catch.h"
#include "tests/programs/program_checks.h"

namespace program_resumes_test {

using namespace palimpsest;

// Journals of loops compare them between processes.
TEST_CASE("attributes of all operations are described by numbers, also those of derivatives") {
  std::set<std::string> without;
  std::map<std::string, std::set<std::vector<std::uint64_t>>> found;
  for (const RowFamily& family : row_families()) {
    for (const OperationRow& row : family.rows()) {
      Tape tape;
      std::vector<Var> inputs;
      std::vector<Var> parameters;
      for (const Tensor& input : row.inputs) {
        const bool is_parameter = is_floating(input.dtype());
        inputs.push_back(is_parameter ? tape.parameter(input) : tape.constant(input));
        if (is_parameter) parameters.push_back(inputs.back());
      }
      const Var made = row.call(inputs);
      if (row.order > 0) (void)gradient(sum(made), parameters);
      for (NodeId node = 0; node < tape.node_count(); ++node) {
        const Attributes& attributes = tape.attributes(node);
        std::vector<std::uint64_t> words;
        const std::string name(tape.operation(node).name);
        if (!attributes.describe(words) && attributes.may_come_again()) without.insert(name);
        found[name].insert(words);
      }
    }
  }
  CAPTURE(without);
  CHECK(without.empty());
  for (const char* name : {"sum", "roll", "clamp", "pad", "max_pool", "sparse_matmul"}) {
    CAPTURE(name);
    CHECK(found[name].size() > 1);
  }
}

TEST_CASE("a backward part that an earlier process began starts afresh after another has ended") {
  const ProgramText text = text_of("25254812:0,1,2,3,4,5");
  const Cell cell = cell_of(text.seed, 1);
  REQUIRE(cell.resumes);
  CHECK(problem_in(text, cell, reference_of(text)).value_or("") == "");
}

TEST_CASE("random programs with loops continue where their runs were ended") {
  const std::uint64_t programs = 20 + static_cast<std::uint64_t>(cases(1000));
  for (const std::uint64_t first : {std::uint64_t{1}, first_with_components}) {
    int checked = 0;
    for (std::uint64_t seed = first; seed < first + programs; ++seed) {
      const ProgramText text = program_of(seed);
      Tape tape;
      bool has_loop = false;
      for (const std::string& line : compose(tape, text).lines) {
        has_loop |= line.starts_with("scan") || line.starts_with("while");
      }
      if (!has_loop) continue;
      Cell cell = cell_of(seed, 0);
      cell.share.reset();
      cell.resumes = cell.mode != Cell::Mode::evaluated;
      const auto problem = problem_in(text, cell, reference_of(text));
      INFO("program " << to_string(text) << "\n"
                      << to_string(cell) << "\n"
                      << problem.value_or(""));
      CHECK_FALSE(problem.has_value());
      ++checked;
    }
    CAPTURE(first);
    CHECK(checked > 5);
  }
}

}  // namespace program_resumes_test
