// Makes the reference the subject, so that the stress program can be built for it as for any other.
#include "../slots/slots.h"

extern "C" const mpsforge_slots_api* mpsforge_slots_subject(void) { return mpsforge_slots_reference(); }
