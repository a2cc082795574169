#include "strategy/loops/step_check.h"

namespace palimpsest {

StepCheck::StepCheck(const Loop& loop, const StepPrograms& programs, int threads)
    : loop_(loop),
      program_(programs.looking_for_anomalies(threads)),
      memory_(allocate_buffer(program_->workspace())),
      runner_(program_, {memory_.get(), static_cast<std::size_t>(program_->workspace())}) {
  for (const ValueId value : programs.interface().results) {
    results_.push_back(allocate_buffer(programs.tape().bytes(value)));
    result_addresses_.push_back(results_.back().get());
  }
}

void StepCheck::run(std::uint32_t step, std::span<std::byte* const> arguments, Round round) {
  naming_step(loop_, step, [&] { runner_.run(arguments, result_addresses_, round); });
}

}  // namespace palimpsest
