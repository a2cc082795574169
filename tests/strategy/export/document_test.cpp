#include <filesystem>
#include <regex>
#include <set>
#include <source_location>

#include "autodiff/files.h"
#include "autodiff/operation.h"
#include "strategy/export/emitters.h"
#include "tests/catch.h"

namespace palimpsest::export_document_test {
namespace {

/// A file of the source tree, which the program finds from its own place in the build folder.
std::string source_file(const std::string& name) {
  namespace fs = std::filesystem;
  const fs::path build = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  const fs::path here = build / std::source_location::current().file_name();
  const fs::path root = here.parent_path().parent_path().parent_path().parent_path();
  return (root / name).lexically_normal().string();
}

TEST_CASE("the page lists the operations that are exported", "[export]") {
  const std::string page = read_file(source_file("docs/export-c.md"), "test");
  const std::size_t begin = page.find("| topic | operations |");
  const std::string table = page.substr(begin, page.find("Adjoints of functions", begin) - begin);
  std::set<std::string> listed;
  const std::regex name("`([a-z0-9_]+)`");
  for (std::sregex_iterator at(table.begin(), table.end(), name), end; at != end; ++at) {
    listed.insert((*at)[1]);
  }
  std::set<std::string> exported;
  for (const Operation* operation : operations()) {
    const std::string each(operation->name);
    const bool is_there =
        operation->leaf || operation->view || find_c_emitter(operation->name) != nullptr;
    if (!is_there) continue;
    // Adjoints of elementwise functions are not listed by themselves.
    const std::string function = each.substr(0, each.rfind("_adjoint"));
    const bool is_adjoint = function != each && operation->pointwise != nullptr;
    if (!is_adjoint) exported.insert(each);
  }
  CHECK(listed == exported);
}

}  // namespace
}  // namespace palimpsest::export_document_test
