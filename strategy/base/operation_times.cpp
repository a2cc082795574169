#include "strategy/base/operation_times.h"

#include <algorithm>
#include <functional>
#include <iomanip>
#include <map>
#include <sstream>

namespace palimpsest {
namespace {

/// Seconds that one thread of a machine takes at its peak rate.
double least_seconds(const Report::OperationTime& time, const Machine& machine) {
  if (time.calls == 0) return 0;
  const double flops = flops_per_second(machine.products, time.dtype, machine);
  const double bytes = bytes_per_second(time.cost.bytes / time.calls, machine);
  return std::max(time.cost.flops / flops, time.cost.bytes / bytes);
}

}  // namespace

double Report::OperationTime::of_peak(const Machine& machine) const {
  return seconds > 0 ? least_seconds(*this, machine) / seconds : 0;
}

std::vector<Report::OperationTime> Report::by_operation() const {
  std::map<std::pair<std::string, DType>, OperationTime> times;
  for (const Step& step : steps) {
    OperationTime& time = times[{step.operation, step.dtype}];
    time.operation = step.operation;
    time.dtype = step.dtype;
    ++time.calls;
    time.seconds += static_cast<double>(step.event.end - step.event.start) * 1e-9;
    time.cost.flops += step.cost.flops;
    time.cost.bytes += step.cost.bytes;
  }
  std::vector<OperationTime> list;
  for (auto& [name, time] : times) list.push_back(std::move(time));
  std::ranges::stable_sort(list, std::greater(), &OperationTime::seconds);
  return list;
}

std::string Report::by_operation(const Machine& machine) const {
  if (steps.empty()) return {};
  std::ostringstream table;
  double least = 0;
  double seconds = 0;
  for (const OperationTime& time : by_operation()) {
    write_row(table, time, &machine);
    least += least_seconds(time, machine);
    seconds += time.seconds;
  }
  table << std::fixed << std::setprecision(1) << "all at "
        << (seconds > 0 ? 100 * least / seconds : 0) << " % of the peak of one thread\n";
  return table.str();
}

void write_row(std::ostream& stream, const Report::OperationTime& time, const Machine* machine) {
  const auto a_second = [&](double amount) {
    return time.seconds > 0 ? 1e-9 * amount / time.seconds : 0;
  };
  const auto old_flags = stream.flags();
  const auto old_precision = stream.precision(3);
  stream << std::fixed << std::setw(10) << 1e3 * time.seconds << " ms " << std::setw(9)
         << a_second(time.cost.flops) << " Gflop/s " << std::setw(9) << a_second(time.cost.bytes)
         << " GB/s";
  if (machine != nullptr) {
    stream << std::setprecision(1) << std::setw(7) << 100 * time.of_peak(*machine) << " %";
  }
  stream << "  " << time.operation;
  if (time.dtype != DType::f32) stream << ' ' << name_of(time.dtype);
  stream << " x " << time.calls << '\n';
  stream.flags(old_flags);
  stream.precision(old_precision);
}

}  // namespace palimpsest
