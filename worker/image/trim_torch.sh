#!/bin/sh
# Leaves of torch what a CPU-only worker loads. Usage: trim_torch.sh SITE_PACKAGES
set -eu
torch=$1/torch

python3 "$(dirname "$0")/stub_cuda.py" "$torch/lib"

# Headers and static libraries serve compiling against torch only.
rm -rf "$torch/include" "$torch/share" "$torch/test" "$1"/nvidia/*/include
find "$1" -name '*.a' -delete
