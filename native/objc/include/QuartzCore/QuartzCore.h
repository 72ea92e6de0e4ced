#pragma once

#include <CoreFoundation/CoreFoundation.h>

#ifdef __cplusplus
extern "C"
#endif
    CFTimeInterval
    CACurrentMediaTime(void);
