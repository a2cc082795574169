#pragma once

#include <initializer_list>
#include <string>

namespace palimpsest::tests {

/// The content of a `.npy` file of version `major` with this header text.
inline std::string npy_file(const std::string& header, const std::string& data, int major = 1) {
  std::string content = "\x93NUMPY";
  content += {static_cast<char>(major), '\0'};
  const std::size_t length = header.size();
  for (int byte = 0; byte < (major == 1 ? 2 : 4); ++byte) {
    content.push_back(static_cast<char>(length >> (8 * byte) & 0xff));
  }
  return content + header + data;
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  std::string bytes;
  for (const T value : values) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  return bytes;
}

/// The header text of an array, as NumPy writes it.
inline std::string npy_text(const std::string& element, const std::string& shape,
                            const std::string& fortran_order = "False") {
  return "{'descr': '" + element + "', 'fortran_order': " + fortran_order + ", 'shape': " + shape +
         ", }    \n";
}

}  // namespace palimpsest::tests
