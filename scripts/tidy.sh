#!/usr/bin/env bash
# clang-format and clang-tidy over the sources of the cpu-release build. Arguments: files (default: all tracked).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
mapfile -t files < <(if [ $# -gt 0 ]; then printf '%s\n' "$@"; else git ls-files '*.cc' '*.h' '*.cu' '*.cuh'; fi)
clang-format --dry-run --Werror "${files[@]}"
mapfile -t sources < <(printf '%s\n' "${files[@]}" | grep '\.cc$' | grep -vE '_neon\.cc$|/cuda/|^tests/|^benchmarks/')
clang-tidy -p build/cpu-release --quiet "${sources[@]}"
