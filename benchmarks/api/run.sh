#!/usr/bin/env bash
# Every benchmark of the server, as JSON lines. Needs node, and a build with -DTANDEM_BUILD_BENCHMARKS=ON.
#   benchmarks/api/run.sh [BUILD FOLDER]
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repo=$(cd "$here/../.." && pwd)
build=$(realpath "${1:-$repo/build/cpu-release}")
model=$repo/models/nano-q4_k.gguf
work=$(mktemp -d)
pid=
trap 'kill $pid 2>/dev/null; rm -rf "$work"' EXIT
status=0

echo "{\"commit\":\"$(git -C "$repo" rev-parse --short HEAD)\",\"cores\":$(nproc)}"
"$build/benchmarks/api/serve_overhead_bench" --model "$model" --text "$repo/docs/architecture.md" || status=1
"$build/benchmarks/api/serve_overhead_bench" --model "$model" --real --samples 11 || status=1

# streams PROMPT COMMAND...: the streams against a server.
streams() {
  local prompt=$1
  shift
  "$@" >"$work/log" 2>&1 &
  pid=$!
  until url=$(sed -n 's/^listening on //p' "$work/log") && [ -n "$url" ]; do
    kill -0 $pid || return 1
    sleep 0.1
  done
  node "$here/idle_streams.js" "$url" $pid --text "$prompt" || status=1
  kill $pid
  wait $pid 2>/dev/null
}
streams "never stop" "$build/tests/api/scripted/scripted_server" --model "$model" --script "$repo/tests/clients/script.json" \
  --sessions 16 --step-us 5000
streams "Write a short story about a fox and a lamp." "$build/apps/tandem" serve --port 0 --sessions 16
exit $status
