#import <Foundation/Foundation.h>

#include "../engine.h"
#include "metal_objects.h"

using namespace mpsforge::objc;

namespace {

// A block that waits for a value. It owns the event and the listener, which may be released meanwhile.
struct Notification {
  SoftwareMTLEvent* event;
  MTLSharedEventListener* listener;
  uint64_t value;
  MTLSharedEventNotificationBlock block;
};

void call(Notification* notification) {
  @autoreleasepool {
    notification->block(notification->event, notification->value);
    [notification->block release];
    [notification->listener release];
    [notification->event release];
  }
  delete notification;
}

// On the engine's thread for listeners. A listener that was made with a queue gets its calls there.
void notify(void* context) {
  OutsideEngine outside;
  auto* notification = static_cast<Notification*>(context);
  dispatch_queue_t queue = notification->listener.dispatchQueue;
  if (!queue) {
    call(notification);
    return;
  }
  dispatch_async(queue, ^{
    call(notification);
  });
}

}  // namespace

@implementation SoftwareMTLEvent {
  id<MTLDevice> _device;  // lives as long as the process
}

- (instancetype)initForDevice:(id<MTLDevice>)device {
  self = [super init];
  if (self) {
    _device = device;
    EngineCall guard;
    _engine = api().event_create(mpsforge::objc::device(), nullptr);
  }
  return self;
}

- (void)dealloc {
  if (_engine) {
    EngineCall guard;
    api().event_release(_engine);
  }
  [super dealloc];
}

// Apple's MTLEvent.h: nil when the event is shared across devices, as an MTLSharedEvent is.
- (id<MTLDevice>)device {
  return _device;
}

- (uint64_t)signaledValue {
  EngineCall guard;
  return api().event_value(_engine);
}

- (void)setSignaledValue:(uint64_t)value {
  EngineCall guard;
  api().event_set(_engine, value);
}

- (void)notifyListener:(MTLSharedEventListener*)listener
               atValue:(uint64_t)value
                 block:(MTLSharedEventNotificationBlock)block {
  if (!listener || !block) fail("-[SoftwareMTLEvent notifyListener:atValue:block:] with nil");
  auto* notification = new Notification{[self retain], [listener retain], value, [block copy]};
  EngineCall guard;
  api().event_notify(_engine, value, notify, notification);
}

- (BOOL)waitUntilSignaledValue:(uint64_t)value timeoutMS:(uint64_t)milliseconds {
  EngineCall guard;
  const int64_t forever = -1;
  const bool ever = milliseconds > static_cast<uint64_t>(INT64_MAX);
  return api().event_wait(_engine, value, ever ? forever : static_cast<int64_t>(milliseconds)) != 0;
}

@end

@implementation MTLSharedEventListener {
  dispatch_queue_t _queue;
}

- (instancetype)init {
  return [super init];
}

- (instancetype)initWithDispatchQueue:(dispatch_queue_t)queue {
  self = [super init];
  if (!self) return nil;
  if (!queue) fail("-[MTLSharedEventListener initWithDispatchQueue:] with nil");
  dispatch_retain(queue);
  _queue = queue;
  return self;
}

- (void)dealloc {
  if (_queue) dispatch_release(_queue);
  [super dealloc];
}

// nil where the calls come on a thread of the engine's own.
- (dispatch_queue_t)dispatchQueue {
  return _queue;
}

@end
