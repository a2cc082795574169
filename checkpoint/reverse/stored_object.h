#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "autodiff/bytes.h"
#include "autodiff/dtype.h"
#include "autodiff/export.h"

namespace palimpsest PALIMPSEST_EXPORT {

/// An object whose bytes can be copied and put back: a state, an adjoint, or what a program
/// accumulates. Its bytes come in pieces, which lie in the object itself where that is possible.
class StoredObject {
 public:
  /// Receives the pieces, one after another.
  using Sink = std::function<void(std::span<const std::byte>)>;
  /// Fills the pieces, one after another.
  using Source = std::function<void(std::span<std::byte>)>;

  virtual ~StoredObject() = default;
  virtual Bytes bytes() const = 0;
  virtual void save(const Sink& sink) const = 0;
  /// Makes the object from `bytes` bytes.
  virtual void load(Bytes bytes, const Source& source) = 0;
  /// The type of the numbers, if the bytes after the first `header_bytes` are numbers of one
  /// floating-point type; otherwise `boolean`, which stands for any bytes.
  virtual DType dtype() const { return DType::boolean; }
  virtual Bytes header_bytes() const { return 0; }
  /// Bytes of memory that `save` and `load` take for a while.
  virtual Bytes workspace() const { return 0; }
};

namespace detail {

template <class T>
concept Tupled = requires { std::tuple_size<T>::value; } && !std::ranges::contiguous_range<T>;

template <class T>
concept HasParts = requires(T& object) { object.parts(); };

template <class T>
concept Plain = std::is_trivially_copyable_v<T> && !std::is_pointer_v<T> &&
                !std::ranges::range<T> && !HasParts<T> && !Tupled<T>;

template <class T>
concept PlainRange =
    std::ranges::contiguous_range<T> && Plain<std::remove_const_t<std::ranges::range_value_t<T>>>;

template <class T>
concept Resizable = requires(T& range, std::size_t size) { range.resize(size); };

template <class T>
using PartsOf = std::remove_cvref_t<decltype(std::declval<T&>().parts())>;

template <class T>
struct IsStorable;
template <class... T>
constexpr bool are_storable(const std::tuple<T...>*) {
  return (IsStorable<std::remove_cvref_t<T>>::value && ...);
}
template <class A, class B>
constexpr bool are_storable(const std::pair<A, B>*) {
  // The keys of a map cannot be changed.
  return !std::is_const_v<A> && IsStorable<A>::value && IsStorable<B>::value;
}
template <class T>
constexpr bool is_storable() {
  if constexpr (HasParts<T>) {
    return IsStorable<PartsOf<T>>::value;
  } else if constexpr (Tupled<T>) {
    return are_storable(static_cast<const T*>(nullptr));
  } else if constexpr (std::ranges::range<T>) {
    // Elements are changed in place, unlike those of a set and the bits of a vector<bool>.
    using Element = std::ranges::range_value_t<T>;
    constexpr bool in_place = std::is_same_v<std::ranges::range_reference_t<T>, Element&>;
    return PlainRange<T> || (in_place && IsStorable<Element>::value);
  } else {
    return Plain<T>;
  }
}
template <class T>
struct IsStorable : std::bool_constant<is_storable<T>()> {};

template <class T>
concept Storable = IsStorable<T>::value;

[[noreturn]] void throw_size_of_object(Bytes object, Bytes stored);

/// Calls `f` on each range in the object that can be resized, the outer ones first.
template <class T, class F>
void each_resizable(T& object, const F& f) {
  if constexpr (HasParts<T>) {
    auto parts = object.parts();
    each_resizable(parts, f);
  } else if constexpr (Tupled<std::remove_const_t<T>>) {
    std::apply([&](auto&... parts) { (each_resizable(parts, f), ...); }, object);
  } else if constexpr (std::ranges::range<T>) {
    if constexpr (Resizable<T>) f(object);
    if constexpr (!PlainRange<T>) {
      for (auto& element : object) each_resizable(element, f);
    }
  }
}

/// Calls `f` on each contiguous piece of memory with numbers of the object.
template <class T, class F>
void each_block(T& object, const F& f) {
  if constexpr (HasParts<T>) {
    auto parts = object.parts();
    each_block(parts, f);
  } else if constexpr (Tupled<std::remove_const_t<T>>) {
    std::apply([&](auto&... parts) { (each_block(parts, f), ...); }, object);
  } else if constexpr (PlainRange<T>) {
    f(std::ranges::data(object), std::ranges::size(object));
  } else if constexpr (std::ranges::range<T>) {
    for (auto& element : object) each_block(element, f);
  } else {
    f(&object, std::size_t{1});
  }
}

/// An object whose bytes are its own memory. If ranges in it can be resized, their sizes come
/// first.
template <class T>
class ObjectInMemory final : public StoredObject {
 public:
  explicit ObjectInMemory(T& object) : object_(object) {}

  Bytes bytes() const override {
    Bytes total = header_bytes();
    each_block(object_, [&](const auto* data, std::size_t size) {
      total += static_cast<Bytes>(size * sizeof *data);
    });
    return total;
  }
  void save(const Sink& sink) const override {
    if constexpr (!is_one_range) {
      each_resizable(object_, [&](const auto& range) {
        const std::uint64_t size = std::ranges::size(range);
        sink(std::as_bytes(std::span(&size, 1)));
      });
    }
    each_block(object_, [&](const auto* data, std::size_t size) {
      sink(std::as_bytes(std::span(data, size)));
    });
  }
  void load(Bytes stored, const Source& source) override {
    if constexpr (!is_one_range) {
      // The number of ranges in the object may be another one than that of what is stored.
      Bytes left = stored;
      each_resizable(object_, [&](auto& range) {
        std::uint64_t size = 0;
        left -= Bytes{sizeof size};
        if (left < 0) throw_size_of_object(bytes(), stored);
        source(std::as_writable_bytes(std::span(&size, 1)));
        if (size > static_cast<std::uint64_t>(stored)) throw_size_of_object(bytes(), stored);
        if (size != std::ranges::size(range)) range.resize(size);
      });
    } else if constexpr (Resizable<T>) {
      const std::size_t size =
          static_cast<std::size_t>(stored) / sizeof *std::ranges::data(object_);
      if (size != std::ranges::size(object_)) object_.resize(size);
    }
    if (stored != bytes()) throw_size_of_object(bytes(), stored);
    each_block(object_, [&](const auto* data, std::size_t size) {
      auto* const memory =
          const_cast<std::remove_const_t<std::remove_pointer_t<decltype(data)>>*>(data);
      source(std::as_writable_bytes(std::span(memory, size)));
    });
  }
  DType dtype() const override {
    std::optional<DType> common;
    each_block(object_, [&]<class Number>(const Number*, std::size_t) {
      const DType type = std::is_same_v<std::remove_const_t<Number>, double>  ? DType::f64
                         : std::is_same_v<std::remove_const_t<Number>, float> ? DType::f32
                                                                              : DType::boolean;
      common = common.value_or(type) == type ? type : DType::boolean;
    });
    return common.value_or(DType::boolean);
  }
  Bytes header_bytes() const override {
    Bytes total = 0;
    if constexpr (!is_one_range) {
      each_resizable(object_, [&](const auto&) { total += Bytes{sizeof(std::uint64_t)}; });
    }
    return total;
  }

 private:
  /// The size of the object then follows from the number of its bytes.
  static constexpr bool is_one_range = PlainRange<T>;

  T& object_;
};

template <class T>
class ObjectByFunctions final : public StoredObject {
 public:
  using Save = std::function<std::vector<std::byte>(const T&)>;
  using Load = std::function<T(std::span<const std::byte>)>;

  ObjectByFunctions(T& object, const Save& save, const Load& load)
      : object_(object), save_(save), load_(load) {}

  Bytes bytes() const override { return std::ssize(save_(object_)); }
  void save(const Sink& sink) const override { sink(save_(object_)); }
  void load(Bytes bytes, const Source& source) override {
    std::vector<std::byte> content(static_cast<std::size_t>(bytes));
    source(content);
    object_ = load_(content);
  }
  /// The bytes, and the new object that is made of them while the old one exists.
  Bytes workspace() const override { return 2 * bytes(); }

 private:
  T& object_;
  const Save& save_;
  const Load& load_;
};

}  // namespace detail

/// The bytes of `object`, which must outlive the result. Objects can be
///
/// - numbers, and structs of numbers without pointers;
/// - contiguous ranges of these, such as `std::vector<double>` and `std::span<float>`. Ranges that
///   can be resized take the size of what is loaded; others must have it;
/// - ranges, tuples and pairs of objects, such as `std::vector<std::span<double>>`;
/// - types with a member `parts()` that returns `std::tie` of the objects they consist of.
template <detail::Storable T>
std::unique_ptr<StoredObject> stored(T& object) {
  return std::make_unique<detail::ObjectInMemory<T>>(object);
}

/// An object with a name, which a driver saves and resumes, or compares.
struct NamedObject {
  std::string name;
  std::shared_ptr<StoredObject> object;
};

/// `named("loss", loss)`. The object must outlive the driver.
template <detail::Storable T>
NamedObject named(std::string name, T& object) {
  return {std::move(name), stored(object)};
}

}  // namespace palimpsest
