#include "coordinator/sampling/weight_buckets.h"

#include "base/check.h"
#include "coordinator/sampling/logit_scan.h"

namespace tandem {

void WeightBuckets::fill(std::span<const float> weights) {
  sums_.fill(0.0);
  for (const float weight : weights) sums_[bucket_of(weight)] += static_cast<double>(weight);
}

WeightBuckets::Place WeightBuckets::find(
    std::span<const float> logits, std::span<const float> weights, double target,
    std::vector<Candidate>* scratch) const {
  size_t found = 0;
  double before = 0.0;  // sum of the classes above the one found
  double sum = 0.0;
  for (size_t bucket = kNumBuckets; bucket-- > 0;) {
    if (sums_[bucket] <= 0.0) continue;
    found = bucket;
    before = sum;
    sum += sums_[bucket];
    if (sum >= target) break;
  }
  TANDEM_CHECK(found > 0);

  const auto floor = std::bit_cast<float>(static_cast<uint32_t>(found) << kDroppedBits);
  scratch->clear();
  for_each_at_least(weights, floor, [&](int32_t id, float weight) {
    if (bucket_of(weight) != found) return;
    scratch->push_back({logits[static_cast<size_t>(id)], weight, id});
  });
  const size_t length = rank_prefix(*scratch, target - before);
  Place place{(*scratch)[length - 1].id, before};
  for (size_t i = 0; i < length; ++i) {
    place.sum_to += static_cast<double>((*scratch)[i].weight);
  }
  return place;
}

}  // namespace tandem
