#include <limits>

#include "data/csv_dataset.h"
#include "tests/catch.h"
#include "tests/temporary_file.h"

namespace palimpsest::csv_test {
namespace {

using Catch::Matchers::Contains;

Dataset read(const std::string& text, const std::vector<CsvTensor>& tensors = {},
             const CsvOptions& options = {}) {
  const TemporaryFile file;
  file.write(text);
  return read_csv(file.path(), tensors, options);
}

TEST_CASE("columns become tensors") {
  const std::string text = "width,height,class\n1.5,2,7\n-3e2, 4 ,8\n\"5\",+6,-9\n";
  const Dataset all = read(text);
  REQUIRE(all.columns().size() == 3);
  CHECK(all.columns()[1] == DatasetColumn{"height", {{}, DType::f64}});
  CHECK(same_bits(all.rows({0, 1, 2})[0], Tensor::from<double>({1.5, -300, 5}, {3})));

  const Dataset some = read(text, {{.name = "size", .columns = {"height", "width"}},
                                   {.name = "class", .dtype = DType::i64},
                                   {.name = "wide", .columns = {"width"}, .dtype = DType::f64}});
  CHECK(some.columns()[0] == DatasetColumn{"size", {{2}, DType::f32}});
  const std::vector<Tensor> rows = some.rows({2, 0});
  CHECK(same_bits(rows[0], Tensor::matrix({{6, 5}, {2, 1.5}})));
  CHECK(same_bits(rows[1], Tensor::from<std::int64_t>({-9, 7}, {2})));
  CHECK(same_bits(rows[2], Tensor::from<double>({5, 1.5}, {2, 1})));
}

TEST_CASE("numbers too small for a dtype are rounded, and those too large are errors") {
  const Dataset data = read("a\n1e-400\n-1e-400\n1e-46\n", {{.name = "a"}});
  CHECK(same_bits(data.rows({0, 1, 2})[0], Tensor::from<float>({0.0f, -0.0f, 0.0f}, {3})));
  CHECK(read("a\n1e-400\n").rows({0})[0].at(0) == 0);
  CHECK(read("a\n4e-320\n").rows({0})[0].at(0) == 4e-320);
  CHECK_THROWS_WITH(read("a\n1e400\n"), Contains("does not fit f64"));
}

TEST_CASE("files of different styles are read") {
  const Tensor expected = Tensor::from<double>({1, 3}, {2});
  for (const char* text :
       {"a,b\r\n1,2\r\n3,4\r\n", "a,b\n1,2\n3,4", "\n\na,b\n\n1,2\n3,4\n\n", "a,b\r1,2\r3,4\r",
        "\xef\xbb\xbf\"a\",b\n1,2\n3,4\n", "a,\"b\nwith \"\"lines\"\"\"\n1,2\n3,4\n"}) {
    INFO(text);
    CHECK(same_bits(read(text, {{.name = "a", .dtype = DType::f64}}).rows({0, 1})[0], expected));
  }
  CHECK(same_bits(read("1;2\n3;4", {{.name = "1", .dtype = DType::f64}},
                       {.has_header = false, .delimiter = ';'})
                      .rows({0, 1})[0],
                  expected));
  CHECK(read("a,b\n").size() == 0);
  CHECK(read("a\nnan\n-inf\n").rows({1})[0].at(0) == -std::numeric_limits<double>::infinity());
  CHECK(read("a\n9223372036854775807\n", {{.name = "a", .dtype = DType::i64}})
            .rows({0})[0]
            .item<std::int64_t>() == std::numeric_limits<std::int64_t>::max());
}

TEST_CASE("a file with a hundred thousand columns is read, and each is found by its name") {
  constexpr int count = 100'000;
  std::string names = "c0";
  std::string row = "0";
  for (int i = 1; i < count; ++i) {
    names += ",c" + std::to_string(i);
    row += "," + std::to_string(i);
  }
  const Dataset data = read(names + "\n" + row + "\n");
  REQUIRE(data.columns().size() == count);
  const std::vector<Tensor> rows = data.rows({0});
  CHECK(rows[data.position("c99999")].at(0) == 99'999);
  CsvTensor all{.name = "all"};
  for (int i = count; i-- > 0;) all.columns.push_back("c" + std::to_string(i));
  CHECK(read(names + "\n" + row + "\n", {all}).rows({0})[0].at(0) == 99'999);
}

TEST_CASE("malformed files are errors that name line and column") {
  const CsvTensor integer{.name = "b", .dtype = DType::i64};
  const struct {
    const char* text;
    std::vector<CsvTensor> tensors;
    const char* words;
  } rows[] = {
      {"a,b\n1,2\n3,4x\n", {}, "line 3, column 2: '4x' in 'b' is no number of f64; correct it"},
      {"a,b\n1,\n", {}, "line 2, column 2: '' in 'b' is no number"},
      {"a,b\n1,2.5\n", {integer}, "'2.5' in 'b' is no number of i64"},
      {"a,b\n1,9223372036854775808\n", {integer}, "does not fit i64; use another dtype"},
      {"a,b\n1,1e39\n", {{.name = "b"}}, "line 2, column 2: '1e39' in 'b' does not fit f32"},
      {"a,b\n1,+-2\n", {}, "'+-2'"},
      {"a,b\n1,2\n3\n", {}, "line 3, column 2: the line has 1 fields, not 2; correct"},
      {"a,b\n1,2,3\n", {}, "line 2, column 3: the line has 3 fields, not 2"},
      {"a,b\n1,2\"3\n", {}, "line 2, column 2: the quotes are wrong"},
      {"a,b\n1,\"2\n3,4\n", {}, "the quotes are wrong"},
      {"a,a\n", {}, "line 1, column 2: an earlier column is also called 'a'"},
      {"", {}, "has no lines"},
      {"\n\n", {}, "has no lines"},
  };
  for (const auto& row : rows) {
    INFO(row.text);
    CHECK_THROWS_AS(read(row.text, row.tensors), FileError);
    CHECK_THROWS_WITH(read(row.text, row.tensors),
                      Contains("[read_csv] /tmp/") && Contains(row.words));
  }
  CHECK_THROWS_WITH(
      read(std::string("a\n1\0 2\n", 7)),
      Contains("line 2, column 1: '1\\x00 2' in 'a' is no number of f64; correct it"));
  CHECK_THROWS_WITH(read("\"a\rb\",c\nx\x1b,1\n"), Contains("'x\\x1b' in 'a\\x0db' is no number"));
  CHECK_THROWS_WITH(read("a\n1234567890123456789012345678901234567x\u00e4\u00e4\n"),
                    Contains("345678901234567x\u00e4…' in 'a' is no number"));
  CHECK_THROWS_WITH(read_csv("/nowhere/file"), Contains("cannot open /nowhere/file"));
  CHECK_THROWS_WITH(read_csv("/tmp"), Contains("is a folder"));
}

TEST_CASE("tensors that a file cannot make are errors") {
  CHECK_THROWS_AS(read("a,b\n1,2\n", {{.name = "c"}}), ArgumentError);
  CHECK_THROWS_WITH(read("a,b\n1,2\n", {{.name = "x", .columns = {"a", "c"}}}),
                    Contains("no column 'c'; use one of a, b"));
  CHECK_THROWS_WITH(read("a\n1\n", {{.name = "a", .dtype = DType::i32}}),
                    Contains("cannot be i32; use f64, f32 or i64"));
  CHECK_THROWS_AS(read("a\n1\n", {}, {.delimiter = '"'}), ArgumentError);
}

}  // namespace
}  // namespace palimpsest::csv_test
