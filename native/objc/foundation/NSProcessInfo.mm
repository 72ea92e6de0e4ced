// The process, its macOS, time, threads and locks.
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include "../engine.h"
#include "support.h"

extern char** environ;

namespace {

double seconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void initialize_mutex(pthread_mutex_t* mutex, int kind) {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, kind);
  pthread_mutex_init(mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

void lock_mutex(pthread_mutex_t* mutex, id owner) {
  if (pthread_mutex_lock(mutex) != 0) {
    mpsforge::objc::fail("-[%s lock]: deadlock, the calling thread has the lock", object_getClassName(owner));
  }
  mpsforge::objc::order_acquire(mutex);
}

BOOL try_mutex(pthread_mutex_t* mutex) {
  if (pthread_mutex_trylock(mutex) != 0) return NO;
  mpsforge::objc::order_acquire(mutex);
  return YES;
}

void unlock_mutex(pthread_mutex_t* mutex, id owner) {
  mpsforge::objc::order_release(mutex);
  if (pthread_mutex_unlock(mutex) != 0) {
    mpsforge::objc::fail("-[%s unlock]: the calling thread does not have the lock", object_getClassName(owner));
  }
}

}  // namespace

@implementation NSProcessInfo

+ (NSProcessInfo*)processInfo {
  static NSProcessInfo* const only = [[NSProcessInfo alloc] init];
  return only;
}

- (NSOperatingSystemVersion)operatingSystemVersion {
  const mpsforge::objc::Environment& known = mpsforge::objc::environment();
  return {static_cast<NSInteger>(known.macos_major), static_cast<NSInteger>(known.macos_minor), 0};
}

- (BOOL)isOperatingSystemAtLeastVersion:(NSOperatingSystemVersion)version {
  const NSOperatingSystemVersion own = [self operatingSystemVersion];
  if (own.majorVersion != version.majorVersion) return own.majorVersion > version.majorVersion;
  if (own.minorVersion != version.minorVersion) return own.minorVersion > version.minorVersion;
  return own.patchVersion >= version.patchVersion;
}

- (NSString*)operatingSystemVersionString {
  const NSOperatingSystemVersion own = [self operatingSystemVersion];
  return [NSString stringWithFormat:@"Version %ld.%ld", own.majorVersion, own.minorVersion];
}

- (NSDictionary*)environment {
  NSMutableDictionary* all = [NSMutableDictionary dictionary];
  for (char** each = environ; each && *each; ++each) {
    const char* equals = std::strchr(*each, '=');
    if (!equals) continue;
    [all setObject:mpsforge::objc::text(equals + 1)
            forKey:mpsforge::objc::text(std::string(*each, static_cast<size_t>(equals - *each)))];
  }
  return [NSDictionary dictionaryWithDictionary:all];
}

- (NSString*)processName {
  return mpsforge::objc::text(program_invocation_short_name);
}

- (int)processIdentifier {
  return getpid();
}

- (NSUInteger)processorCount {
  return static_cast<NSUInteger>(sysconf(_SC_NPROCESSORS_CONF));
}

- (NSUInteger)activeProcessorCount {
  return static_cast<NSUInteger>(sysconf(_SC_NPROCESSORS_ONLN));
}

- (unsigned long long)physicalMemory {
  return static_cast<unsigned long long>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<unsigned long long>(sysconf(_SC_PAGESIZE));
}

- (NSTimeInterval)systemUptime {
  return seconds(CLOCK_MONOTONIC);
}

@end

@implementation NSDate

+ (instancetype)date {
  return [self dateWithTimeIntervalSinceNow:0];
}

+ (instancetype)dateWithTimeIntervalSinceNow:(NSTimeInterval)interval {
  NSDate* date = [[[self alloc] init] autorelease];
  date->since_1970_ += interval;
  return date;
}

- (instancetype)init {
  if ((self = [super init])) since_1970_ = seconds(CLOCK_REALTIME);
  return self;
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}

- (NSTimeInterval)timeIntervalSince1970 {
  return since_1970_;
}

- (NSTimeInterval)timeIntervalSinceNow {
  return since_1970_ - seconds(CLOCK_REALTIME);
}

- (NSTimeInterval)timeIntervalSinceDate:(NSDate*)date {
  return since_1970_ - [date timeIntervalSince1970];
}

@end

@implementation NSThread

+ (BOOL)isMainThread {
  return syscall(SYS_gettid) == getpid();
}

+ (void)sleepForTimeInterval:(NSTimeInterval)interval {
  if (interval > 0) usleep(static_cast<useconds_t>(interval * 1e6));
}

@end

@implementation NSLock

- (instancetype)init {
  if ((self = [super init])) initialize_mutex(&mutex_, PTHREAD_MUTEX_ERRORCHECK);
  return self;
}

- (void)dealloc {
  pthread_mutex_destroy(&mutex_);
  [super dealloc];
}

- (void)lock {
  lock_mutex(&mutex_, self);
}

- (BOOL)tryLock {
  return try_mutex(&mutex_);
}

- (void)unlock {
  unlock_mutex(&mutex_, self);
}

@end

@implementation NSRecursiveLock

- (instancetype)init {
  if ((self = [super init])) initialize_mutex(&mutex_, PTHREAD_MUTEX_RECURSIVE);
  return self;
}

- (void)dealloc {
  pthread_mutex_destroy(&mutex_);
  [super dealloc];
}

- (void)lock {
  lock_mutex(&mutex_, self);
}

- (BOOL)tryLock {
  return try_mutex(&mutex_);
}

- (void)unlock {
  unlock_mutex(&mutex_, self);
}

@end

extern "C" {

int mpsforge_available(const char* clauses) {
  const char* macos = std::strstr(clauses, "macOS");
  unsigned major = 0;
  unsigned minor = 0;
  if (!macos || std::sscanf(macos, "macOS %u.%u", &major, &minor) < 1) {
    mpsforge::objc::fail("an availability check without a version of macOS: %s", clauses);
  }
  const mpsforge::objc::Environment& known = mpsforge::objc::environment();
  return known.macos_major != major ? known.macos_major > major : known.macos_minor >= minor;
}

CFAbsoluteTime CFAbsoluteTimeGetCurrent(void) { return seconds(CLOCK_REALTIME) - 978307200.0; }
CFTimeInterval CACurrentMediaTime(void) { return seconds(CLOCK_MONOTONIC); }

CFTypeRef CFRetain(CFTypeRef object) { return [static_cast<id>(const_cast<void*>(object)) retain]; }
void CFRelease(CFTypeRef object) {
  if (!object) mpsforge::objc::fail("CFRelease of NULL");
  [static_cast<id>(const_cast<void*>(object)) release];
}
CFIndex CFGetRetainCount(CFTypeRef object) {
  return static_cast<CFIndex>([static_cast<id>(const_cast<void*>(object)) retainCount]);
}

}  // extern "C"
