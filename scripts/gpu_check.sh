#!/bin/bash
# Checks and times the CUDA engine on a machine with a GPU and nothing but the driver.
#
# usage: scripts/gpu_check.sh BUNDLE OUT [STEP...]
#   BUNDLE  folder with the programs of the target gpu-bundle
#   OUT     folder for the logs
#   STEP    of kernels gpu model sanitizers bench; all if none is named
# The tests look for models/ and tests/golden/ where they were built.
set -u
bundle=$1 out=$2
shift 2
rm -f "$out/failed"
steps=${*:-kernels gpu model sanitizers bench}

run() {  # run NAME SECONDS COMMAND...
  local name=$1 limit=$2 start=$SECONDS
  shift 2
  timeout "$limit" "$@" >"$out/$name.log" 2>&1
  local rc=$?
  echo "$name: exit $rc after $((SECONDS - start)) s; $(grep -E '\[  PASSED  \]|ERROR SUMMARY|RACECHECK SUMMARY' "$out/$name.log" | tr '\n' ' ')"
  [ $rc -eq 0 ] || { touch "$out/failed"; grep -aE 'FAILED|Failure|error|ERROR|worst element|=====' "$out/$name.log" | head -30; }
}

# The sanitizers are slow, and most of it is the processor's part: all at once, in shards.
sanitize() {  # sanitize TOOL...
  local tool shard
  for tool in "$@"; do
    for shard in 0 1 2 3; do
      GTEST_TOTAL_SHARDS=4 GTEST_SHARD_INDEX=$shard run "$tool-kernels-$shard" "${SANITIZER_SECONDS:-480}" \
        compute-sanitizer --tool "$tool" --error-exitcode 9 "$bundle/kernels_test" \
        --gtest_filter='*Cuda*-*EveryTypeAndShape*' &
    done
    for shard in 0 1; do
      GTEST_TOTAL_SHARDS=2 GTEST_SHARD_INDEX=$shard run "$tool-tiles-$shard" "${SANITIZER_SECONDS:-480}" \
        compute-sanitizer --tool "$tool" --error-exitcode 9 "$bundle/kernels_gpu_test" &
    done
  done
  wait
}

nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
for step in $steps; do
  case $step in
    kernels) run kernels 200 "$bundle/kernels_test" --gtest_filter='*Cuda*' ;;
    gpu) run gpu 200 "$bundle/kernels_gpu_test" ;;
    model) run model 200 "$bundle/gpu_test" ;;
    sanitizers) sanitize memcheck racecheck initcheck ;;
    bench)
      run bench 200 "$bundle/tandem-gpu-bench" ${BENCH_OPTIONS:-}
      cat "$out/bench.log"
      ;;
    *) echo "no step $step" >&2; exit 2 ;;
  esac
done
[ ! -e "$out/failed" ]
