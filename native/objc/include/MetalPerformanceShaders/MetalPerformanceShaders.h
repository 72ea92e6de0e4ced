// Metal Performance Shaders, so far as PyTorch's MPS backend uses them.
#pragma once

#import <Metal/Metal.h>
#import <MetalPerformanceShaders/MPSCommandBuffer.h>
#import <MetalPerformanceShaders/MPSCore/MPSCoreTypes.h>
#import <MetalPerformanceShaders/MPSKernel.h>
#import <MetalPerformanceShaders/MPSMatrix/MPSMatrix.h>
#import <MetalPerformanceShaders/MPSNDArray/MPSNDArray.h>
#import <MetalPerformanceShaders/MPSNDArray/MPSNDArrayKernel.h>
