#ifndef MPSFORGE_QUARTZCORE_H
#define MPSFORGE_QUARTZCORE_H

#include <CoreFoundation/CoreFoundation.h>

#ifdef __cplusplus
extern "C"
#endif
    CFTimeInterval
    CACurrentMediaTime(void);

#endif
