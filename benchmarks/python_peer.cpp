#include "benchmarks/python_peer.h"

#include <cstdlib>
#include <iostream>
#include <stdexcept>

#include "benchmarks/process.h"

namespace palimpsest::benchmarks {
namespace {

std::optional<std::string> found_version(const std::string& script) {
  try {
    return Process(python_command(script, {}), {}).read_line();
  } catch (const std::runtime_error&) {
    return {};
  }
}

}  // namespace

std::vector<std::string> python_command(const std::string& script,
                                        const std::vector<std::string>& arguments) {
  const char* const python = std::getenv("PALIMPSEST_PYTHON");
  std::vector<std::string> result{python != nullptr ? python : "python3", script};
  result.insert(result.end(), arguments.begin(), arguments.end());
  return result;
}

std::optional<std::string> peer_version(const std::string& script, const std::string& package,
                                        int least) {
  std::optional<std::string> found = found_version(script);
  if (found && std::stoi(*found) >= least) {
    std::cout << package << ' ' << *found << '\n';
    return found;
  }
  std::cout << "There is no " << package << (least > 0 ? ' ' + std::to_string(least) : "")
            << " here to compare with (found: " << found.value_or("none")
            << "); name a Python that has it in PALIMPSEST_PYTHON.\n";
  return {};
}

double seconds_of_calls(Process& script, std::int64_t times) {
  script.write_line(std::to_string(times));
  return std::stod(script.read_line());
}

std::map<std::string, std::string> pytorch_tuning(int threads) {
  const std::string count = std::to_string(threads);
  return {{"OMP_NUM_THREADS", count},
          {"MKL_NUM_THREADS", count},
          {"MALLOC_TRIM_THRESHOLD_", "8589934592"},
          {"MALLOC_MMAP_THRESHOLD_", "8589934592"},
          {"MALLOC_TOP_PAD_", "67108864"}};
}

}  // namespace palimpsest::benchmarks
