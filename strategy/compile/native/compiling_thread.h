#pragma once

#include <memory>

namespace palimpsest {

class NativeProgram;

/// Has another thread compile the program's source, after those that were passed before. All
/// programs of the process share this thread, which starts with the first of them. The compiler
/// runs at idle priority. When the process ends, what is not compiled yet is dropped.
void compile_later(std::shared_ptr<NativeProgram> program);

}  // namespace palimpsest
