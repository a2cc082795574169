#include "tests/strategy/export/exported_runs.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "autodiff/files.h"
#include "strategy/export/c_text.h"
#include "tests/temporary_directory.h"

namespace palimpsest {
namespace {

/// The C function that reads the arguments of run `i`, calls the exported one and writes
/// everything.
std::string call_text(const CRun& run, std::size_t i) {
  const ExportedC& exported = run.exported;
  std::string text = "static void run_" + std::to_string(i) + "(FILE *in, FILE *out) {\n";
  std::string arguments;
  for (std::size_t k = 0; k < exported.pointers.size(); ++k) {
    const CPointer& pointer = exported.pointers[k];
    const std::int64_t elements = pointer.type.shape.elements();
    const std::string name = "p" + std::to_string(k);
    text += "  static " + c_type(pointer.type.dtype) + " " + name + "[" +
            std::to_string(std::max<std::int64_t>(elements, 1)) + "];\n";
    text += "  get(in, " + name + ", " + std::to_string(pointer.type.bytes()) + ");\n";
    arguments += (k == 0 ? "" : ", ") + name;
  }
  if (exported.has_state) {
    text += "  static " + exported.name + "_state state;\n";
    arguments += ", &state";
  }
  if (exported.has_learning_rate) arguments += ", " + c_literal(run.learning_rate, DType::f64);
  text += "  int status = 0;\n  for (int call = 0; call < " + std::to_string(run.calls) +
          "; ++call) status = " + exported.name + "(" + arguments + ");\n";
  text += "  fwrite(&status, sizeof status, 1, out);\n";
  for (std::size_t k = 0; k < exported.pointers.size(); ++k) {
    text += "  fwrite(p" + std::to_string(k) + ", 1, " +
            std::to_string(exported.pointers[k].type.bytes()) + ", out);\n";
  }
  return text + "}\n\n";
}

/// A program that includes the exported files with this suffix.
std::string main_text(const std::vector<CRun>& runs, const char* suffix) {
  std::string text;
  for (const CRun& run : runs) text += "#include \"" + run.exported.name + suffix + "\"\n";
  text += R"(
#include <stdio.h>
#include <stdlib.h>

static void get(FILE *in, void *to, size_t bytes) {
  if (bytes > 0 && fread(to, 1, bytes, in) != bytes) exit(3);
}

)";
  std::string calls;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    text += call_text(runs[i], i);
    calls += "  run_" + std::to_string(i) + "(in, out);\n";
  }
  return text + R"(int main(int count, char **words) {
  if (count != 3) return 2;
  FILE *in = fopen(words[1], "rb");
  FILE *out = fopen(words[2], "wb");
  if (in == NULL || out == NULL) return 2;
)" + calls +
         "  fclose(in);\n  return fclose(out) == 0 ? 0 : 2;\n}\n";
}

void write_tensors(const std::vector<CRun>& runs, const std::string& path) {
  std::ofstream file(path, std::ios::binary);
  for (const CRun& run : runs) {
    for (std::size_t k = 0; k < run.exported.pointers.size(); ++k) {
      const auto bytes = static_cast<std::size_t>(run.exported.pointers[k].type.bytes());
      if (k < run.tensors.size() && run.tensors[k].defined()) {
        file.write(reinterpret_cast<const char*>(run.tensors[k].buffer().get()),
                   static_cast<std::streamsize>(bytes));
      } else {
        file << std::string(bytes, '\x55');  // results must be written
      }
    }
  }
}

std::vector<CResult> read_results(const std::vector<CRun>& runs, const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<CResult> results;
  for (const CRun& run : runs) {
    CResult& result = results.emplace_back();
    file.read(reinterpret_cast<char*>(&result.status), sizeof result.status);
    for (const CPointer& pointer : run.exported.pointers) {
      Tensor& tensor =
          result.tensors.emplace_back(Tensor::zeros(pointer.type.shape, pointer.type.dtype));
      file.read(reinterpret_cast<char*>(tensor.buffer().get()), pointer.type.bytes());
    }
  }
  if (!file) throw std::runtime_error("the exported program wrote too little");
  return results;
}

void execute(const std::string& command, const std::string& messages) {
  if (std::system((command + " > " + messages + " 2>&1").c_str()) == 0) return;
  throw std::runtime_error(command + "\n" + read_file(messages, "test"));
}

/// Compiles the files of a program that includes those with this suffix, and runs it.
std::vector<CResult> run_files(const std::vector<CRun>& runs, const std::string& compiler,
                               const char* suffix, const std::vector<std::string>& files) {
  const TemporaryDirectory folder;
  const std::string at = folder.path() + "/";
  for (const CRun& run : runs) write_files(run.exported, folder.path());
  write_file(at + "main.c", main_text(runs, suffix), "test");
  write_tensors(runs, at + "in");
  std::string command = compiler + " -std=c99 -pedantic -Wall -Wextra -Werror -o " + at + "main";
  for (const std::string& file : files) command += " " + at + file;
  execute(command + " -lm", at + "messages");
  execute(at + "main " + at + "in " + at + "out", at + "messages");
  return read_results(runs, at + "out");
}

/// The file of a program in PATH, without links; empty if there is none.
std::string program_of(const std::string& name) {
  const char* const path = std::getenv("PATH");
  std::istringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    std::error_code error;
    const auto file = std::filesystem::canonical(std::filesystem::path(folder) / name, error);
    if (!error) return file.native();
  }
  return {};
}

}  // namespace

std::string c_compiler() {
  static const std::string found = [] {
    for (const char* command : {"cc", "gcc", "clang"}) {
      const std::string look = std::string("command -v ") + command + " > /dev/null 2>&1";
      if (std::system(look.c_str()) == 0) return std::string(command);
    }
    return std::string();
  }();
  return found;
}

const std::vector<CBuild>& c_builds() {
  static const std::vector<CBuild> found = [] {
    std::vector<CBuild> builds;
    const auto append = [&](const std::string& compiler) {
      for (const char* level : {"-O0", "-O1", "-O2", "-O3", "-Os"}) {
        builds.push_back({compiler, level});
      }
    };
    const std::string gcc = program_of("gcc");
    const std::string gcc_12 = program_of("gcc-12");
    if (!gcc.empty()) append(gcc);
    if (!gcc_12.empty() && gcc_12 != gcc) append(gcc_12);
    for (const char* clang : {"clang", "clang-19"}) {
      if (program_of(clang).empty()) continue;
      append(program_of(clang));
      break;
    }
    if (builds.empty()) append(c_compiler());
    return builds;
  }();
  return found;
}

std::vector<CResult> run_in_c(const std::vector<CRun>& runs, const std::string& flags) {
  return run_files(runs, c_compiler() + " " + flags, ".c", {"main.c"});
}

std::vector<CResult> run_in_c(const std::vector<CRun>& runs, const CBuild& build) {
  std::vector<std::string> files{"main.c"};
  for (const CRun& run : runs) files.push_back(run.exported.name + ".c");
  return run_files(runs, build.compiler + " " + build.level, ".h", files);
}

}  // namespace palimpsest
