// Puts this copy in the place of torch's.
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/mps/MPSHooks.h>
#include <c10/util/Exception.h>

#include <new>

#include "attempt.h"
#include "rebind.h"
#include "state.h"
#include "streams.h"

#if MPSFORGE_OVERLAY_STREAMS
// torch/csrc/autograd/graph_task.h declares it.
namespace torch::autograd {
TORCH_API int get_current_graph_task_id();
}
#endif

namespace mpsforge::overlay {

State& state() {
  static auto& one = *new State;
  return one;
}

const void* vtable_of(const void* object) { return object ? *static_cast<const void* const*>(object) : nullptr; }

namespace {

using ThreadState = void* (*)();
ThreadState get_unchecked = nullptr, get_of_thread = nullptr, save = nullptr;
void (*restore)(void*) = nullptr;
int (*is_initialized)() = nullptr;
int (*add_call)(int (*)(void*), void*) = nullptr;

#if MPSFORGE_OVERLAY_STREAMS
// PyGILState_Check() holds always once there is a sub-interpreter.
bool holds_interpreter() {
  void* const own = get_of_thread();
  return own && own == get_unchecked();
}

void* release_interpreter() { return save(); }

void acquire_interpreter(void* released) { restore(released); }
#endif

#if MPSFORGE_OVERLAY_EXTRAS
void call_soon(int (*call)(void*)) {
  if (is_initialized()) add_call(call, nullptr);
}
#endif

// Access is not checked in an explicit instantiation.
void deregister_fallback(c10::Dispatcher& dispatcher, c10::DispatchKey key);
template <auto Member>
struct Granted {
  friend void deregister_fallback(c10::Dispatcher& dispatcher, c10::DispatchKey key) { (dispatcher.*Member)(key); }
};
template struct Granted<&c10::Dispatcher::deregisterFallback_>;

// The dispatcher warns of kernels that are replaced, which is what an overlay is for.
class Silence : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

// torch makes the one object on first use and may have given it to somebody. It has no members: an object of this copy
// goes where it is.
const at::MPSHooksInterface& hooks_of(const std::string& stock) {
  static_assert(sizeof(at::mps::MPSHooks) == sizeof(void*), "torch's object has no room for members");
  const auto& hooks = at::detail::getMPSHooks();
  const std::string from = image_of(vtable_of(&hooks));
  TORCH_CHECK(from == stock, "the hooks of device mps are those of ", from, " and not of ", stock);
  return hooks;
}

// A process with parts of both copies would compute nonsense: what could refuse has been asked before, and an exception
// here ends the process.
void replace(const Rebinding& rebinding, const at::MPSHooksInterface& hooks) noexcept {
  Silence silence;
  c10::WarningHandler* const before = c10::WarningUtils::get_warning_handler();
  c10::WarningUtils::set_warning_handler(&silence);
  // The dispatcher keeps one boxed fallback for a key and refuses a second one.
  deregister_fallback(c10::Dispatcher::singleton(), c10::DispatchKey::MPS);
  rebinding.run_initializers();
  c10::WarningUtils::set_warning_handler(before);
  rebinding.apply();
  new (const_cast<at::MPSHooksInterface*>(&hooks)) at::mps::MPSHooks(at::MPSHooksArgs{});
#if MPSFORGE_OVERLAY_STREAMS
  at::mps::setMPSInterpreterLock(holds_interpreter, release_interpreter, acquire_interpreter);
  at::mps::setMPSBackwardQuery([] { return torch::autograd::get_current_graph_task_id() != -1; });
#endif
#if MPSFORGE_OVERLAY_EXTRAS
  at::mps::setMPSInterpreterCalls(call_soon);
#endif
}

}  // namespace
}  // namespace mpsforge::overlay

extern "C" int mpsforge_overlay_attach(const char* stock, void* unchecked, void* of_thread, void* save_thread,
                                       void* restore_thread, void* initialized, void* add_pending_call) {
  using namespace mpsforge::overlay;
  return attempt([&] {
    get_unchecked = reinterpret_cast<ThreadState>(unchecked);
    get_of_thread = reinterpret_cast<ThreadState>(of_thread);
    save = reinterpret_cast<ThreadState>(save_thread);
    restore = reinterpret_cast<void (*)(void*)>(restore_thread);
    is_initialized = reinterpret_cast<int (*)()>(initialized);
    add_call = reinterpret_cast<int (*)(int (*)(void*), void*)>(add_pending_call);
    auto rebinding = std::make_unique<const Rebinding>(stock);
    const auto& hooks = hooks_of(stock);
    state().stock = stock;
    state().rebinding = std::move(rebinding);
    replace(*state().rebinding, hooks);
  });
}
