// One stream: a Metal command queue, a serial queue over it, and at most one open command buffer and compute encoder.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "../metal/metal.h"

namespace mpsforge::pool {

// Metal's calls with the device they are made on.
struct Backend {
  const mpsforge_metal_api& metal;
  mpsforge_metal_device* device;
};

// A reference of the C ABI, given back when the last copy goes.
template <class T>
std::shared_ptr<T> owned(T* object, void (*release)(T*)) {
  return std::shared_ptr<T>(object, [release](T* last) { release(last); });
}

// Work is counted in positions: what is in the n-th committed command buffer has position n, what is in the open one
// has the number that it will get. The stream's shared event has the value n once position n is complete on the GPU.
//
// Rule 10: all state but the two counters is touched on the serial queue alone, so that it needs no lock.
class Stream {
 public:
  Stream(const Backend& backend, uint32_t id);
  ~Stream();  // everything has been committed
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  uint32_t id() const { return id_; }

  // --- by any thread
  // Runs the block on the queue: inline if the thread is there already (rule 10). Never from another stream's queue
  // (rule 11). The block must not throw.
  template <class Block>
  void run(Block&& block) {
    if (here() == this) {
      block();
      return;
    }
    struct Frame {
      Stream* stream;
      Block& block;
    } frame{this, block};
    backend_.metal.serial_sync(
        serial_.get(),
        [](void* context) noexcept {
          auto* inside = static_cast<Frame*>(context);
          set_here(inside->stream);
          inside->block();
          set_here(nullptr);
        },
        &frame);
  }
  // The stream on whose queue the calling thread is, or nullptr.
  static Stream* here();

  // The position of the last enqueued, committed and completed work; 0 if there is none. They only rise. A thread that
  // is ordered after some work of the stream sees at least its position.
  uint64_t enqueued() const { return enqueued_; }
  uint64_t committed() const { return committed_; }
  uint64_t copied() const { return copied_; }  // of the last work that note_copy named
  uint64_t completed() const { return backend_.metal.event_value(event_.get()); }
  // Waits on the CPU for a committed position. Needs no queue, so it may be called on any (rule 11).
  void wait_for(uint64_t position) const { backend_.metal.event_wait(event_.get(), position, -1); }

  // --- on the queue
  // The open command buffer, made now if there is none. What asks for it must encode work into it.
  mpsforge_metal_command_buffer* command_buffer();
  // The same with an open compute encoder on it.
  mpsforge_metal_encoder* compute_encoder();
  bool has_encoder() const { return encoder_ != nullptr; }
  void end_encoder();
  // Ends the encoder, signals the position and commits. Does nothing if nothing is open.
  void close();
  void close_up_to(uint64_t position);
  // What is enqueued last writes memory of the CPU, or is an event: a later wait covers it (rule 13).
  void note_copy() { copied_ = enqueued(); }
  // Closes and waits until everything is complete. The text of a command buffer's error since the last call, or "".
  std::string drain();
  // The text alone, of what is complete.
  std::string take_error();
  // Whether what follows on this stream is already ordered after the position of the other one.
  bool has_seen(const Stream& other, uint64_t position) const;
  // Orders what follows on this stream after a committed position of the other one.
  void order_after(const Stream& other, uint64_t position);
  // Rule 18: has the function called when what is enqueued up to now is complete, on a thread of the device. False if
  // all is complete already: the caller then calls it, off the queue. The function must neither lock a stream nor wait
  // (rule 9).
  bool when_complete(std::function<void()> function);

 private:
  static void set_here(Stream* stream);
  void attach_handlers();
  void forget_finished();

  const Backend backend_;
  const uint32_t id_;
  std::shared_ptr<mpsforge_metal_queue> queue_;
  std::shared_ptr<mpsforge_metal_event> event_;
  std::shared_ptr<mpsforge_metal_serial_queue> serial_;
  std::shared_ptr<mpsforge_metal_command_buffer> open_;
  std::shared_ptr<mpsforge_metal_encoder> encoder_;
  std::deque<std::shared_ptr<mpsforge_metal_command_buffer>> unfinished_;  // committed, not seen to be complete
  std::vector<std::function<void()>> handlers_;                            // for open_, not attached yet
  std::map<uint32_t, uint64_t> seen_;                                      // by stream
  std::string error_;
  std::atomic<uint64_t> enqueued_{0};   // written on the queue, as the next
  std::atomic<uint64_t> committed_{0};  // also the number of commits
  std::atomic<uint64_t> copied_{0};
};

}  // namespace mpsforge::pool
