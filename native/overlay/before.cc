// The first source of the library in the order of linking, so that this runs before anything registers.
//
// The dispatcher keeps one boxed fallback for a key and refuses a second one: torch's copy's is taken out. That kernels
// are replaced, of which the dispatcher warns, is what an overlay is for.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include "quiet.h"

namespace mpsforge::overlay {

namespace {

// Access is not checked in an explicit instantiation.
void deregister_fallback(c10::Dispatcher& dispatcher, c10::DispatchKey key);
template <auto Member>
struct Granted {
  friend void deregister_fallback(c10::Dispatcher& dispatcher, c10::DispatchKey key) { (dispatcher.*Member)(key); }
};
template struct Granted<&c10::Dispatcher::deregisterFallback_>;

class Silence : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

c10::WarningHandler* before = nullptr;

const bool done = [] {
  static auto& silence = *new Silence;
  before = c10::WarningUtils::get_warning_handler();
  c10::WarningUtils::set_warning_handler(&silence);
  deregister_fallback(c10::Dispatcher::singleton(), c10::DispatchKey::MPS);
  return true;
}();

}  // namespace

void warn_again() { c10::WarningUtils::set_warning_handler(before); }

}  // namespace mpsforge::overlay
