#include "strategy/mpi/rank_parameters.h"

#include "autodiff/storage_version.h"
#include "checkpoint/stores/hash.h"
#include "strategy/base/batch_parts.h"
#include "strategy/mpi/tape_digest.h"

namespace palimpsest {
namespace {

std::span<std::byte> bytes_of(const Tensor& tensor) {
  return {tensor.raw(), static_cast<std::size_t>(tensor.bytes())};
}

std::vector<std::string> lines_of(std::span<const Tensor> parameters) {
  std::vector<std::string> lines;
  append_lines(parameters, lines);
  return lines;
}

/// Meets for a call that involves parameters.
const std::vector<RankWords>& meet_with(RankLink& link, RankCall call,
                                        std::span<const Tensor> parameters) {
  RankWords words{};
  std::exception_ptr failure;
  try {
    require_parameters(parameters);
    words[0] = digest_of(parameters);
    if (call == RankCall::verify) words[1] = hash_of(parameters);
  } catch (...) {
    failure = std::current_exception();
  }
  const std::vector<RankWords>& all = link.meet(call, words, failure);
  if (!say_same(all, 0)) {
    link.differ([&] { return lines_of(parameters); }, "give all ranks the same parameters");
  }
  return all;
}

}  // namespace

std::uint64_t hash_of(std::span<const Tensor> parameters) {
  std::uint64_t hash = 0;
  for (const Tensor& parameter : parameters) hash = hash_bytes(bytes_of(parameter), hash);
  return hash;
}

void require_parameters(std::span<const Tensor> parameters) {
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const std::string name = "[ranks] parameter " + std::to_string(i);
    if (!parameters[i].defined()) throw ArgumentError(name + " is empty; assign a tensor first");
    if (is_floating(parameters[i].dtype())) continue;
    throw DTypeError(name + " is " + to_string(parameters[i].type()) +
                     "; gradients need floating dtypes, so convert it with to()");
  }
}

void broadcast_parameters(RankLink& link, std::span<const Tensor> parameters) {
  meet_with(link, RankCall::broadcast, parameters);
  for (const Tensor& parameter : parameters) {
    note_write(parameter, "broadcast");
    link.broadcast(bytes_of(parameter), 0);
  }
  verify_parameters(link, parameters);
}

void verify_parameters(RankLink& link, std::span<const Tensor> parameters) {
  if (!say_same(meet_with(link, RankCall::verify, parameters), 1))
    blame_parameters(link, parameters);
}

void blame_parameters(RankLink& link, std::span<const Tensor> parameters) {
  const auto with_hashes = [&] {
    std::vector<std::string> lines = lines_of(parameters);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      lines[i] += " with hash " + std::to_string(hash_of(parameters.subspan(i, 1)));
    }
    return lines;
  };
  link.differ(with_hashes, "give all ranks the same updates, or broadcast() parameters again");
}

void blame_batch(RankLink& link, std::span<const Tensor> batch) {
  const auto in_lines = [&] {
    std::vector<std::string> lines{"a batch of " + std::to_string(examples_or_one(batch)) +
                                   " examples"};
    for (std::size_t i = 0; i < batch.size(); ++i) {
      lines.push_back("tensor " + std::to_string(i) + " of the batch with hash " +
                      std::to_string(hash_of(batch.subspan(i, 1))));
    }
    return lines;
  };
  link.differ(in_lines,
              "gradients() expects the whole batch on every rank; give each rank its own shard to "
              "gradients_of_shard()");
}

}  // namespace palimpsest
