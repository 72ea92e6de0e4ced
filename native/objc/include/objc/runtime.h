// What programs may ask the runtime about classes and objects.
#pragma once

#include <objc/objc.h>

#ifdef __OBJC__
@class Protocol;
#else
typedef struct objc_object Protocol;
#endif

OBJC_EXTERN Class objc_getClass(const char* name);  // nil if there is none
OBJC_EXTERN Class objc_lookUpClass(const char* name);
OBJC_EXTERN Class object_getClass(id object);
OBJC_EXTERN const char* object_getClassName(id object);
OBJC_EXTERN const char* class_getName(Class cls);
OBJC_EXTERN Class class_getSuperclass(Class cls);
OBJC_EXTERN BOOL class_isMetaClass(Class cls);
OBJC_EXTERN size_t class_getInstanceSize(Class cls);
OBJC_EXTERN BOOL class_respondsToSelector(Class cls, SEL selector);
OBJC_EXTERN BOOL class_conformsToProtocol(Class cls, Protocol* protocol);  // of the class itself, not its superclasses
OBJC_EXTERN IMP class_getMethodImplementation(Class cls, SEL selector);    // aborts if there is none
OBJC_EXTERN const char* protocol_getName(Protocol* protocol);
