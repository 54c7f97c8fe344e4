# The CUDA half of tandem_kernels, or what stands in for it.

if(TANDEM_WITH_CUDA)
  target_sources(tandem_kernels PRIVATE
    attend/attend_any_cuda.cu
    attend/attend_cuda.cu
    compress/compress_cuda.cu
    cuda/device.cc
    cuda/device_weights.cu
    cuda/error.cc
    cuda/weight_uploader.cc
    embed/embed_cuda.cu
    experts/experts_cuda.cu
    experts/experts_decode.cu
    experts/experts_exact.cu
    experts/experts_prefill_cuda.cu
    gemm/gemm_cuda.cu
    gemm/gemm_gate_up_cuda.cu
    gemm/gemm_gate_up_sm90.cu
    gemm/gemm_rows_cuda.cu
    gemm/gemm_rows_sm90.cu
    hc_post/hc_post_cuda.cu
    hc_pre/hc_pre_cuda.cu
    head/head_cuda.cu
    index_select/index_select_cuda.cu
    index_select/select_top_k_cuda.cu
    linear/gemv.cu
    linear/gemv_exact.cu
    linear/gemv_int8.cu
    linear/gemv_stream.cu
    linear/linear_cuda.cu
    linear/pack_rows.cu
    output_project/output_project_cuda.cu
    output_project/output_project_prefill_cuda.cu
    qkv/qkv_cuda.cu
    ring_append/ring_append_cuda.cu
    route/route_cuda.cu)
  target_link_libraries(tandem_kernels PUBLIC CUDA::cudart_static)
else()
  target_sources(tandem_kernels PRIVATE
    cuda/device_stub.cc
    cuda/stubs.cc)
endif()
