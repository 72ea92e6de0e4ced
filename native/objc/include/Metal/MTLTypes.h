#pragma once

#import <Foundation/Foundation.h>

typedef struct {
  NSUInteger width, height, depth;
} MTLSize;

typedef struct {
  NSUInteger x, y, z;
} MTLOrigin;

typedef struct {
  MTLOrigin origin;
  MTLSize size;
} MTLRegion;

typedef struct {
  NSUInteger size;
  NSUInteger align;
} MTLSizeAndAlign;

static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) {
  MTLSize size = {width, height, depth};
  return size;
}

static inline MTLOrigin MTLOriginMake(NSUInteger x, NSUInteger y, NSUInteger z) {
  MTLOrigin origin = {x, y, z};
  return origin;
}

static inline MTLRegion MTLRegionMake1D(NSUInteger x, NSUInteger width) {
  MTLRegion region = {MTLOriginMake(x, 0, 0), MTLSizeMake(width, 1, 1)};
  return region;
}
