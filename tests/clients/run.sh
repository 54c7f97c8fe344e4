#!/usr/bin/env bash
# Runs the client tests against servers that it starts itself, on free ports of this machine.
#   tests/clients/run.sh [BUILD FOLDER] [TEST FILES...]
# Needs node 20 and npm. The agents of agents/ run too if they are installed there or
# TANDEM_TEST_AGENTS=1 allows to fetch them (a gigabyte on the disk). The last line is
# `N passed, N failed, N skipped`.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../.." && pwd)
build=$(realpath "${1:-$repo/build/cpu-release}")
[ $# -gt 0 ] && shift
work=$(mktemp -d)
pids=()

finish() {
  local pid
  for pid in "${pids[@]}"; do
    kill "$pid" 2>/dev/null
    wait "$pid" 2>/dev/null
  done
  rm -rf "$work"
}
trap finish EXIT

# fetch_packages FOLDER: what its lock file names, if that changed since the last time.
fetch_packages() {
  local folder=$1
  if ! cmp -s "$folder/package-lock.json" "$folder/node_modules/.fetched"; then
    npm ci --prefix "$folder" --ignore-scripts --no-audit --no-fund >"$work/npm.log" 2>&1 || return 1
    cp "$folder/package-lock.json" "$folder/node_modules/.fetched"
  fi
}

# start_server NAME COMMAND...: leaves its address in $url and its process in $pid.
start_server() {
  local name=$1 log=$work/$1.log
  shift
  "$@" >"$log" 2>"$log.err" &
  pid=$!
  pids+=("$pid")
  for _ in $(seq 300); do
    url=$(sed -n 's/^listening on //p' "$log")
    [ -n "$url" ] && return 0
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.1
  done
  echo "the $name server did not start:" >&2
  cat "$log.err" >&2
  return 1
}

if ! fetch_packages "$here"; then
  tail -5 "$work/npm.log" >&2
  echo "skipped: client tests: npm cannot fetch their packages" >&2
  echo "0 passed, 0 failed, 1 skipped"
  exit 0
fi
if [ "${TANDEM_TEST_AGENTS:-}" = 1 ] && ! fetch_packages "$here/agents"; then
  echo "the agents cannot be fetched; their tests are skipped" >&2
fi

start_server nano "$build/apps/tandem" serve --port 0 && export TANDEM_NANO_URL=$url TANDEM_NANO_PID=$pid &&
  start_server scripted "$build/tests/api/scripted/scripted_server" \
    --model "$repo/models/nano-q4_k.gguf" --script "$here/script.json" --step-us 500 &&
  export TANDEM_SCRIPTED_URL=$url TANDEM_SCRIPTED_PID=$pid || {
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
}

cd "$here"
files=("$@")
[ ${#files[@]} -gt 0 ] || files=(*.test.js agents/*.test.js)
# One file after the other: the machine is small, and the figures of one test are not to disturb another's.
node --test --test-concurrency=1 --test-reporter=spec --test-reporter-destination=stderr \
  --test-reporter=tap --test-reporter-destination="$work/report.tap" "${files[@]}"

# Names of what did not run or pass, one a line.
sed -n 's/^  *not ok [0-9]* - \(.*\)/failed: \1/p; s/^  *ok [0-9]* - \(.*\) # SKIP \(.*\)/skipped: \1: \2/p' "$work/report.tap" >&2

count() { sed -n "s/^# $1 \([0-9]*\)$/\1/p" "$work/report.tap" | tail -1; }
if [ -z "$(count pass)" ]; then
  echo "the test runner did not finish" >&2
  echo "0 passed, 1 failed, 0 skipped"
  exit 1
fi
failed=$(($(count fail) + $(count cancelled)))
for server in nano scripted; do
  pid_name=TANDEM_${server^^}_PID
  if ! kill -0 "${!pid_name}" 2>/dev/null; then
    echo "the $server server died:" >&2
    tail -5 "$work/$server.log.err" >&2
    failed=$((failed + 1))
  fi
done
echo "$(count pass) passed, $failed failed, $(count skipped) skipped"
[ "$failed" = 0 ]
