// What the checkout's patches have: with those of the part fixes alone threads are safe and take turns.
#pragma once

#if __has_include(<ATen/mps/MPSOpGuard.h>)
#include <ATen/mps/MPSOpGuard.h>
#include <ATen/mps/MPSStreamChoice.h>
#define MPSFORGE_OVERLAY_STREAMS 1
#else
#define MPSFORGE_OVERLAY_STREAMS 0
#endif

#if __has_include(<ATen/mps/MPSInterop.h>)
#include <ATen/mps/MPSInterop.h>
#define MPSFORGE_OVERLAY_EXTRAS 1
#else
#define MPSFORGE_OVERLAY_EXTRAS 0
#endif
