#include "strategy/training/safetensors.h"

#include <filesystem>

#include "tests/catch.h"
#include "tests/temporary_file.h"

namespace palimpsest::safetensors_test {
namespace {

using Catch::Matchers::Contains;

/// A file with the given header and `data` zero bytes.
std::string file_with(const std::string& header, std::size_t data) {
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size() & 0xff);
  bytes[1] = static_cast<char>(header.size() >> 8);
  return bytes + header + std::string(data, '\0');
}

/// Both ways to read a file must accept and refuse the same files, with the same errors.
constexpr NamedTensors (*readers[])(const std::string&, const std::vector<std::string>&) = {
    load_safetensors, map_safetensors};

TEST_CASE("every dtype survives a file") {
  const TemporaryFile file;
  NamedTensors tensors;
  for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::f16, DType::i64, DType::i32,
                            DType::i16, DType::i8, DType::u8, DType::boolean}) {
    tensors.emplace(std::string(name_of(dtype)), Tensor::arange(6).to(dtype).reshape({2, 3}));
  }
  tensors.emplace("scalar \"quoted\"", Tensor::scalar(3));
  tensors.emplace("empty", Tensor::zeros({0, 4}));
  save_safetensors(file.path(), tensors);
  for (const auto& reader : readers) {
    const NamedTensors loaded = reader(file.path(), {});
    REQUIRE(loaded.size() == tensors.size());
    for (const auto& [name, tensor] : tensors) CHECK(same_bits(loaded.at(name), tensor));
  }
}

TEST_CASE("a mapped file is not read, and not written") {
  const TemporaryFile file;
  std::string header =
      R"({"t":{"dtype":"F32","shape":[4294967296],"data_offsets":[0,17179869184]}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');  // tensors that are not aligned are read
  file.write(file_with(header, 0));
  // Most file systems store no bytes for the zeros.
  std::filesystem::resize_file(file.path(), 8 + header.size() + (std::size_t{16} << 30));
  const Tensor tensor = map_safetensors(file.path()).at("t");
  CHECK(tensor.at(0) == 0);
  CHECK(tensor.at(4294967295) == 0);

  save_safetensors(file.path(), {{"t", Tensor::ones({2})}});
  const Tensor mapped = map_safetensors(file.path()).at("t");
  mapped.data<float>()[0] = 5;
  CHECK(mapped.at(0) == 5);
  CHECK(load_safetensors(file.path()).at("t").at(0) == 1);
  save_safetensors(file.path(), {{"t", Tensor::zeros({1})}});
  CHECK(mapped.at(1) == 1);  // still of the file that was replaced
}

TEST_CASE("tensors that are not aligned in a file are read") {
  const TemporaryFile file;
  const std::string header = R"({"a":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},)"
                             R"("b":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})";
  file.write(file_with(header, 1) + std::string("\x00\x00\x80\x3f", 4));
  const Tensor tensor = map_safetensors(file.path()).at("b");
  CHECK(tensor.at(0) == 1);
  CHECK(reinterpret_cast<std::uintptr_t>(tensor.raw()) % alignof(float) == 0);
}

TEST_CASE("a file cut anywhere is an error, never a crash") {
  const TemporaryFile file;
  save_safetensors(file.path(), {{"a", Tensor::ones({3})}, {"b", Tensor::ones({2, 2})}});
  const std::string whole = file.read();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    file.write(whole.substr(0, length));
    for (const auto& reader : readers) CHECK_THROWS_AS(reader(file.path(), {}), FileError);
  }
  file.write(whole + "x");
  for (const auto& reader : readers) {
    CHECK_THROWS_WITH(reader(file.path(), {}), Contains("belong to no tensor"));
  }
}

TEST_CASE("malformed files are errors that name the file and the offset") {
  const TemporaryFile file;
  const auto entry = [](const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return R"({"t":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  };
  const struct {
    std::string bytes;
    const char* words;
  } rows[] = {
      {file_with("not json", 0), "not JSON"},
      {file_with("[]", 0), "not a JSON object"},
      {file_with(entry("F99", "[1]", "[0,4]"), 4), "F99"},
      {file_with(entry("F32", "[2]", "[0,4]"), 4),
       "8 bytes but has 4 in the file; write the file again"},
      {file_with(entry("F32", "[-1]", "[0,4]"), 4), "-1 is not a size"},
      {file_with(entry("F32", "[1e300]", "[0,4]"), 4), "1e+300 is not a size"},
      {file_with(entry("F32", "1", "[0,4]"), 4), "malformed"},
      {file_with(entry("F64", "[4611686018427387904]", "[0,0]"), 0), "more elements"},
      {file_with(entry("F32", "[1]", "[18446744073709551612,0]"), 4), "is not a size or offset"},
      {file_with("1e999", 0), "cannot be read"},
      {file_with(R"({"t":{},"t":{}})", 0), "'t' occurs twice"},
      {file_with(entry("F32", std::string(30'000, '[').append(30'000, ']'), "[0,4]"), 4),
       "array is not a size"},
      {file_with(entry("F32", "[1]", "[4,8]"), 8), "overlaps or has gaps"},
      {file_with(entry("F32", "[1]", "[0]"), 4), "two data offsets"},
      {file_with(entry("F32", "\"x\"", "[0,4]"), 4), "malformed"},
      {file_with(R"({"t":{}})", 0), "malformed"},
      {file_with(entry("F32", "[2]", "[0,8]"), 4), "ends inside tensor 't'"},
      {file_with(entry("BOOL", "[1]", "[0,1]"), 0) + "\x07", "neither 0 nor 1"},
      {std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8), "does not fit"},
  };
  for (const auto& row : rows) {
    file.write(row.bytes);
    for (const auto& reader : readers) {
      CHECK_THROWS_WITH(reader(file.path(), {}),
                        Contains(row.words) && Contains(file.path() + ", byte "));
    }
  }
  for (const auto& reader : readers) {
    CHECK_THROWS_WITH(reader("/nowhere/file", {}), Contains("/nowhere/file"));
    CHECK_THROWS_WITH(reader("/tmp", {}), Contains("is a folder"));
  }
  for (const auto& reader : readers) {
    CHECK_THROWS_WITH(reader("/dev/null", {}), Contains("is not a regular file"));
  }
  CHECK_THROWS_AS(save_safetensors("/nowhere/file", {}), FileError);
  CHECK_THROWS_WITH(save_safetensors(file.path(), {{"t", Tensor()}}), Contains("'t' is empty"));
}

TEST_CASE("named tensors are read from a file that has a dtype that tensors lack") {
  const TemporaryFile file;
  const std::string header = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("b":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[4,7]},)"
                             R"("c":{"dtype":"U8","shape":[1],"data_offsets":[7,8]}})";
  file.write(file_with(header, 4) + std::string("\1\2\3\4", 4));
  for (const auto& reader : readers) {
    const NamedTensors read = reader(file.path(), {"c", "a"});
    REQUIRE(read.size() == 2);
    CHECK(read.at("a").item() == 0);
    CHECK(read.at("c").item<std::uint8_t>() == 4);
    for (const auto& names : {std::vector<std::string>{}, {"b"}}) {
      CHECK_THROWS_WITH(reader(file.path(), names),
                        Contains("tensor 'b' has dtype F8_E4M3, which is not supported") &&
                            Contains("or name the tensors to read"));
    }
    CHECK_THROWS_AS(reader(file.path(), {"d"}), ArgumentError);
    CHECK_THROWS_WITH(reader(file.path(), {"d"}), Contains("no tensor 'd'; use one of a, b, c"));
  }
}

TEST_CASE("errors have neither texts of the JSON library nor lines of this one") {
  const TemporaryFile file;
  for (const char* header :
       {R"({"t":{"dtype":3,"shape":[1],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":[1]}})", R"({"t":7})", "[1,", "1e999",
        R"({"t":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,4]}})",
        R"({"t":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,4]}})"}) {
    CAPTURE(header);
    file.write(file_with(header, 4));
    for (const auto& reader : readers) {
      std::string message;
      try {
        reader(file.path(), {});
      } catch (const FileError& error) {
        message = error.what();
      }
      CHECK_THAT(message, Contains("[safetensors] " + file.path()));
      CHECK_THAT(message, !Contains("json.exception") && !Contains(".cpp"));
    }
  }
}

TEST_CASE("names that a file cannot hold are errors") {
  const TemporaryFile file;
  for (const char* name : {"__metadata__", "\xff"}) {
    CHECK_THROWS_AS(save_safetensors(file.path(), {{name, Tensor::scalar(1)}}), ArgumentError);
  }
}

TEST_CASE("metadata survive a file") {
  const TemporaryFile file;
  const Metadata metadata{{"format", "pt"}, {"ü", "\"\n"}, {"", ""}};
  save_safetensors(file.path(), {{"t", Tensor::ones({2})}}, metadata);
  const SafetensorsFile loaded = load_safetensors_file(file.path());
  CHECK(loaded.metadata == metadata);
  CHECK(same_bits(loaded.tensors.at("t"), Tensor::ones({2})));
  CHECK(load_safetensors(file.path()).size() == 1);
  save_safetensors(file.path(), {});
  CHECK(load_safetensors_file(file.path()).metadata.empty());
  CHECK_THROWS_AS(save_safetensors(file.path(), {}, {{"a", "\xff"}}), ArgumentError);
}

TEST_CASE("metadata that are not texts are errors only where they are read") {
  const TemporaryFile file;
  for (const char* const metadata : {R"({"a":1})", "[]", R"({"a":{}})"}) {
    file.write(file_with(std::string(R"({"__metadata__":)") + metadata + "}", 0));
    CHECK(load_safetensors(file.path()).empty());
    CHECK_THROWS_WITH(load_safetensors_file(file.path()), Contains("instead of texts by name"));
  }
}

}  // namespace
}  // namespace palimpsest::safetensors_test
