# Shared by run and test. Sourced, not executed.

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
logs=$repo/build/logs
mkdir -p "$logs"

# step NAME COMMAND...: one line on success; the end of the log and its path on failure.
step() {
  local name=$1 log started
  shift
  log=$logs/$(tr -c 'a-zA-Z0-9\n' '_' <<<"$name").log
  started=$SECONDS
  printf '%s ...' "$name" >&2
  if "$@" >"$log" 2>&1; then
    printf ' done (%d s)\n' $((SECONDS - started)) >&2
    return 0
  fi
  printf ' FAILED\n' >&2
  tail -n 40 "$log" >&2
  printf 'The whole log: %s\n' "${log#"$repo"/}" >&2
  return 1
}

# missing_packages PACKAGE...: those that are not installed.
missing_packages() {
  local package
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'install ok installed' || echo "$package"
  done
}

# need_packages PACKAGE...: installs what is missing, as root through sudo where needed.
need_packages() {
  local missing root=()
  missing=$(missing_packages "$@")
  [ -n "$missing" ] || return 0
  if [ "$(id -u)" != 0 ]; then
    if ! command -v sudo >/dev/null; then
      echo "These packages are missing; install them as root:" $missing >&2
      return 1
    fi
    root=(sudo)
    echo "Installing" $missing "(asks for your password if sudo does)" >&2
    sudo -v || return 1
  fi
  # shellcheck disable=SC2086
  step "installing packages" "${root[@]}" env DEBIAN_FRONTEND=noninteractive sh -c \
    'apt-get update -qq && apt-get install -y -qq --no-install-recommends "$@"' sh $missing
}

build_packages=(
  g++ cmake ninja-build ccache pkg-config
  libspdlog-dev libcli11-dev nlohmann-json3-dev libcpp-httplib-dev libutf8proc-dev libedit-dev
  libxxhash-dev libssl-dev)

# configure_and_build PRESET TARGETS [CMAKE ARGUMENTS...]: TARGETS is one word list.
configure_and_build() {
  local preset=$1 targets=$2
  shift 2
  step "configuring $preset" cmake -S "$repo" --preset "$preset" "$@" || return 1
  # shellcheck disable=SC2086
  step "building $preset" cmake --build "$repo/build/$preset" --target $targets
}

# The path of an nvcc that is new enough, or nothing.
find_nvcc() {
  local nvcc release
  nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
  release=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\)\..*/\1/p')
  [ "${release:-0}" -lt 13 ] || echo "$nvcc"
}

# The architecture of this machine's GPU as CMake names it, or nothing if there is none that Tandem has kernels for.
own_cuda_architecture() {
  case $(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | head -n 1) in
    9.0) echo 90a-real ;;
    12.0) echo 120-real ;;
    12.1) echo 121-real ;;
  esac
}
