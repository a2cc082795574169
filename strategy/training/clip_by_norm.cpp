#include "strategy/training/clip_by_norm.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <vector>

#include "autodiff/storage_version.h"
#include "strategy/backward.h"
#include "strategy/training/gradient_sums.h"
#include "strategy/training/settings.h"

namespace palimpsest {

double clip_by_norm(std::span<const Tensor> gradients, double most) {
  require_setting(most > 0, "clip_by_norm", "the largest norm", most, positive);
  const double norm = joint_norm(gradients.size(), [&](std::size_t i) {
    return gradients[i].to(compute_dtype(gradients[i].dtype()));
  });
  if (!(norm > most)) return norm;
  std::set<const std::byte*> scaled;  // parameters with the same adjoint share its storage
  for (const Tensor& gradient : gradients) {
    if (!scaled.insert(gradient.raw()).second) continue;
    note_write(gradient, "clip_by_norm");
    const Tensor wide = gradient.to(compute_dtype(gradient.dtype()));
    divide(wide, norm / most);
    const Tensor narrow = wide.to(gradient.dtype());
    if (narrow.raw() != gradient.raw()) {
      std::copy_n(narrow.raw(), narrow.bytes(), gradient.raw());
    }
  }
  return norm;
}

double clip_by_norm(const Gradients& gradients, double most) {
  gradients.keep_apart();
  std::vector<Tensor> tensors;
  for (const auto& entry : gradients) tensors.push_back(entry.gradient);
  return clip_by_norm(tensors, most);
}

}  // namespace palimpsest
