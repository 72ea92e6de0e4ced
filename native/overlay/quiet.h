#ifndef MPSFORGE_OVERLAY_QUIET_H
#define MPSFORGE_OVERLAY_QUIET_H

namespace mpsforge::overlay {

// Ends the silence about kernels that are registered again, which begins when the library is loaded.
void warn_again();

}  // namespace mpsforge::overlay

#endif
