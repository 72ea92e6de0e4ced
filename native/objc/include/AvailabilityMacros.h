#ifndef MPSFORGE_AVAILABILITYMACROS_H
#define MPSFORGE_AVAILABILITYMACROS_H

#include <Availability.h>

#endif
