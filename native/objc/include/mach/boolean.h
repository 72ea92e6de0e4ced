#ifndef MPSFORGE_MACH_BOOLEAN_H
#define MPSFORGE_MACH_BOOLEAN_H

#define TRUE 1
#define FALSE 0

#endif
