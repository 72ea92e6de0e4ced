#pragma once

#import <Foundation/Foundation.h>
#import <dispatch/dispatch.h>

@protocol MTLDevice;
@protocol MTLSharedEvent;

@protocol MTLEvent <NSObject>
@property(copy, atomic) NSString* label;
@property(readonly) id<MTLDevice> device;
@end

@interface MTLSharedEventListener : NSObject
@property(readonly, nonatomic) dispatch_queue_t dispatchQueue;
- (instancetype)init;
- (instancetype)initWithDispatchQueue:(dispatch_queue_t)queue;
@end

typedef void (^MTLSharedEventNotificationBlock)(id<MTLSharedEvent> event, uint64_t value);

@protocol MTLSharedEvent <MTLEvent>
@property uint64_t signaledValue;
- (void)notifyListener:(MTLSharedEventListener*)listener
               atValue:(uint64_t)value
                 block:(MTLSharedEventNotificationBlock)block;
- (BOOL)waitUntilSignaledValue:(uint64_t)value timeoutMS:(uint64_t)milliseconds;
@end
