#pragma once

#import <Foundation/Foundation.h>

@protocol MTLCommandQueue;
@protocol MTLDevice;

typedef NS_ENUM(NSInteger, MTLCaptureDestination) {
  MTLCaptureDestinationDeveloperTools = 1,
  MTLCaptureDestinationGPUTraceDocument = 2,
};

typedef NS_ENUM(NSInteger, MTLCaptureError) {
  MTLCaptureErrorNotSupported = 1,
  MTLCaptureErrorAlreadyCapturing = 2,
  MTLCaptureErrorInvalidDescriptor = 3,
};

extern NSString* const MTLCaptureErrorDomain;

@interface MTLCaptureDescriptor : NSObject <NSCopying>
@property(nonatomic, retain) id captureObject;
@property(nonatomic) MTLCaptureDestination destination;
@property(nonatomic, copy) NSURL* outputURL;
@end

@protocol MTLCaptureScope <NSObject>
@property(copy, atomic) NSString* label;
- (void)beginScope;
- (void)endScope;
@end

@interface MTLCaptureManager : NSObject
@property(readonly) BOOL isCapturing;
@property(nonatomic, retain) id<MTLCaptureScope> defaultCaptureScope;
+ (MTLCaptureManager*)sharedCaptureManager;
- (BOOL)supportsDestination:(MTLCaptureDestination)destination;
- (BOOL)startCaptureWithDescriptor:(MTLCaptureDescriptor*)descriptor error:(NSError**)error;
- (void)stopCapture;
- (id<MTLCaptureScope>)newCaptureScopeWithCommandQueue:(id<MTLCommandQueue>)queue;
- (id<MTLCaptureScope>)newCaptureScopeWithDevice:(id<MTLDevice>)device;
@end
