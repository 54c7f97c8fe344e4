#!/bin/bash
# Checks and times the CUDA engine on a machine with a GPU and nothing but the driver.
#
# usage: scripts/gpu_check.sh BUNDLE REPO OUT
#   BUNDLE  folder with kernels_test, gpu_test and tandem-gpu-bench (target gpu-bundle)
#   REPO    a checkout, for models/ and tests/golden/; the tests look for it where it was built
#   OUT     folder for the logs
set -u
bundle=$1 repo=$2 out=$3
failed=0

step() {  # step NAME SECONDS COMMAND...
  local name=$1 limit=$2 start=$SECONDS
  shift 2
  timeout "$limit" "$@" >"$out/$name.log" 2>&1
  local rc=$?
  echo "$name: exit $rc after $((SECONDS - start)) s"
  [ $rc -eq 0 ] || { failed=1; grep -E 'FAILED|ERROR|error' "$out/$name.log" | head -20; }
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
step kernels_test 200 "$bundle/kernels_test" --gtest_filter='*Cuda*' --gtest_brief=1
step gpu_test 100 "$bundle/gpu_test" --gtest_brief=1
if command -v compute-sanitizer >/dev/null; then
  for tool in memcheck racecheck; do
    step "$tool" 200 compute-sanitizer --tool $tool --error-exitcode 1 \
      "$bundle/kernels_test" --gtest_filter='*Cuda*-*EveryTypeAndShape*' --gtest_brief=1
  done
fi
step bench 200 "$bundle/tandem-gpu-bench"
cat "$out/bench.log"
exit $failed
