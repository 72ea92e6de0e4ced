// The part of Metal that PyTorch's MPS sources use, declared as Apple's pages give it. The classes behind the protocols
// are in native/objc/metal.
#pragma once

#import <Foundation/Foundation.h>
#import <IOKit/IOKitLib.h>  // comes with Metal on macOS; PyTorch relies on it
#import <Metal/MTLArgumentEncoder.h>
#import <Metal/MTLBlitCommandEncoder.h>
#import <Metal/MTLBuffer.h>
#import <Metal/MTLCaptureManager.h>
#import <Metal/MTLCommandBuffer.h>
#import <Metal/MTLCommandEncoder.h>
#import <Metal/MTLCommandQueue.h>
#import <Metal/MTLComputeCommandEncoder.h>
#import <Metal/MTLComputePipeline.h>
#import <Metal/MTLDevice.h>
#import <Metal/MTLEvent.h>
#import <Metal/MTLHeap.h>
#import <Metal/MTLLibrary.h>
#import <Metal/MTLResource.h>
#import <Metal/MTLTypes.h>
