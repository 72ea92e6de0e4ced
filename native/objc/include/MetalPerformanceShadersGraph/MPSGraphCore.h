#pragma once

#import <MetalPerformanceShaders/MPSCore/MPSCoreTypes.h>

typedef NS_ENUM(NSUInteger, MPSGraphTensorNamedDataLayout) {
  MPSGraphTensorNamedDataLayoutNCHW = 0,
  MPSGraphTensorNamedDataLayoutNHWC = 1,
  MPSGraphTensorNamedDataLayoutOIHW = 2,
  MPSGraphTensorNamedDataLayoutHWIO = 3,
  MPSGraphTensorNamedDataLayoutCHW = 4,
  MPSGraphTensorNamedDataLayoutHWC = 5,
  MPSGraphTensorNamedDataLayoutHW = 6,
  MPSGraphTensorNamedDataLayoutNCDHW = 7,
  MPSGraphTensorNamedDataLayoutNDHWC = 8,
  MPSGraphTensorNamedDataLayoutOIDHW = 9,
  MPSGraphTensorNamedDataLayoutDHWIO = 10,
};

typedef NS_ENUM(NSUInteger, MPSGraphPaddingStyle) {
  MPSGraphPaddingStyleExplicit = 0,
  MPSGraphPaddingStyleTF_VALID = 1,
  MPSGraphPaddingStyleTF_SAME = 2,
  MPSGraphPaddingStyleExplicitOffset = 3,
  MPSGraphPaddingStyleONNX_SAME_LOWER = 4,
};

typedef NS_ENUM(NSInteger, MPSGraphPaddingMode) {
  MPSGraphPaddingModeConstant = 0,
  MPSGraphPaddingModeReflect = 1,
  MPSGraphPaddingModeSymmetric = 2,
  MPSGraphPaddingModeClampToEdge = 3,
  MPSGraphPaddingModeZero = 4,
  MPSGraphPaddingModePeriodic = 5,
  MPSGraphPaddingModeAntiPeriodic = 6,
};

typedef NS_ENUM(NSUInteger, MPSGraphReductionMode) {
  MPSGraphReductionModeMin = 0,
  MPSGraphReductionModeMax = 1,
  MPSGraphReductionModeSum = 2,
  MPSGraphReductionModeProduct = 3,
  MPSGraphReductionModeArgumentMin = 4,
  MPSGraphReductionModeArgumentMax = 5,
};

typedef NS_ENUM(uint64_t, MPSGraphOptions) {
  MPSGraphOptionsNone = 0,
  MPSGraphOptionsSynchronizeResults = 1,
  MPSGraphOptionsVerbose = 2,
  MPSGraphOptionsDefault = MPSGraphOptionsSynchronizeResults,
};

typedef NS_ENUM(uint64_t, MPSGraphOptimization) {
  MPSGraphOptimizationLevel0 = 0,
  MPSGraphOptimizationLevel1 = 1,
};

typedef NS_ENUM(uint64_t, MPSGraphOptimizationProfile) {
  MPSGraphOptimizationProfilePerformance = 0,
  MPSGraphOptimizationProfilePowerEfficiency = 1,
};
