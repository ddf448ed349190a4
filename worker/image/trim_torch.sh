#!/bin/sh
# Leaves of torch what a CPU-only worker loads. Usage: trim_torch.sh SITE_PACKAGES
set -eu
torch=$1/torch

python3 "$(dirname "$0")/stub_cuda.py" "$torch/lib"

# Headers, static libraries and build tools serve compiling against torch only.
rm -rf "$torch/include" "$torch/bin" "$torch/share" "$torch/test"
find "$1" -name '*.a' -delete

# The layer is worth keeping only if it works.
/opt/venv/bin/python -W error::RuntimeWarning - <<'CHECK'
import torch

assert not torch.cuda.is_available()
a = torch.randn(8, 16, dtype=torch.float32)
assert torch.allclose(a @ a.T, torch.einsum("ik,jk->ij", a, a), atol=1e-4)
q = torch.randn(1, 2, 5, 8)
for dtype in (torch.float32, torch.bfloat16):
    out = torch.nn.functional.scaled_dot_product_attention(*(q.to(dtype),) * 3, is_causal=True)
    assert torch.isfinite(out).all()
assert torch.linalg.eigh(a.T @ a).eigenvalues.shape == (16,)
print("torch", torch.__version__, "works without CUDA")
CHECK
