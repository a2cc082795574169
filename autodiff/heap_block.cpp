#include "autodiff/heap_block.h"

#include <algorithm>
#include <memory>
#include <new>

#include "autodiff/address_sanitizer.h"
#include "autodiff/tensor.h"

namespace palimpsest {
namespace {

constexpr std::align_val_t alignment{buffer_alignment};

}  // namespace

void throw_no_memory(Bytes bytes) {
  throw EnvironmentError("[memory] cannot allocate " + format_bytes(bytes) +
                         "; free memory, or give backward a memory_budget");
}

HeapBlock allocate_heap(Bytes bytes) {
  const auto size = static_cast<std::size_t>(std::max<Bytes>(bytes, 1));
  if (has_address_sanitizer()) {
    void* const data = ::operator new(size, alignment, std::nothrow);
    if (data == nullptr) throw_no_memory(bytes);
    return {static_cast<std::byte*>(data), data};
  }
  // glibc before 2.38 never reuses the memory of freed aligned blocks, so alignment is done here.
  std::size_t space = size + buffer_alignment - __STDCPP_DEFAULT_NEW_ALIGNMENT__;
  void* const block = ::operator new(space, std::nothrow);
  if (block == nullptr) throw_no_memory(bytes);
  void* data = block;
  std::align(buffer_alignment, size, data, space);
  return {static_cast<std::byte*>(data), block};
}

void free_heap(const HeapBlock& block) noexcept {
  if (has_address_sanitizer()) {
    ::operator delete(block.block, alignment);
  } else {
    ::operator delete(block.block);
  }
}

}  // namespace palimpsest
