// Puts this copy in the place of torch's, as far as loading it has not done so.
#include <ATen/detail/MPSHooksInterface.h>
#include <ATen/mps/MPSHooks.h>
#include <ATen/mps/MPSOpGuard.h>

#include <new>

#include "attempt.h"
#include "quiet.h"
#include "rebind.h"
#include "state.h"

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

// PyGILState_Check() holds always once there is a sub-interpreter.
void* release_interpreter() {
  void* const own = get_of_thread();
  return own && own == get_unchecked() ? save() : nullptr;
}

void acquire_interpreter(void* released) { restore(released); }

// torch makes the one object on first use and may have given it to somebody. It has no members: an object of this copy
// goes where it is.
void replace_hooks(const std::string& stock) {
  static_assert(sizeof(at::mps::MPSHooks) == sizeof(void*), "torch's object has no room for members");
  const auto& hooks = at::detail::getMPSHooks();
  const std::string from = image_of(vtable_of(&hooks));
  TORCH_CHECK(from == stock, "the hooks of device mps are those of ", from, " and not of ", stock);
  new (const_cast<at::MPSHooksInterface*>(&hooks)) at::mps::MPSHooks(at::MPSHooksArgs{});
}

}  // namespace
}  // namespace mpsforge::overlay

extern "C" int mpsforge_overlay_attach(const char* stock, void* unchecked, void* of_thread, void* save_thread,
                                       void* restore_thread) {
  using namespace mpsforge::overlay;
  warn_again();
  return attempt([&] {
    get_unchecked = reinterpret_cast<ThreadState>(unchecked);
    get_of_thread = reinterpret_cast<ThreadState>(of_thread);
    save = reinterpret_cast<ThreadState>(save_thread);
    restore = reinterpret_cast<void (*)(void*)>(restore_thread);
    state().stock = stock;
    state().rebound = rebind(stock);
    replace_hooks(stock);
    at::mps::setMPSInterpreterLock(release_interpreter, acquire_interpreter);
  });
}
