#include "api/generation/mailbox.h"

#include "base/limits.h"

namespace tandem::api {
namespace {

int64_t size_of(const Mail& mail) {
  size_t size = sizeof(Mail) + mail.choice.top.size() * sizeof(TokenLogprob);
  for (const Event& event : mail.events) size += sizeof(Event) + event.data.size();
  return static_cast<int64_t>(size);
}

}  // namespace

void Mailbox::post(Mail mail) {
  {
    const std::lock_guard lock(mutex_);
    unread_bytes_ += size_of(mail);
    if (unread_bytes_ > kUnreadBytesMax) {
      overflowed_ = true;
      cancelled_ = true;
      // The end must arrive; what the reader missed makes the rest worthless.
      if (mail.kind != Mail::Kind::kFinish) return;
    }
    mails_.push_back(std::move(mail));
  }
  wake_.notify_one();
}

bool Mailbox::wait(std::vector<Mail>& out, std::chrono::milliseconds timeout) {
  out.clear();
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, timeout, [&] { return !mails_.empty(); });
  out.swap(mails_);
  unread_bytes_ = 0;
  return !out.empty();
}

void MailListener::on_prefill(int64_t done, int64_t total, int64_t cached) {
  Mail mail;
  mail.kind = Mail::Kind::kPrefill;
  mail.choice_idx = choice_idx_;
  mail.prompt_done = done;
  mail.prompt_total = total;
  mail.prompt_cached = cached;
  mailbox_->post(std::move(mail));
}

void MailListener::on_token(const TokenStep& step) {
  Mail mail;
  mail.kind = Mail::Kind::kToken;
  mail.choice_idx = choice_idx_;
  mail.choice = *step.choice;
  mail.events.assign(step.events.begin(), step.events.end());
  mailbox_->post(std::move(mail));
}

void MailListener::on_finish(const GenerationResult& result, std::span<const Event> events) {
  Mail mail;
  mail.kind = Mail::Kind::kFinish;
  mail.choice_idx = choice_idx_;
  mail.result = result;
  mail.events.assign(events.begin(), events.end());
  mailbox_->post(std::move(mail));
}

}  // namespace tandem::api
