// Zones have had no effect for long, and only NULL is passed for them.
#ifndef MPSFORGE_FOUNDATION_NSZONE_H
#define MPSFORGE_FOUNDATION_NSZONE_H

#include <Foundation/NSObjCRuntime.h>

typedef struct _NSZone NSZone;

#endif
