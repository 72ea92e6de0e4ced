// The types are in Apple's open headers; our macros follow.
#pragma once

#include_next <Foundation/NSObjCRuntime.h>
#include <objc/NSObjCRuntime.h>
#include <os/availability.h>
