// The vector types that PyTorch names. Their size and alignment are Apple's: three lanes take the room of four, and
// none is aligned to more than 16 bytes.
#pragma once

typedef unsigned int simd_uint2 __attribute__((ext_vector_type(2)));
typedef unsigned int simd_uint3 __attribute__((ext_vector_type(3)));
typedef unsigned int simd_uint4 __attribute__((ext_vector_type(4)));
typedef unsigned long simd_ulong2 __attribute__((ext_vector_type(2)));
typedef unsigned long simd_ulong3 __attribute__((ext_vector_type(3), aligned(16)));
typedef unsigned long simd_ulong4 __attribute__((ext_vector_type(4), aligned(16)));
typedef float simd_float2 __attribute__((ext_vector_type(2)));
typedef float simd_float3 __attribute__((ext_vector_type(3)));
typedef float simd_float4 __attribute__((ext_vector_type(4)));
