#pragma once

#import <Foundation/Foundation.h>
#include <mach/boolean.h>
#include <simd/simd.h>

// The low bits are the size in bits.
typedef NS_ENUM(uint32_t, MPSDataType) {
  MPSDataTypeInvalid = 0,

  MPSDataTypeFloatBit = 0x10000000,
  MPSDataTypeFloat32 = MPSDataTypeFloatBit | 32,
  MPSDataTypeFloat16 = MPSDataTypeFloatBit | 16,

  MPSDataTypeComplexBit = 0x01000000,
  MPSDataTypeComplexFloat32 = MPSDataTypeFloatBit | MPSDataTypeComplexBit | 64,
  MPSDataTypeComplexFloat16 = MPSDataTypeFloatBit | MPSDataTypeComplexBit | 32,

  MPSDataTypeSignedBit = 0x20000000,
  MPSDataTypeInt4 = MPSDataTypeSignedBit | 4,
  MPSDataTypeInt8 = MPSDataTypeSignedBit | 8,
  MPSDataTypeInt16 = MPSDataTypeSignedBit | 16,
  MPSDataTypeInt32 = MPSDataTypeSignedBit | 32,
  MPSDataTypeInt64 = MPSDataTypeSignedBit | 64,

  MPSDataTypeUInt4 = 4,
  MPSDataTypeUInt8 = 8,
  MPSDataTypeUInt16 = 16,
  MPSDataTypeUInt32 = 32,
  MPSDataTypeUInt64 = 64,

  MPSDataTypeAlternateEncodingBit = 0x80000000,
  MPSDataTypeBool = MPSDataTypeAlternateEncodingBit | 8,
  MPSDataTypeBFloat16 = MPSDataTypeAlternateEncodingBit | MPSDataTypeFloat16,

  MPSDataTypeNormalizedBit = 0x40000000,
  MPSDataTypeUnorm1 = MPSDataTypeNormalizedBit | 1,
  MPSDataTypeUnorm8 = MPSDataTypeNormalizedBit | 8,
};

typedef NS_OPTIONS(NSUInteger, MPSAliasingStrategy) {
  MPSAliasingStrategyDefault = 0,
  MPSAliasingStrategyDontCare = MPSAliasingStrategyDefault,
  MPSAliasingStrategyShallAlias = 1 << 0,
  MPSAliasingStrategyShallNotAlias = 1 << 1,
  MPSAliasingStrategyAliasingReserved = MPSAliasingStrategyShallAlias | MPSAliasingStrategyShallNotAlias,
  MPSAliasingStrategyPreferTemporaryMemory = 1 << 2,
  MPSAliasingStrategyPreferNonTemporaryMemory = 1 << 3,
};

typedef NSArray<NSNumber*> MPSShape;

typedef struct {
  NSUInteger start;
  NSUInteger length;
} MPSDimensionSlice;
