// Strings, numbers, collections, data, errors, the process.
#import <Foundation/Foundation.h>

#include <IOKit/IOKitLib.h>
#include <mach-o/dyld.h>
#include <mach-o/getsect.h>
#include <mach/mach.h>
#include <mpsforge/host.h>
#include <os/lock.h>
#include <os/signpost.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "harness.h"

using namespace mpsforge::objc::test;

namespace {

bool is(NSString* string, const char* text) { return std::strcmp([string UTF8String], text) == 0; }

CASE(strings) {
  CHECK(is(@"", "") && [@"" length] == 0);
  CHECK(is(([NSString stringWithFormat:@"%d|%5.2f|%s|%@|%lu|%c|%%|%04d|%-4d|%x|%lld|%p", -3, 2.5, "c", @"o", 7ul, 'z',
                                       5, 6, 255, 1ll << 40, nullptr]),
           "-3| 2.50|c|o|7|z|%|0005|6   |ff|1099511627776|(nil)"));
  CHECK(is(([NSString stringWithFormat:@"%*d|%.*s|%@", 4, 1, 2, "abc", (id)nil]), "   1|ab|(null)"));
  NSString* text = [NSString stringWithUTF8String:"h\xc3\xb6l\xf0\x9f\x98\x80"];
  CHECK([text length] == 5);  // the last character takes two UTF-16 units
  CHECK([text lengthOfBytesUsingEncoding:NSUTF8StringEncoding] == 8);
  CHECK([text cStringUsingEncoding:NSASCIIStringEncoding] == nullptr);
  CHECK([@"abc" isEqual:[NSString stringWithFormat:@"a%s", "bc"]] && ![@"abc" isEqual:@1]);
  CHECK([@"abc" hash] == [[NSString stringWithUTF8String:"abc"] hash]);
  CHECK([@"a" compare:@"b"] == NSOrderedAscending);
  CHECK([@"path/to/x" hasPrefix:@"path"] && [@"path/to/x" hasSuffix:@"/x"] && ![@"x" hasSuffix:@"longer"]);
  CHECK([[@"a,b,,c" componentsSeparatedByString:@","] count] == 4);
  CHECK(is([@"aXbX" stringByReplacingOccurrencesOfString:@"X" withString:@"YX"], "aYXbYX"));
  CHECK(is([@"abcdef" substringWithRange:NSMakeRange(2, 3)], "cde") && [@"abcdef" characterAtIndex:5] == 'f');
  CHECK([@"abc" rangeOfString:@"c"].location == 2);
  CHECK([@"abc" rangeOfString:@"x"].location == static_cast<NSUInteger>(NSNotFound));
  CHECK([@"12abc" intValue] == 12 && [@"2.5" doubleValue] == 2.5 && [@"YES" boolValue] && ![@"0" boolValue]);
  NSMutableString* changing = [NSMutableString stringWithString:@"a"];
  [changing appendFormat:@"%d", 1];
  NSString* kept = [[changing copy] autorelease];
  [changing appendString:@"b"];
  CHECK(is(changing, "a1b") && is(kept, "a1"));
  NSString* made = @("from C");
  CHECK(is(made, "from C") && [[made dataUsingEncoding:NSUTF8StringEncoding] length] == 6);
  CHECK(is([[[NSString alloc] initWithData:[@"xy" dataUsingEncoding:NSASCIIStringEncoding]
                                  encoding:NSUTF8StringEncoding] autorelease],
           "xy"));
}

CASE(numbers) {
  CHECK([@1 isEqual:@1.0] && [@1 hash] == [@1.0 hash] && ![@1 isEqual:@"1"]);
  CHECK([@(-1) compare:@(~0ul)] == NSOrderedAscending && [@(~0ul) compare:@(~0ul)] == NSOrderedSame);
  CHECK([@(-1) unsignedLongLongValue] == ~0ull && [@(~0ul) unsignedLongValue] == ~0ul);
  CHECK(is([@(~0ul) stringValue], "18446744073709551615") && is([@-7 description], "-7"));
  CHECK(is([@0.1 description], "0.1") && is([@0.1f description], "0.1") && is([@YES description], "1"));
  CHECK(![@(NAN) isEqual:@1] && [@(NAN) isEqual:@(NAN)] && [@1 compare:@(NAN)] == NSOrderedDescending);
  CHECK([@2.9 intValue] == 2 && [@2.9 floatValue] == 2.9f && [@0.5 boolValue] && ![@0 boolValue]);
  CHECK([[NSNumber numberWithUnsignedInt:~0u] longLongValue] == 0xffffffffll);
  CHECK(std::strcmp([@1.5f objCType], "f") == 0 && std::strcmp([@1 objCType], "i") == 0);
  CHECK([[NSValue valueWithRange:NSMakeRange(1, 2)] isEqual:[NSValue valueWithRange:NSMakeRange(1, 2)]]);
  // What was put in comes out, whatever the type.
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    const auto value = static_cast<long long>(random() >> (random() % 64));
    CHECK([[NSNumber numberWithLongLong:value] longLongValue] == value);
    CHECK([[NSNumber numberWithInt:static_cast<int>(value)] intValue] == static_cast<int>(value));
    CHECK([[NSNumber numberWithDouble:static_cast<double>(value)] doubleValue] == static_cast<double>(value));
  }
}

CASE(arrays) {
  NSArray* array = @[ @3, @1, @2 ];
  CHECK([array count] == 3 && [array[1] intValue] == 1 && [[array lastObject] intValue] == 2);
  CHECK(is([[array valueForKey:@"description"] componentsJoinedByString:@","], "3,1,2"));
  CHECK([[array sortedArrayUsingSelector:@selector(compare:)] isEqual:@[ @1, @2, @3 ]]);
  CHECK([array containsObject:@2.0] && [array indexOfObject:@9] == static_cast<NSUInteger>(NSNotFound));
  CHECK([[array subarrayWithRange:NSMakeRange(1, 2)] isEqual:@[ @1, @2 ]]);
  CHECK([[[array reverseObjectEnumerator] allObjects] isEqual:@[ @2, @1, @3 ]]);
  int sum = 0;
  for (NSNumber* number in array) sum = 10 * sum + [number intValue];
  for (NSNumber* number in [array objectEnumerator]) sum = 10 * sum + [number intValue];
  CHECK(sum == 312312);
  __block NSUInteger seen = 0;
  [array enumerateObjectsUsingBlock:^(id, NSUInteger index, BOOL* stop) {
    seen += 1;
    *stop = index == 1;
  }];
  CHECK(seen == 2);
  NSObject* object = [[NSObject alloc] init];
  NSMutableArray* changing = [[NSMutableArray alloc] initWithArray:array];
  [changing addObject:object];
  [changing insertObject:object atIndex:0];
  changing[1] = object;
  CHECK([object retainCount] == 4 && [changing count] == 5);
  [changing exchangeObjectAtIndex:0 withObjectAtIndex:2];
  [changing removeObject:object];
  CHECK([object retainCount] == 1 && [changing isEqual:@[ @1, @2 ]]);
  [changing removeLastObject];
  NSArray* kept = [changing copy];
  [changing removeAllObjects];
  CHECK([kept count] == 1 && [changing count] == 0);
  [kept release];
  [changing release];
  [object release];
}

// Against a plain model: random insertions, replacements and removals.
CASE(random_arrays) {
  std::mt19937 random(2);
  NSMutableArray<NSNumber*>* array = [NSMutableArray array];
  std::vector<int> model;
  for (int i = 0; i < 3000; ++i) {
    const auto at = model.empty() ? 0 : random() % model.size();
    switch (random() % 4) {
      case 0:
        if (!model.empty()) {
          [array removeObjectAtIndex:at];
          model.erase(model.begin() + static_cast<long>(at));
        }
        break;
      case 1:
        if (!model.empty()) array[at] = @(model[at] = i);
        break;
      default:
        [array insertObject:@(i) atIndex:at];
        model.insert(model.begin() + static_cast<long>(at), i);
    }
    CHECK([array count] == model.size());
  }
  for (size_t i = 0; i < model.size(); ++i) CHECK([array[i] intValue] == model[i]);
}

CASE(dictionaries) {
  NSDictionary* dictionary = @{@"one" : @1, @"two" : @2};
  CHECK([dictionary count] == 2 && [dictionary[@"two"] intValue] == 2 && dictionary[@"three"] == nil);
  CHECK([[dictionary allKeys] isEqual:(@[ @"one", @"two" ])]);
  NSMutableDictionary* changing = [NSMutableDictionary dictionaryWithDictionary:dictionary];
  changing[@"three"] = @3;
  changing[@"one"] = @11;
  [changing removeObjectForKey:@"two"];
  int sum = 0;
  for (NSString* key in changing) sum += [changing[key] intValue];
  CHECK(sum == 14 && [changing count] == 2 && [changing[@"three"] isEqual:@3]);
  CHECK([changing isEqual:(@{@"three" : @3, @"one" : @11})] && ![changing isEqual:dictionary]);
  // A key is copied, so changing it later changes nothing.
  NSMutableString* key = [NSMutableString stringWithString:@"key"];
  changing[key] = @"value";
  [key setString:@"other"];
  CHECK([changing[@"key"] isEqual:@"value"]);
  NSObject* object = [[NSObject alloc] init];
  changing[@"object"] = object;
  changing[@"object"] = object;
  CHECK([object retainCount] == 2);
  [changing removeAllObjects];
  CHECK([object retainCount] == 1);
  [object release];
  CHECK([[NSDictionary dictionaryWithObjectsAndKeys:@1, @"a", @2, @"b", nil] isEqual:(@{@"a" : @1, @"b" : @2})]);
  NSSet* set = [NSSet setWithObjects:@1, @2, @1.0, nil];
  CHECK([set count] == 2 && [set containsObject:@2] && [set isEqual:[NSSet setWithArray:@[ @2, @1 ]]]);
}

CASE(data_and_errors) {
  const char bytes[] = "abc";
  NSData* data = [NSData dataWithBytes:bytes length:3];
  CHECK([data length] == 3 && std::memcmp([data bytes], "abc", 3) == 0 && [data bytes] != bytes);
  NSMutableData* longer = [NSMutableData dataWithData:data];
  [longer appendBytes:"de" length:2];
  CHECK([longer length] == 5 && [[longer subdataWithRange:NSMakeRange(3, 2)] isEqual:[@"de" dataUsingEncoding:4]]);
  __block int ended = 0;
  char outside[4];
  [[[NSData alloc] initWithBytesNoCopy:outside
                                length:4
                           deallocator:^(void*, NSUInteger length) {
                             ended += static_cast<int>(length);
                           }] release];
  CHECK(ended == 4);
  NSError* error = [NSError errorWithDomain:@"d" code:3 userInfo:@{NSLocalizedDescriptionKey : @"why"}];
  CHECK([error code] == 3 && is([error localizedDescription], "why"));
  NSURL* url = [NSURL fileURLWithPath:@"/tmp/x"];
  CHECK([url isFileURL] && is([url path], "/tmp/x") && is([url absoluteString], "file:///tmp/x"));
  CHECK([NSNull null] == [NSNull null]);
}

CASE(versions, "MPSFORGE_METAL_MACOS=14.4") {
  NSProcessInfo* info = [[NSProcessInfo new] autorelease];
  CHECK([info isOperatingSystemAtLeastVersion:{14, 4, 0}] && ![info isOperatingSystemAtLeastVersion:{14, 5, 0}]);
  CHECK(![info isOperatingSystemAtLeastVersion:{15, 0, 0}] && [info isOperatingSystemAtLeastVersion:{13, 9, 0}]);
  CHECK([info operatingSystemVersion].majorVersion == 14);
  const auto available = [](bool answer) { return answer; };
  CHECK(available(__builtin_available(macOS 14.4, *)) && !available(__builtin_available(macOS 14.5, *)));
  CHECK(available(__builtin_available(macOS 13, iOS 16, *)) && !available(__builtin_available(macOS 15.0, *)));
}

CASE(system_libraries) {
  CHECK(vm_page_size == 16384 && round_page(1) == 16384);
  static const char bytes[] = "library";
  mpsforge_host_add_section("__TEXT", "metal_bfloat", bytes, sizeof bytes);
  CHECK(_dyld_image_count() == 1 && std::strstr(_dyld_get_image_name(0), "/libtorch_cpu.dylib"));
  unsigned long size = 0;
  auto* header = reinterpret_cast<const mach_header_64*>(_dyld_get_image_header(0));
  CHECK(getsectiondata(header, "__TEXT", "metal_bfloat", &size) == reinterpret_cast<const uint8_t*>(bytes) &&
        size == 8);
  CHECK(getsectiondata(header, "__TEXT", "metal_none", &size) == nullptr);
  os_log_t log = os_log_create("a", "b");
  const os_signpost_id_t id = os_signpost_id_generate(log);
  CHECK(os_signpost_enabled(log) && id != OS_SIGNPOST_ID_NULL);
  os_signpost_event_emit(log, id, "event", "%s", "text");
  os_signpost_interval_begin(log, id, "interval", "%{public}s %d", "text", 3);
  os_signpost_interval_end(log, id, "interval");
  CHECK(mpsforge_host_signposts(OS_SIGNPOST_EVENT) == 1 && mpsforge_host_signposts(OS_SIGNPOST_INTERVAL_END) == 1);
  os_release(log);
  NSLock* lock = [[[NSLock alloc] init] autorelease];
  [lock lock];
  CHECK(![lock tryLock]);
  [lock unlock];
}

// As PyTorch asks for the number of the GPU's cores.
CASE(gpu_cores) {
  io_iterator_t iterator = 0;
  CHECK(IOServiceGetMatchingServices(kIOMainPortDefault, IOServiceMatching("AGXAccelerator"), &iterator) ==
        KERN_SUCCESS);
  const io_registry_entry_t entry = IOIteratorNext(iterator);
  CHECK(entry != 0 && IOIteratorNext(iterator) == 0);
  CFTypeRef property = IORegistryEntryCreateCFProperty(entry, CFSTR("gpu-core-count"), kCFAllocatorDefault, 0);
  int count = 0;
  CHECK(CFNumberGetValue(static_cast<CFNumberRef>(property), kCFNumberIntType, &count) && count > 0);
  CFRelease(property);
  IOObjectRelease(entry);
  IOObjectRelease(iterator);
}

DIES(index_beyond_end, "-[NSArray objectAtIndex:]: 1 is beyond the end, 1") { (void)@[ @1 ][1]; }
DIES(nil_in_array, "-[NSMutableArray insertObject:atIndex:]: object is nil") {
  [[NSMutableArray array] addObject:(id)nil];
}
DIES(nil_as_key, "-[NSMutableDictionary setObject:forKey:]: key is nil") {
  [[NSMutableDictionary dictionary] setObject:@1 forKey:(id)nil];
}
DIES(changed_while_enumerated, "was changed while it was enumerated") {
  NSMutableArray* array = [NSMutableArray arrayWithArray:@[ @1, @2 ]];
  for (id object in array) [array addObject:object];
}
DIES(unknown_conversion, "the conversion %y, which is not known") {
  NSString* format = @"%y";
  [NSString stringWithFormat:format, 1];
}
DIES(unavailable, "without a version of macOS") { (void)__builtin_available(iOS 14.0, *); }
DIES(locked_again, "is locked again by its owner") {
  os_unfair_lock lock = OS_UNFAIR_LOCK_INIT;
  os_unfair_lock_lock(&lock);
  os_unfair_lock_lock(&lock);
}
DIES(shown_log, "default:default shown text 3", "MPSFORGE_OS_LOG=1") {
  os_log(OS_LOG_DEFAULT, "shown %{public}s %d", "text", 3);
  std::abort();
}
DIES(wrong_version, "MPSFORGE_METAL_MACOS=x is not a version", "MPSFORGE_METAL_MACOS=x") {
  [[NSProcessInfo processInfo] operatingSystemVersion];
}

}  // namespace
