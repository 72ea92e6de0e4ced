#include "stream.h"

#include <utility>

namespace mpsforge::pool {
namespace {

// A plain pointer, so that it can be read for as long as the thread runs (rule 24).
thread_local Stream* current_queue = nullptr;

// A function on its way through Metal: called once, and gone.
struct Callback {
  std::function<void()> function;
  static void run(void* context) noexcept {
    const std::unique_ptr<Callback> callback(static_cast<Callback*>(context));
    callback->function();
  }
};

// What a completed handler needs to keep others from waiting for a command buffer that failed.
struct Failure {
  const mpsforge_metal_api& metal;
  std::shared_ptr<mpsforge_metal_event> event;
  uint64_t position;
};

}  // namespace

Stream* Stream::here() { return current_queue; }
void Stream::set_here(Stream* stream) { current_queue = stream; }

Stream::Stream(const Backend& backend, uint32_t id) : backend_(backend), id_(id) {
  const mpsforge_metal_api& metal = backend.metal;
  const std::string label = "stream " + std::to_string(id);
  queue_ = owned(metal.queue_create(backend.device, label.c_str()), metal.queue_release);
  event_ = owned(metal.event_create(backend.device, label.c_str()), metal.event_release);
  serial_ = owned(metal.serial_create(backend.device, label.c_str()), metal.serial_release);
}

Stream::~Stream() = default;

mpsforge_metal_command_buffer* Stream::command_buffer() {
  if (!open_) {
    // An MPSCommandBuffer, because an MPSGraph may commit and continue inside its encode call. May block on Metal's cap
    // of uncompleted buffers; those complete without this thread (rule 9).
    open_ = owned(backend_.metal.mps_command_buffer(queue_.get()), backend_.metal.command_buffer_release);
    if (open_) enqueued_ = committed_ + 1;
  }
  return open_.get();
}

mpsforge_metal_encoder* Stream::compute_encoder() {
  if (!encoder_) {
    encoder_ = owned(backend_.metal.compute_encoder(command_buffer()), backend_.metal.encoder_release);
  }
  return encoder_.get();
}

void Stream::end_encoder() {
  if (!encoder_) return;
  backend_.metal.end_encoding(encoder_.get());
  encoder_.reset();
  attach_handlers();
}

// Rule 18: only here, with no encoder open and before the commit.
void Stream::attach_handlers() {
  for (std::function<void()>& function : handlers_) {
    backend_.metal.add_completed_handler(
        open_.get(), [](void* context, mpsforge_metal_command_buffer*) noexcept { Callback::run(context); },
        new Callback{std::move(function)});
  }
  handlers_.clear();
}

void Stream::close() {
  if (!open_) return;
  end_encoder();
  attach_handlers();
  const mpsforge_metal_api& metal = backend_.metal;
  const uint64_t position = enqueued_;
  metal.encode_signal(open_.get(), event_.get(), position);
  // A command buffer that ends in an error sends no signals. Waits for its position, of the GPU too, would never end,
  // so the signal is given here (rule 9). Nothing of the queue but a later signal could have raised the event further.
  metal.add_completed_handler(
      open_.get(),
      [](void* context, mpsforge_metal_command_buffer* buffer) noexcept {
        const std::unique_ptr<Failure> failure(static_cast<Failure*>(context));
        if (failure->metal.status(buffer) != MPSFORGE_METAL_ERROR) return;
        if (failure->metal.event_value(failure->event.get()) >= failure->position) return;
        failure->metal.event_set(failure->event.get(), failure->position);
      },
      new Failure{metal, event_, position});
  metal.commit(open_.get());
  committed_ = position;
  forget_finished();
  unfinished_.push_back(std::move(open_));
  open_.reset();
}

void Stream::close_up_to(uint64_t position) {
  if (committed_ < position) close();
}

std::string Stream::drain() {
  close();
  // A queue executes in order: the last one's end is the end of all. Waiting here on the queue is allowed (rule 11).
  if (!unfinished_.empty()) backend_.metal.wait_until_completed(unfinished_.back().get());
  return take_error();
}

std::string Stream::take_error() {
  forget_finished();
  return std::exchange(error_, "");
}

// Keeps the first error until somebody asks. In order, because a queue completes in order.
void Stream::forget_finished() {
  while (!unfinished_.empty()) {
    mpsforge_metal_command_buffer* buffer = unfinished_.front().get();
    const uint32_t status = backend_.metal.status(buffer);
    if (status < MPSFORGE_METAL_COMPLETED) return;
    if (status == MPSFORGE_METAL_ERROR && error_.empty()) {
      error_ = std::string("command buffer exited with error status: ") + backend_.metal.error(buffer);
    }
    unfinished_.pop_front();
  }
}

bool Stream::has_seen(const Stream& other, uint64_t position) const {
  if (&other == this) return true;
  const auto entry = seen_.find(other.id_);
  return entry != seen_.end() && entry->second >= position;
}

void Stream::order_after(const Stream& other, uint64_t position) {
  if (has_seen(other, position)) return;
  mpsforge_metal_command_buffer* buffer = command_buffer();
  end_encoder();  // a wait cannot be encoded with an encoder open (signature 7's rule)
  backend_.metal.encode_wait(buffer, other.event_.get(), position);
  seen_[other.id_] = position;
}

bool Stream::when_complete(std::function<void()> function) {
  if (open_) {
    handlers_.push_back(std::move(function));
    return true;
  }
  if (completed() >= committed_) return false;
  // The last work is committed, and a handler must not be added to it any more.
  backend_.metal.event_notify(event_.get(), committed_, &Callback::run, new Callback{std::move(function)});
  return true;
}

}  // namespace mpsforge::pool
