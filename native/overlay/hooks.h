// Comes before MPSHooks.mm: torch's copy has registered its hooks under the same name, and a second registration would
// end the process. attach.cc puts this copy's hooks in their place.
#include <ATen/detail/MPSHooksInterface.h>
#undef REGISTER_MPS_HOOKS
#define REGISTER_MPS_HOOKS(name)
