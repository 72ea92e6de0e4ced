// Sets: dictionaries without objects, in the order in which members came.
#include <unordered_map>
#include <vector>

#include "support.h"

struct NSSetStorage {
  std::vector<id> members;
  std::unordered_map<id, size_t, mpsforge::objc::Hash, mpsforge::objc::Equal> places;
  unsigned long mutations = 0;

  void add(id member) {
    if (!places.emplace(member, members.size()).second) return;
    ++mutations;
    members.push_back([member retain]);
  }

  void remove(id member) {
    const auto found = places.find(member);
    if (found == places.end()) return;
    const size_t place = found->second;
    id old = members[place];
    ++mutations;
    places.erase(found);
    members.erase(members.begin() + static_cast<ptrdiff_t>(place));
    for (auto& [other, at] : places) {
      if (at > place) --at;
    }
    [old release];
  }
};

@implementation NSSet

+ (instancetype)set {
  return [[[self alloc] initWithObjects:nullptr count:0] autorelease];
}

+ (instancetype)setWithObject:(id)object {
  return [[[self alloc] initWithObjects:&object count:1] autorelease];
}

+ (instancetype)setWithObjects:(const id[])objects count:(NSUInteger)count {
  return [[[self alloc] initWithObjects:objects count:count] autorelease];
}

+ (instancetype)setWithObjects:(id)first, ... {
  std::vector<id> objects;
  va_list arguments;
  va_start(arguments, first);
  for (id object = first; object; object = va_arg(arguments, id)) objects.push_back(object);
  va_end(arguments);
  return [[[self alloc] initWithObjects:objects.data() count:objects.size()] autorelease];
}

+ (instancetype)setWithArray:(NSArray*)array {
  std::vector<id> objects([array count]);
  [array getObjects:objects.data() range:NSMakeRange(0, objects.size())];
  return [[[self alloc] initWithObjects:objects.data() count:objects.size()] autorelease];
}

- (instancetype)init {
  return [self initWithObjects:nullptr count:0];
}

- (instancetype)initWithObjects:(const id[])objects count:(NSUInteger)count {
  if (!(self = [super init])) return nil;
  storage_ = new NSSetStorage;
  for (NSUInteger i = 0; i < count; ++i) {
    if (!objects[i]) mpsforge::objc::invalid_argument(self, _cmd, "an object is nil");
    storage_->add(objects[i]);
  }
  return self;
}

- (void)dealloc {
  if (storage_) {
    storage_->places.clear();
    for (id member : storage_->members) [member release];
  }
  delete storage_;
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}

- (id)mutableCopyWithZone:(NSZone*)zone {
  return [[NSMutableSet alloc] initWithObjects:storage_->members.data() count:[self count]];
}

- (NSUInteger)count {
  return storage_->members.size();
}

- (NSArray*)allObjects {
  return [NSArray arrayWithObjects:storage_->members.data() count:storage_->members.size()];
}

- (id)member:(id)object {
  if (!object) return nil;
  const auto found = storage_->places.find(object);
  return found == storage_->places.end() ? nil : storage_->members[found->second];
}

- (id)anyObject {
  return storage_->members.empty() ? nil : storage_->members.front();
}

- (BOOL)containsObject:(id)object {
  return [self member:object] != nil;
}

- (BOOL)isEqualToSet:(NSSet*)set {
  if (!set || [self count] != [set count]) return NO;
  for (id member : storage_->members) {
    if (![set containsObject:member]) return NO;
  }
  return YES;
}

- (BOOL)isEqual:(id)object {
  return self == object || ([object isKindOfClass:[NSSet class]] && [self isEqualToSet:object]);
}

- (NSUInteger)hash {
  return [self count];
}

- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id __unsafe_unretained[])buffer
                                    count:(NSUInteger)count {
  if (state->state != 0) return 0;
  state->state = 1;
  state->itemsPtr = storage_->members.data();
  state->mutationsPtr = &storage_->mutations;
  return storage_->members.size();
}

- (NSString*)description {
  return [NSString stringWithFormat:@"{%@}", [[self allObjects] description]];
}

@end

@implementation NSMutableSet

- (id)copyWithZone:(NSZone*)zone {
  return [[NSSet alloc] initWithObjects:storage_->members.data() count:[self count]];
}

- (void)addObject:(id)object {
  if (!object) mpsforge::objc::invalid_argument(self, _cmd, "object is nil");
  storage_->add(object);
}

- (void)removeObject:(id)object {
  if (object) storage_->remove(object);
}

- (void)removeAllObjects {
  while ([self count] > 0) storage_->remove(storage_->members.back());
}

@end
