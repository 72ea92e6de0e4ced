// Arrays and enumerators.
#include <algorithm>
#include <vector>

#include "support.h"

struct NSArrayStorage {
  std::vector<id> objects;
  unsigned long mutations = 0;
};

@interface NSEnumerator (MPSForge)
- (instancetype)initWithObjects:(NSArray*)objects;
@end

namespace {

std::vector<id> read_arguments(id first, va_list arguments) {
  std::vector<id> objects;
  for (id object = first; object; object = va_arg(arguments, id)) objects.push_back(object);
  return objects;
}

void print(NSMutableString* to, NSArray* array) {
  [to appendString:@"(\n"];
  NSUInteger index = 0;
  for (id object in array) {
    [to appendFormat:@"    %@%s\n", object, ++index < [array count] ? "," : ""];
  }
  [to appendString:@")"];
}

}  // namespace

@implementation NSArray

+ (instancetype)array {
  return [[[self alloc] init] autorelease];
}

+ (instancetype)arrayWithObject:(id)object {
  return [[[self alloc] initWithObjects:&object count:1] autorelease];
}

+ (instancetype)arrayWithObjects:(const id[])objects count:(NSUInteger)count {
  return [[[self alloc] initWithObjects:objects count:count] autorelease];
}

+ (instancetype)arrayWithObjects:(id)first, ... {
  va_list arguments;
  va_start(arguments, first);
  const std::vector<id> objects = read_arguments(first, arguments);
  va_end(arguments);
  return [[[self alloc] initWithObjects:objects.data() count:objects.size()] autorelease];
}

+ (instancetype)arrayWithArray:(NSArray*)array {
  return [[[self alloc] initWithArray:array] autorelease];
}

- (instancetype)init {
  return [self initWithObjects:nullptr count:0];
}

- (instancetype)initWithObjects:(const id[])objects count:(NSUInteger)count {
  if (!(self = [super init])) return nil;
  storage_ = new NSArrayStorage;
  storage_->objects.reserve(count);
  for (NSUInteger i = 0; i < count; ++i) {
    if (!objects[i]) mpsforge::objc::invalid_argument(self, _cmd, "an object is nil");
    storage_->objects.push_back([objects[i] retain]);
  }
  return self;
}

- (instancetype)initWithObjects:(id)first, ... {
  va_list arguments;
  va_start(arguments, first);
  const std::vector<id> objects = read_arguments(first, arguments);
  va_end(arguments);
  return [self initWithObjects:objects.data() count:objects.size()];
}

- (instancetype)initWithArray:(NSArray*)array {
  return [self initWithObjects:array ? array->storage_->objects.data() : nullptr count:[array count]];
}

- (void)dealloc {
  if (storage_) {
    for (id object : storage_->objects) [object release];
  }
  delete storage_;
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}

- (id)mutableCopyWithZone:(NSZone*)zone {
  return [[NSMutableArray alloc] initWithArray:self];
}

- (NSUInteger)count {
  return storage_->objects.size();
}

- (id)objectAtIndex:(NSUInteger)index {
  if (index >= storage_->objects.size()) mpsforge::objc::out_of_range(self, _cmd, index, storage_->objects.size());
  return storage_->objects[index];
}

- (id)objectAtIndexedSubscript:(NSUInteger)index {
  return [self objectAtIndex:index];
}

- (id)firstObject {
  return storage_->objects.empty() ? nil : storage_->objects.front();
}

- (id)lastObject {
  return storage_->objects.empty() ? nil : storage_->objects.back();
}

- (BOOL)containsObject:(id)object {
  return [self indexOfObject:object] != static_cast<NSUInteger>(NSNotFound);
}

- (NSUInteger)indexOfObject:(id)object {
  for (NSUInteger i = 0; i < storage_->objects.size(); ++i) {
    if (mpsforge::objc::Equal()(storage_->objects[i], object)) return i;
  }
  return static_cast<NSUInteger>(NSNotFound);
}

- (NSUInteger)indexOfObjectIdenticalTo:(id)object {
  for (NSUInteger i = 0; i < storage_->objects.size(); ++i) {
    if (storage_->objects[i] == object) return i;
  }
  return static_cast<NSUInteger>(NSNotFound);
}

- (BOOL)isEqualToArray:(NSArray*)array {
  return array && storage_->objects.size() == array->storage_->objects.size() &&
         std::equal(storage_->objects.begin(), storage_->objects.end(), array->storage_->objects.begin(),
                    mpsforge::objc::Equal());
}

- (BOOL)isEqual:(id)object {
  return self == object || ([object isKindOfClass:[NSArray class]] && [self isEqualToArray:object]);
}

// The number of objects, as Foundation does: it stays when an object in it changes.
- (NSUInteger)hash {
  return [self count];
}

- (NSArray*)arrayByAddingObject:(id)object {
  NSMutableArray* longer = [NSMutableArray arrayWithArray:self];
  [longer addObject:object];
  return [NSArray arrayWithArray:longer];
}

- (NSArray*)arrayByAddingObjectsFromArray:(NSArray*)array {
  NSMutableArray* longer = [NSMutableArray arrayWithArray:self];
  [longer addObjectsFromArray:array];
  return [NSArray arrayWithArray:longer];
}

- (NSArray*)subarrayWithRange:(NSRange)range {
  const NSUInteger count = [self count];
  if (range.location > count || range.length > count - range.location) {
    mpsforge::objc::out_of_range(self, _cmd, NSMaxRange(range), count);
  }
  return [NSArray arrayWithObjects:storage_->objects.data() + range.location count:range.length];
}

- (NSArray*)sortedArrayUsingComparator:(NSComparator NS_NOESCAPE)comparator {
  std::vector<id> sorted = storage_->objects;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](id first, id second) { return comparator(first, second) == NSOrderedAscending; });
  return [NSArray arrayWithObjects:sorted.data() count:sorted.size()];
}

- (NSArray*)sortedArrayUsingSelector:(SEL)comparator {
  return [self sortedArrayUsingComparator:^NSComparisonResult(id first, id second) {
    return reinterpret_cast<NSComparisonResult (*)(id, SEL, id)>([first methodForSelector:comparator])(
        first, comparator, second);
  }];
}

- (void)getObjects:(id __unsafe_unretained[])objects range:(NSRange)range {
  for (NSUInteger i = 0; i < range.length; ++i) objects[i] = [self objectAtIndex:range.location + i];
}

- (NSString*)componentsJoinedByString:(NSString*)separator {
  NSMutableString* joined = [NSMutableString string];
  for (NSUInteger i = 0; i < [self count]; ++i) {
    if (i > 0) [joined appendString:separator ? separator : @""];
    [joined appendString:[[self objectAtIndex:i] description]];
  }
  return [NSString stringWithString:joined];
}

// The values of all objects, in order.
- (id)valueForKey:(NSString*)key {
  NSMutableArray* values = [NSMutableArray arrayWithCapacity:[self count]];
  for (id object : storage_->objects) {
    id value = [object valueForKey:key];
    [values addObject:value ? value : [NSNull null]];
  }
  return [NSArray arrayWithArray:values];
}

- (NSEnumerator*)objectEnumerator {
  return [[[NSEnumerator alloc] initWithObjects:self] autorelease];
}

- (NSEnumerator*)reverseObjectEnumerator {
  const std::vector<id> reversed(storage_->objects.rbegin(), storage_->objects.rend());
  return [[NSArray arrayWithObjects:reversed.data() count:reversed.size()] objectEnumerator];
}

- (void)enumerateObjectsUsingBlock:(void(NS_NOESCAPE ^)(id object, NSUInteger index, BOOL* stop))block {
  BOOL stop = NO;
  for (NSUInteger i = 0; i < [self count] && !stop; ++i) block([self objectAtIndex:i], i, &stop);
}

- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id __unsafe_unretained[])buffer
                                    count:(NSUInteger)count {
  if (state->state != 0) return 0;
  state->state = 1;
  state->itemsPtr = storage_->objects.data();
  state->mutationsPtr = &storage_->mutations;
  return storage_->objects.size();
}

- (NSString*)description {
  NSMutableString* text = [NSMutableString string];
  print(text, self);
  return [NSString stringWithString:text];
}

@end

@implementation NSMutableArray

+ (instancetype)arrayWithCapacity:(NSUInteger)capacity {
  return [[[self alloc] initWithCapacity:capacity] autorelease];
}

- (instancetype)initWithCapacity:(NSUInteger)capacity {
  if ((self = [self init])) storage_->objects.reserve(capacity);
  return self;
}

- (id)copyWithZone:(NSZone*)zone {
  return [[NSArray alloc] initWithArray:self];
}

- (void)addObject:(id)object {
  [self insertObject:object atIndex:[self count]];
}

- (void)addObjectsFromArray:(NSArray*)array {
  for (id object in [NSArray arrayWithArray:array]) [self addObject:object];
}

- (void)insertObject:(id)object atIndex:(NSUInteger)index {
  if (!object) mpsforge::objc::invalid_argument(self, _cmd, "object is nil");
  if (index > [self count]) mpsforge::objc::out_of_range(self, _cmd, index, [self count]);
  ++storage_->mutations;
  storage_->objects.insert(storage_->objects.begin() + static_cast<ptrdiff_t>(index), [object retain]);
}

- (void)replaceObjectAtIndex:(NSUInteger)index withObject:(id)object {
  if (!object) mpsforge::objc::invalid_argument(self, _cmd, "object is nil");
  id old = [self objectAtIndex:index];
  storage_->objects[index] = [object retain];
  [old release];
}

- (void)setObject:(id)object atIndexedSubscript:(NSUInteger)index {
  if (index == [self count]) {
    [self addObject:object];
  } else {
    [self replaceObjectAtIndex:index withObject:object];
  }
}

- (void)exchangeObjectAtIndex:(NSUInteger)first withObjectAtIndex:(NSUInteger)second {
  id kept = [self objectAtIndex:first];
  storage_->objects[first] = [self objectAtIndex:second];
  storage_->objects[second] = kept;
}

- (void)removeObjectAtIndex:(NSUInteger)index {
  id old = [self objectAtIndex:index];
  ++storage_->mutations;
  storage_->objects.erase(storage_->objects.begin() + static_cast<ptrdiff_t>(index));
  [old release];
}

- (void)removeObject:(id)object {
  for (NSUInteger i = [self count]; i-- > 0;) {
    if (mpsforge::objc::Equal()(storage_->objects[i], object)) [self removeObjectAtIndex:i];
  }
}

- (void)removeLastObject {
  if ([self count] == 0) mpsforge::objc::out_of_range(self, _cmd, 0, 0);
  [self removeObjectAtIndex:[self count] - 1];
}

- (void)removeAllObjects {
  std::vector<id> old;
  old.swap(storage_->objects);
  ++storage_->mutations;
  for (id object : old) [object release];
}

- (void)setArray:(NSArray*)array {
  NSArray* kept = [NSArray arrayWithArray:array];
  [self removeAllObjects];
  [self addObjectsFromArray:kept];
}

- (void)sortUsingComparator:(NSComparator NS_NOESCAPE)comparator {
  [self setArray:[self sortedArrayUsingComparator:comparator]];
}

@end

@implementation NSEnumerator

- (instancetype)initWithObjects:(NSArray*)objects {
  if ((self = [super init])) objects_ = [objects copy];
  return self;
}

- (id)nextObject {
  return next_ < [objects_ count] ? [objects_ objectAtIndex:next_++] : nil;
}

- (NSArray*)allObjects {
  NSMutableArray* rest = [NSMutableArray array];
  while (id object = [self nextObject]) [rest addObject:object];
  return rest;
}

- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id __unsafe_unretained[])buffer
                                    count:(NSUInteger)count {
  state->itemsPtr = buffer;
  state->mutationsPtr = &state->extra[0];
  state->state = 1;
  NSUInteger filled = 0;
  while (filled < count && (buffer[filled] = [self nextObject])) ++filled;
  return filled;
}

- (void)dealloc {
  [objects_ release];
  [super dealloc];
}

@end
