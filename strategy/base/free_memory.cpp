#include "strategy/base/free_memory.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>

#include "checkpoint/plan.h"

namespace palimpsest {
namespace {

/// The number that is the content of a file; nothing for other content, such as `max`.
std::optional<Bytes> number_in(const std::string& path) {
  std::ifstream file(path);
  Bytes number = 0;
  if (!(file >> number)) return {};
  return number;
}

/// The number that follows `key` on a line.
std::optional<Bytes> number_of(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    Bytes number = 0;
    if (words >> word >> number && word == key) return number;
  }
  return {};
}

/// Names of a control group's files.
struct GroupFiles {
  const char* limit;
  const char* usage;
  const char* cached;  // key in memory.stat
};
constexpr GroupFiles version_1{"/memory.limit_in_bytes", "/memory.usage_in_bytes",
                               "total_inactive_file"};
constexpr GroupFiles version_2{"/memory.max", "/memory.current", "inactive_file"};

Bytes left_in(const std::string& folder, const GroupFiles& files) {
  const std::optional<Bytes> limit = number_in(folder + files.limit);
  const std::optional<Bytes> usage = number_in(folder + files.usage);
  if (!limit || !usage) return unlimited;
  const Bytes cached = number_of(folder + "/memory.stat", files.cached).value_or(0);
  return std::max<Bytes>(0, *limit - std::max<Bytes>(0, *usage - cached));
}

/// The minimum over a group and its ancestors. In a container the path may be one of the host; then
/// only the group at the mount is visible.
Bytes left_around(const std::string& mount, std::string path, const GroupFiles& files) {
  Bytes left = left_in(mount, files);
  while (path.size() > 1) {
    left = std::min(left, left_in(mount + path, files));
    path.resize(path.rfind('/'));
  }
  return left;
}

}  // namespace

Bytes free_memory(const std::string& root) {
  Bytes left = unlimited;
  if (const auto kib = number_of(root + "/proc/meminfo", "MemAvailable:")) left = *kib * 1024;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    // HIERARCHY:CONTROLLERS:PATH
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      left = std::min(left, left_around(root + "/sys/fs/cgroup", path, version_2));
    } else if (controllers.find(",memory,") != std::string::npos) {
      left = std::min(left, left_around(root + "/sys/fs/cgroup/memory", path, version_1));
    }
  }
  return left;
}

std::optional<Bytes> budget_of_free_memory(Bytes peak, Bytes kept, const FreeMemory& free) {
  constexpr Bytes little = 64_MiB;
  if (peak <= little || peak <= kept) return {};
  const Bytes left = free();
  const Bytes most = left - left / 16;
  if (peak - kept <= most) return {};
  return kept + most;
}

}  // namespace palimpsest
