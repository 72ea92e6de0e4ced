// Serial dispatch queues of the backend on Apple's framework, by libdispatch. Not run yet, see framework_darwin.m.
#import "framework_darwin.h"

static ForgeSerialQueue* queue_of(mpsforge_metal_serial_queue* pointer) {
  return (__bridge ForgeSerialQueue*)(void*)pointer;
}

// The blocks that the calling thread is in, innermost first. dispatch_get_specific would only know the innermost one's
// queue, but the thread owns the queues of all of them: dispatch_sync on any is signature 16.
struct frame {
  const void* queue;
  const struct frame* outer;
};
static _Thread_local const struct frame* innermost;

// The caller's block keeps the queue's object, so that no other gets its address meanwhile.
static void run_block(ForgeSerialQueue* queue, mpsforge_metal_function function, void* context) {
  const struct frame frame = {(__bridge const void*)queue, innermost};
  innermost = &frame;
  function(context);
  innermost = frame.outer;
}

mpsforge_metal_serial_queue* mpsforge_metal_framework_serial_create(mpsforge_metal_device* device, const char* label) {
  @autoreleasepool {
    ForgeDevice* of = (__bridge ForgeDevice*)(void*)device;
    if (!of) return NULL;
    ForgeSerialQueue* made = [[ForgeSerialQueue alloc] initWithDevice:of kind:ForgeKindSerialQueue];
    made.dispatch = dispatch_queue_create(label, DISPATCH_QUEUE_SERIAL);
    return forge_hand_out(made);
  }
}

void mpsforge_metal_framework_serial_sync(mpsforge_metal_serial_queue* queue, mpsforge_metal_function function,
                                          void* context) {
  @autoreleasepool {
    ForgeSerialQueue* of = queue_of(queue);
    if (!of) return;
    dispatch_sync(of.dispatch, ^{
      run_block(of, function, context);
    });
  }
}

void mpsforge_metal_framework_serial_async(mpsforge_metal_serial_queue* queue, mpsforge_metal_function function,
                                           void* context) {
  @autoreleasepool {
    ForgeSerialQueue* of = queue_of(queue);
    if (!of) return;
    dispatch_async(of.dispatch, ^{
      @autoreleasepool {
        run_block(of, function, context);
      }
    });
  }
}

int mpsforge_metal_framework_serial_is_current(mpsforge_metal_serial_queue* queue) {
  for (const struct frame* frame = innermost; queue && frame; frame = frame->outer) {
    if (frame->queue == queue) return 1;
  }
  return 0;
}

void mpsforge_metal_framework_serial_release(mpsforge_metal_serial_queue* queue) {
  // From inside of one of its own blocks there is nothing to wait for: libdispatch keeps the queue until it is empty.
  if (queue && !mpsforge_metal_framework_serial_is_current(queue)) {
    dispatch_sync(queue_of(queue).dispatch, ^{
                  });
  }
  forge_take_back(queue);
}
