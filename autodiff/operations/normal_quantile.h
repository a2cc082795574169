#pragma once

namespace palimpsest {

/// log Φ(z) and φ(z)/Φ(z), where Φ is the standard normal distribution and φ its density. Neither
/// overflows or underflows for any finite z.
struct NormalTail {
  double log_cdf;
  double hazard;
};
NormalTail normal_tail(double z);

/// The z with log Φ(z) = `log_p`, for `log_p` ≤ log 1/2. Accurate to some units in the last place.
double normal_quantile_of_log(double log_p);
/// The z with Φ(z) = p, for 0 < p < 1.
double normal_quantile(double p);

/// The number z in [low, high] with Φ(z) = Φ(low) + u·(Φ(high) − Φ(low)), for 0 < u < 1. The ends
/// may be infinite, and may both be far from 0. NaN unless low < high.
double truncated_normal_quantile(double low, double high, double u);

}  // namespace palimpsest
