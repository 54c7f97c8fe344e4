# The CUDA language and its flags. Included only with TANDEM_WITH_CUDA; nothing else of the build needs nvcc.

set(TANDEM_CUDA_ARCHITECTURES "90a-real;120-real;121-real" CACHE STRING
  "GPU targets; a developer build is quicker with one of them")
set(CMAKE_CUDA_ARCHITECTURES ${TANDEM_CUDA_ARCHITECTURES})

if(NOT CMAKE_CUDA_COMPILER)
  find_program(TANDEM_NVCC nvcc HINTS ENV CUDACXX PATHS /usr/local/cuda/bin)
  if(NOT TANDEM_NVCC)
    message(FATAL_ERROR "TANDEM_WITH_CUDA needs nvcc 13: put it on PATH or set CUDACXX, or configure without CUDA")
  endif()
  set(CMAKE_CUDA_COMPILER ${TANDEM_NVCC})
endif()
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
enable_language(CUDA)
if(CMAKE_CUDA_COMPILER_VERSION VERSION_LESS 13)
  message(FATAL_ERROR "nvcc ${CMAKE_CUDA_COMPILER_VERSION} is too old: version 13 or newer is needed")
endif()

# CMake 3.25 knows no C++20 flag for nvcc 13.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_STANDARD_REQUIRED ON)
set(CMAKE_CUDA_EXTENSIONS OFF)

find_package(CUDAToolkit REQUIRED)

# Relaxed constexpr lets device code share the constexpr decoders of model/formats. Warning 554 is about the
# conversion of a view to a const view, in the instance that is const already.
target_compile_options(tandem_flags INTERFACE
  "$<$<COMPILE_LANGUAGE:CUDA>:-lineinfo;--expt-relaxed-constexpr;--diag-suppress=554;-Xcompiler=-Wall,-Wextra,-Wno-unused-parameter>")
if(TANDEM_WERROR)
  target_compile_options(tandem_flags INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:-Werror=all-warnings>)
endif()

# Programs of this build are copied to machines that have the driver and little else.
add_link_options(-static-libstdc++ -static-libgcc)
