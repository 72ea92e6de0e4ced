// The types are in Apple's open headers; our macros follow.
#ifndef MPSFORGE_MAC_NSOBJCRUNTIME_H
#define MPSFORGE_MAC_NSOBJCRUNTIME_H

#include_next <Foundation/NSObjCRuntime.h>
#include <objc/NSObjCRuntime.h>
#include <os/availability.h>

#endif
