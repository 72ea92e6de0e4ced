// Dictionaries. They keep the order in which keys came, so that runs repeat.
#include <unordered_map>
#include <vector>

#include "support.h"

struct NSDictionaryStorage {
  std::vector<id> keys;
  std::vector<id> objects;
  std::unordered_map<id, size_t, mpsforge::objc::Hash, mpsforge::objc::Equal> places;
  unsigned long mutations = 0;

  // Takes over the reference to a key that is new; retains the object.
  void set(id key, id object) {
    [object retain];
    const auto found = places.find(key);
    if (found != places.end()) {
      [objects[found->second] release];
      objects[found->second] = object;
      return;
    }
    key = [key copy];
    ++mutations;
    places.emplace(key, keys.size());
    keys.push_back(key);
    objects.push_back(object);
  }

  void remove(id key) {
    const auto found = places.find(key);
    if (found == places.end()) return;
    const size_t place = found->second;
    id old_key = keys[place];
    id old_object = objects[place];
    ++mutations;
    places.erase(found);
    keys.erase(keys.begin() + static_cast<ptrdiff_t>(place));
    objects.erase(objects.begin() + static_cast<ptrdiff_t>(place));
    for (auto& [other, at] : places) {
      if (at > place) --at;
    }
    [old_key release];
    [old_object release];
  }

  void clear() {
    ++mutations;
    places.clear();
    std::vector<id> old = std::move(keys);
    old.insert(old.end(), objects.begin(), objects.end());
    keys.clear();
    objects.clear();
    for (id object : old) [object release];
  }
};

namespace {

// Objects and keys in turn, up to nil.
void read_arguments(id first, va_list arguments, std::vector<id>* objects, std::vector<id>* keys) {
  for (id object = first; object; object = va_arg(arguments, id)) {
    objects->push_back(object);
    keys->push_back(va_arg(arguments, id));
  }
}

}  // namespace

@implementation NSDictionary

+ (instancetype)dictionary {
  return [[[self alloc] init] autorelease];
}

+ (instancetype)dictionaryWithObject:(id)object forKey:(id<NSCopying>)key {
  return [[[self alloc] initWithObjects:&object forKeys:&key count:1] autorelease];
}

+ (instancetype)dictionaryWithObjects:(const id[])objects forKeys:(const id<NSCopying>[])keys count:(NSUInteger)count {
  return [[[self alloc] initWithObjects:objects forKeys:keys count:count] autorelease];
}

+ (instancetype)dictionaryWithObjects:(NSArray*)objects forKeys:(NSArray*)keys {
  if ([objects count] != [keys count]) {
    mpsforge::objc::invalid_argument(self, _cmd, "as many keys as objects are needed");
  }
  std::vector<id> all_objects([objects count]);
  std::vector<id> all_keys([keys count]);
  [objects getObjects:all_objects.data() range:NSMakeRange(0, all_objects.size())];
  [keys getObjects:all_keys.data() range:NSMakeRange(0, all_keys.size())];
  return [[[self alloc] initWithObjects:all_objects.data() forKeys:all_keys.data() count:all_keys.size()] autorelease];
}

+ (instancetype)dictionaryWithObjectsAndKeys:(id)first_object, ... {
  std::vector<id> objects;
  std::vector<id> keys;
  va_list arguments;
  va_start(arguments, first_object);
  read_arguments(first_object, arguments, &objects, &keys);
  va_end(arguments);
  return [[[self alloc] initWithObjects:objects.data() forKeys:keys.data() count:keys.size()] autorelease];
}

+ (instancetype)dictionaryWithDictionary:(NSDictionary*)dictionary {
  return [[[self alloc] initWithDictionary:dictionary] autorelease];
}

- (instancetype)init {
  return [self initWithObjects:nullptr forKeys:nullptr count:0];
}

- (instancetype)initWithObjects:(const id[])objects forKeys:(const id<NSCopying>[])keys count:(NSUInteger)count {
  if (!(self = [super init])) return nil;
  storage_ = new NSDictionaryStorage;
  for (NSUInteger i = 0; i < count; ++i) {
    if (!objects[i]) mpsforge::objc::invalid_argument(self, _cmd, "an object is nil");
    if (!keys[i]) mpsforge::objc::invalid_argument(self, _cmd, "a key is nil");
    storage_->set(keys[i], objects[i]);
  }
  return self;
}

- (instancetype)initWithObjectsAndKeys:(id)first_object, ... {
  std::vector<id> objects;
  std::vector<id> keys;
  va_list arguments;
  va_start(arguments, first_object);
  read_arguments(first_object, arguments, &objects, &keys);
  va_end(arguments);
  return [self initWithObjects:objects.data() forKeys:keys.data() count:keys.size()];
}

- (instancetype)initWithDictionary:(NSDictionary*)dictionary {
  if (!dictionary) return [self init];
  return [self initWithObjects:dictionary->storage_->objects.data()
                       forKeys:dictionary->storage_->keys.data()
                         count:[dictionary count]];
}

- (void)dealloc {
  if (storage_) storage_->clear();
  delete storage_;
  [super dealloc];
}

- (id)copyWithZone:(NSZone*)zone {
  return [self retain];
}

- (id)mutableCopyWithZone:(NSZone*)zone {
  return [[NSMutableDictionary alloc] initWithDictionary:self];
}

- (NSUInteger)count {
  return storage_->keys.size();
}

- (id)objectForKey:(id)key {
  if (!key) return nil;
  const auto found = storage_->places.find(key);
  return found == storage_->places.end() ? nil : storage_->objects[found->second];
}

- (id)objectForKeyedSubscript:(id)key {
  return [self objectForKey:key];
}

- (id)valueForKey:(NSString*)key {
  return [self objectForKey:key];
}

- (NSArray*)allKeys {
  return [NSArray arrayWithObjects:storage_->keys.data() count:storage_->keys.size()];
}

- (NSArray*)allValues {
  return [NSArray arrayWithObjects:storage_->objects.data() count:storage_->objects.size()];
}

- (NSEnumerator*)keyEnumerator {
  return [[self allKeys] objectEnumerator];
}

- (NSEnumerator*)objectEnumerator {
  return [[self allValues] objectEnumerator];
}

- (BOOL)isEqualToDictionary:(NSDictionary*)dictionary {
  if (!dictionary || [self count] != [dictionary count]) return NO;
  for (size_t i = 0; i < storage_->keys.size(); ++i) {
    id other = [dictionary objectForKey:storage_->keys[i]];
    if (!other || !mpsforge::objc::Equal()(storage_->objects[i], other)) return NO;
  }
  return YES;
}

- (BOOL)isEqual:(id)object {
  return self == object || ([object isKindOfClass:[NSDictionary class]] && [self isEqualToDictionary:object]);
}

- (NSUInteger)hash {
  return [self count];
}

- (void)enumerateKeysAndObjectsUsingBlock:(void(NS_NOESCAPE ^)(id key, id object, BOOL* stop))block {
  BOOL stop = NO;
  for (size_t i = 0; i < storage_->keys.size() && !stop; ++i) block(storage_->keys[i], storage_->objects[i], &stop);
}

- (NSUInteger)countByEnumeratingWithState:(NSFastEnumerationState*)state
                                  objects:(id __unsafe_unretained[])buffer
                                    count:(NSUInteger)count {
  if (state->state != 0) return 0;
  state->state = 1;
  state->itemsPtr = storage_->keys.data();
  state->mutationsPtr = &storage_->mutations;
  return storage_->keys.size();
}

- (NSString*)description {
  NSMutableString* text = [NSMutableString stringWithUTF8String:"{\n"];
  for (size_t i = 0; i < storage_->keys.size(); ++i) {
    [text appendFormat:@"    %@ = %@;\n", storage_->keys[i], storage_->objects[i]];
  }
  [text appendString:@"}"];
  return [NSString stringWithString:text];
}

@end

@implementation NSMutableDictionary

+ (instancetype)dictionaryWithCapacity:(NSUInteger)capacity {
  return [[[self alloc] initWithCapacity:capacity] autorelease];
}

- (instancetype)initWithCapacity:(NSUInteger)capacity {
  return [self init];
}

- (id)copyWithZone:(NSZone*)zone {
  return [[NSDictionary alloc] initWithDictionary:self];
}

- (void)setObject:(id)object forKey:(id<NSCopying>)key {
  if (!object) mpsforge::objc::invalid_argument(self, _cmd, "object is nil");
  if (!key) mpsforge::objc::invalid_argument(self, _cmd, "key is nil");
  storage_->set(key, object);
}

- (void)setObject:(id)object forKeyedSubscript:(id<NSCopying>)key {
  if (object) {
    [self setObject:object forKey:key];
  } else {
    [self removeObjectForKey:key];
  }
}

- (void)removeObjectForKey:(id)key {
  if (!key) mpsforge::objc::invalid_argument(self, _cmd, "key is nil");
  storage_->remove(key);
}

- (void)removeAllObjects {
  storage_->clear();
}

- (void)addEntriesFromDictionary:(NSDictionary*)dictionary {
  for (id key in dictionary) [self setObject:[dictionary objectForKey:key] forKey:key];
}

@end
