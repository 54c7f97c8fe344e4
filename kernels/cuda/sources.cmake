# The CUDA half of tandem_kernels, or what stands in for it.

if(TANDEM_WITH_CUDA)
  target_sources(tandem_kernels PRIVATE
    cuda/device.cc
    cuda/device_weights.cu
    cuda/error.cc
    cuda/weight_uploader.cc)
  target_link_libraries(tandem_kernels PUBLIC CUDA::cudart_static)
else()
  target_sources(tandem_kernels PRIVATE
    cuda/device_stub.cc
    cuda/stubs.cc)
endif()
