// Zones have had no effect for long, and only NULL is passed for them.
#pragma once

#include <Foundation/NSObjCRuntime.h>

typedef struct _NSZone NSZone;
