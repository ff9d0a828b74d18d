// SPDX-License-Identifier: BSD-3-Clause
// What the driver calls of cuDNN (8 and 9), by the documentation of cudnn.h. Its headers are not
// needed to build, nor is it to run: it is found when a convolution is wanted first.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace puone::cuda {

/// Those of version 8 are below 1000, those of version 9 are grouped by the thousand.
enum class CudnnStatus : int {
  kSuccess = 0,
  kBadParameter8 = 3,
  kArchMismatch8 = 6,
  kNotSupported8 = 9,
  kFirstBadParameter = 2000,
  kFirstNotSupported = 3000,
  kFirstInternalError = 4000
};

enum class CudnnType : int {
  kFloat = 0,
  kDouble = 1,
  kHalf = 2,
  kBFloat16 = 9
};

enum class CudnnMath : int {
  kDefault = 0, // of float, factors may be rounded to TF32
  kTensorOp = 1,
  kFullFloat = 3 // CUDNN_FMA_MATH
};

constexpr int kCudnnNchw = 0;             // CUDNN_TENSOR_NCHW
constexpr int kCudnnCrossCorrelation = 1; // CUDNN_CROSS_CORRELATION
constexpr int kCudnnPropagateNan = 1;     // CUDNN_PROPAGATE_NAN
constexpr int kCudnnIdentity = 5;         // CUDNN_ACTIVATION_IDENTITY

/// Of each direction, the algorithm of this number is a product of matrices that sums in a fixed
/// order: IMPLICIT_PRECOMP_GEMM, BWD_DATA_ALGO_1 and BWD_FILTER_ALGO_1.
constexpr int kCudnnAlgorithm = 1;

using CudnnHandle = struct CudnnContext*;
using CudnnTensor = struct CudnnTensorDescriptor*;
using CudnnFilter = struct CudnnFilterDescriptor*;
using CudnnConvolution = struct CudnnConvolutionDescriptor*;
using CudnnActivation = struct CudnnActivationDescriptor*;

/// The library's functions, by their names in it. Factors are floats, or doubles of doubles.
struct Cudnn {
  CudnnStatus (*create)(CudnnHandle*);                 // cudnnCreate
  CudnnStatus (*setStream)(CudnnHandle, cudaStream_t); // cudnnSetStream
  CudnnStatus (*createTensor)(CudnnTensor*);           // cudnnCreateTensorDescriptor
  CudnnStatus (*destroyTensor)(CudnnTensor);           // cudnnDestroyTensorDescriptor
  CudnnStatus (*setTensor)(                             // cudnnSetTensorNdDescriptor
      CudnnTensor, CudnnType, int dimensions, const int* sizes, const int* strides);
  CudnnStatus (*createFilter)(CudnnFilter*); // cudnnCreateFilterDescriptor
  CudnnStatus (*destroyFilter)(CudnnFilter); // cudnnDestroyFilterDescriptor
  CudnnStatus (*setFilter)(                  // cudnnSetFilterNdDescriptor
      CudnnFilter, CudnnType, int format, int dimensions, const int* sizes);
  CudnnStatus (*createConvolution)(CudnnConvolution*); // cudnnCreateConvolutionDescriptor
  CudnnStatus (*destroyConvolution)(CudnnConvolution); // cudnnDestroyConvolutionDescriptor
  CudnnStatus (*setConvolution)(                       // cudnnSetConvolutionNdDescriptor
      CudnnConvolution,
      int dimensions,
      const int* padding,
      const int* stride,
      const int* dilation,
      int mode,
      CudnnType sum);
  CudnnStatus (*setGroups)(CudnnConvolution, int);     // cudnnSetConvolutionGroupCount
  CudnnStatus (*setMath)(CudnnConvolution, CudnnMath); // cudnnSetConvolutionMathType
  CudnnStatus (*createActivation)(CudnnActivation*);   // cudnnCreateActivationDescriptor
  CudnnStatus (*destroyActivation)(CudnnActivation);   // cudnnDestroyActivationDescriptor
  CudnnStatus (*setActivation)(
      CudnnActivation, int mode, int nan, double coefficient); // cudnnSetActivationDescriptor
  CudnnStatus (*narrowWorkspace)( // cudnnGetConvolutionForwardWorkspaceSize
      CudnnHandle,
      CudnnTensor wide,
      CudnnFilter,
      CudnnConvolution,
      CudnnTensor narrow,
      int algorithm,
      size_t* bytes);
  CudnnStatus (*wideWorkspace)( // cudnnGetConvolutionBackwardDataWorkspaceSize
      CudnnHandle,
      CudnnFilter,
      CudnnTensor narrow,
      CudnnConvolution,
      CudnnTensor wide,
      int algorithm,
      size_t* bytes);
  CudnnStatus (*weightWorkspace)( // cudnnGetConvolutionBackwardFilterWorkspaceSize
      CudnnHandle,
      CudnnTensor wide,
      CudnnTensor narrow,
      CudnnConvolution,
      CudnnFilter,
      int algorithm,
      size_t* bytes);
  CudnnStatus (*convolve)( // cudnnConvolutionForward
      CudnnHandle,
      const void* alpha,
      CudnnTensor,
      const void* wide,
      CudnnFilter,
      const void* weight,
      CudnnConvolution,
      int algorithm,
      void* workspace,
      size_t workspace_bytes,
      const void* beta,
      CudnnTensor,
      void* narrow);
  CudnnStatus (*convolveWithBias)( // cudnnConvolutionBiasActivationForward
      CudnnHandle,
      const void* alpha,
      CudnnTensor,
      const void* wide,
      CudnnFilter,
      const void* weight,
      CudnnConvolution,
      int algorithm,
      void* workspace,
      size_t workspace_bytes,
      const void* beta,
      CudnnTensor,
      const void* added,
      CudnnTensor,
      const void* bias,
      CudnnActivation,
      CudnnTensor,
      void* narrow);
  CudnnStatus (*wideGradient)( // cudnnConvolutionBackwardData
      CudnnHandle,
      const void* alpha,
      CudnnFilter,
      const void* weight,
      CudnnTensor,
      const void* narrow,
      CudnnConvolution,
      int algorithm,
      void* workspace,
      size_t workspace_bytes,
      const void* beta,
      CudnnTensor,
      void* wide);
  CudnnStatus (*weightGradient)( // cudnnConvolutionBackwardFilter
      CudnnHandle,
      const void* alpha,
      CudnnTensor,
      const void* wide,
      CudnnTensor,
      const void* narrow,
      CudnnConvolution,
      int algorithm,
      void* workspace,
      size_t workspace_bytes,
      const void* beta,
      CudnnFilter,
      void* weight);
};

/// The library that `choice` names: a path, "none", or null for the one that is in the process
/// already, on the loader's path or installed beside torch. NULL if there is none; Error if what
/// was chosen cannot be loaded.
const Cudnn* loadCudnn(const char* choice);

} // namespace puone::cuda
