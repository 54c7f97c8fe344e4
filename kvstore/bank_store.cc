#include "kvstore/bank_store.h"

#include <algorithm>

#include "base/limits.h"
#include "kvstore/bank_format.h"

namespace tandem {
namespace {

constexpr size_t kCopyBytes = size_t{1} << 20;

}  // namespace

Result<BankStore> BankStore::create(
    StatePlan plan, StateLimits limits, int64_t num_banks, Allocator& allocator) {
  TANDEM_REQUIRE(
      num_banks >= 1 && num_banks <= kBanksMax,
      str_cat("num_banks is ", num_banks, ", needs 1 to ", kBanksMax));
  TANDEM_REQUIRE(
      limits.context_tokens >= 1 && limits.context_tokens <= kContextTokensMax,
      str_cat("context is ", limits.context_tokens, " tokens, needs 1 to ", kContextTokensMax));
  TANDEM_REQUIRE(
      limits.rewind_tokens >= 0 && limits.rewind_tokens <= kChunkTokensMax,
      str_cat("rewind_tokens is ", limits.rewind_tokens, ", needs 0 to ", kChunkTokensMax));
  BankStore store(std::move(plan), limits, allocator);
  for (const SlabSpec& slab : store.plan_.slabs) {
    SlabView view;
    view.dtype = slab.dtype;
    view.row_values = slab.row_values;
    view.row_bytes = slab_row_bytes(slab);
    view.capacity_rows = slab_capacity_rows(slab, limits);
    view.bank_bytes = view.capacity_rows * view.row_bytes;
    auto memory = allocator.allocate(static_cast<size_t>(num_banks * view.bank_bytes));
    if (memory == nullptr) {
      return Status(
          StatusCode::kResourceExhausted,
          str_cat(
              "no memory for ", num_banks, " x ", view.bank_bytes, " bytes of ", slab.name,
              "; lower --ctx or the number of sessions"));
    }
    view.data = memory->data();
    store.memory_.push_back(std::move(memory));
    store.views_.push_back(view);
  }
  store.banks_.resize(static_cast<size_t>(num_banks));
  return store;
}

size_t BankStore::bytes() const {
  size_t total = 0;
  for (const auto& memory : memory_) total += memory->size();
  return total;
}

void BankStore::reset(int64_t bank) {
  banks_[bank] = {};
  drop_checkpoints_above(bank, -1);
}

void BankStore::advance(int64_t bank, int64_t num_tokens) {
  Bank& state = banks_[bank];
  TANDEM_CHECK(num_tokens >= 0 && state.length + num_tokens <= limits_.context_tokens);
  state.length += num_tokens;
  state.rewind_left = std::min(limits_.rewind_tokens, state.rewind_left + num_tokens);
}

void BankStore::assume_length(int64_t bank, int64_t length) {
  TANDEM_CHECK(length >= 0 && length <= limits_.context_tokens);
  reset(bank);
  banks_[bank].length = length;
}

Status BankStore::truncate(int64_t bank, int64_t length) {
  Bank& state = banks_[bank];
  TANDEM_REQUIRE(
      length >= 0 && length <= state.length,
      str_cat("cannot truncate a bank of ", state.length, " tokens to ", length));
  if (length == 0) {
    reset(bank);
    return {};
  }
  const int64_t num_back = state.length - length;
  if (num_back > state.rewind_left) {
    return Status(
        StatusCode::kAborted, str_cat(
                                  "cannot take back ", num_back, " tokens, the rings keep ",
                                  state.rewind_left, "; restore a checkpoint and replay"));
  }
  state.length = length;
  state.rewind_left -= num_back;
  drop_checkpoints_above(bank, length);
  return {};
}

BankStore::RowRange BankStore::live_rows(const SlabSpec& slab, int64_t length) const {
  switch (slab.kind) {
    case SlabKind::kRows: return {0, length / slab.tokens_per_row};
    case SlabKind::kRing: return {std::max<int64_t>(0, length - slab.window), length};
  }
  TANDEM_UNREACHABLE();
}

BankStore::RowRange BankStore::kept_rows(const SlabSpec& slab, const Bank& bank) const {
  RowRange rows = live_rows(slab, bank.length);
  if (slab.kind == SlabKind::kRing) {
    rows.begin = std::max<int64_t>(0, rows.begin - bank.rewind_left);
  }
  return rows;
}

template <class Fn>
Status BankStore::for_each_part(int32_t slab_id, int64_t bank, RowRange rows, Fn&& fn) const {
  const SlabView& view = views_[slab_id];
  const int64_t rows_per_copy =
      std::max<int64_t>(1, static_cast<int64_t>(kCopyBytes) / view.row_bytes);
  for (int64_t row = rows.begin; row < rows.end;) {
    const int64_t slot = row % view.capacity_rows;
    const int64_t count = std::min({rows.end - row, view.capacity_rows - slot, rows_per_copy});
    TANDEM_TRY(fn(view.row(bank, slot), static_cast<size_t>(count * view.row_bytes)));
    row += count;
  }
  return {};
}

Status BankStore::fork(int64_t from, int64_t to) {
  TANDEM_REQUIRE(from != to, str_cat("cannot fork bank ", from, " into itself"));
  reset(to);
  const int64_t offset_banks = to - from;
  for (int32_t id = 0; id < static_cast<int32_t>(views_.size()); ++id) {
    const RowRange rows = kept_rows(plan_.slabs[id], banks_[from]);
    TANDEM_TRY(for_each_part(id, from, rows, [&](std::byte* part, size_t bytes) {
      return allocator_->copy(part + offset_banks * views_[id].bank_bytes, part, bytes);
    }));
  }
  banks_[to] = banks_[from];
  return {};
}

Result<CheckpointId> BankStore::checkpoint(int64_t bank) {
  Checkpoint made{next_checkpoint_++, bank, banks_[bank], {}};
  for (int32_t id = 0; id < static_cast<int32_t>(views_.size()); ++id) {
    if (plan_.slabs[id].kind != SlabKind::kRing) continue;
    TANDEM_TRY(for_each_part(
        id, bank, kept_rows(plan_.slabs[id], made.state), [&](std::byte* part, size_t bytes) {
          const size_t used = made.rings.size();
          made.rings.resize(used + bytes);
          return allocator_->copy(made.rings.data() + used, part, bytes);
        }));
  }
  checkpoints_.push_back(std::move(made));
  return checkpoints_.back().id;
}

Status BankStore::restore(int64_t bank, CheckpointId id) {
  const auto found = std::find_if(
      checkpoints_.begin(), checkpoints_.end(),
      [&](const Checkpoint& c) { return c.id == id && c.bank == bank; });
  if (found == checkpoints_.end()) {
    return Status(
        StatusCode::kNotFound, str_cat("bank ", bank, " has no checkpoint ", id, " any more"));
  }
  size_t used = 0;
  for (int32_t slab_id = 0; slab_id < static_cast<int32_t>(views_.size()); ++slab_id) {
    if (plan_.slabs[slab_id].kind != SlabKind::kRing) continue;
    TANDEM_TRY(for_each_part(
        slab_id, bank, kept_rows(plan_.slabs[slab_id], found->state),
        [&](std::byte* part, size_t bytes) {
          const std::byte* from = found->rings.data() + used;
          used += bytes;
          return allocator_->copy(part, from, bytes);
        }));
  }
  banks_[bank] = found->state;
  drop_checkpoints_above(bank, banks_[bank].length);
  return {};
}

void BankStore::drop_checkpoint(CheckpointId id) {
  std::erase_if(checkpoints_, [&](const Checkpoint& c) { return c.id == id; });
}

void BankStore::drop_checkpoints_above(int64_t bank, int64_t length) {
  std::erase_if(
      checkpoints_, [&](const Checkpoint& c) { return c.bank == bank && c.state.length > length; });
}

Status BankStore::save(int64_t bank, ByteSink& sink) const {
  const int64_t length = banks_[bank].length;
  TANDEM_TRY(write_bank_header(sink, {length, static_cast<uint32_t>(plan_.slabs.size())}));
  std::vector<std::byte> staging;
  for (int32_t id = 0; id < static_cast<int32_t>(views_.size()); ++id) {
    const RowRange rows = live_rows(plan_.slabs[id], length);
    TANDEM_TRY(write_slab_header(sink, plan_.slabs[id], {rows.begin, rows.end - rows.begin}));
    TANDEM_TRY(for_each_part(id, bank, rows, [&](std::byte* part, size_t bytes) -> Status {
      staging.resize(bytes);
      TANDEM_TRY(allocator_->copy(staging.data(), part, bytes));
      return sink.write(staging);
    }));
  }
  return {};
}

Status BankStore::load(int64_t bank, ByteSource& source) {
  reset(bank);
  TANDEM_TRY_ASSIGN(const BankHeader header, read_bank_header(source));
  TANDEM_REQUIRE(
      header.length <= limits_.context_tokens,
      str_cat(
          "saved state holds ", header.length, " tokens, the context ", limits_.context_tokens));
  TANDEM_REQUIRE(
      header.num_slabs == plan_.slabs.size(),
      str_cat("saved state has ", header.num_slabs, " slabs, this stage ", plan_.slabs.size()));
  std::vector<std::byte> staging;
  for (int32_t id = 0; id < static_cast<int32_t>(views_.size()); ++id) {
    const RowRange rows = live_rows(plan_.slabs[id], header.length);
    TANDEM_TRY(expect_slab_header(source, plan_.slabs[id], {rows.begin, rows.end - rows.begin}));
    TANDEM_TRY(for_each_part(id, bank, rows, [&](std::byte* part, size_t bytes) -> Status {
      staging.resize(bytes);
      TANDEM_TRY(source.read(staging));
      return allocator_->copy(part, staging.data(), bytes);
    }));
  }
  banks_[bank].length = header.length;
  return {};
}

}  // namespace tandem
