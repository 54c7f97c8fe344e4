#!/usr/bin/env bash
# clang-format and clang-tidy. Arguments: files (default: all tracked). Needs a configured cpu-release build.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t files < <(if [ $# -gt 0 ]; then printf '%s\n' "$@"; else git ls-files '*.cc' '*.h' '*.cu' '*.cuh'; fi)
clang-format --dry-run --Werror "${files[@]}"
printf '%s\n' "${files[@]}" | grep '\.cc$' | grep -vE '_neon\.cc$|/cuda/|_cuda|^tests/|^benchmarks/' |
  xargs -r -P "$(nproc)" -n 4 clang-tidy -p build/cpu-release --quiet --extra-arg=-Wno-unknown-warning-option
