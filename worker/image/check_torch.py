# ruff: noqa: INP001, S101 - a script of the image build, no package
"""Fails the build of an image whose torch does not work; needs no GPU, in no variant."""

import torch

a = torch.randn(8, 16)
assert torch.allclose(a @ a.T, torch.einsum("ik,jk->ij", a, a), atol=1e-4)
assert torch.linalg.eigh(a.T @ a).eigenvalues.shape == (16,)
q = torch.randn(1, 2, 5, 8)
for dtype in (torch.float32, torch.bfloat16):
    out = torch.nn.functional.scaled_dot_product_attention(*(q.to(dtype),) * 3, is_causal=True)
    assert torch.isfinite(out).all()
assert torch.from_numpy(a.numpy()).equal(a)
assert torch.cuda.device_count() == 0, "images are built without a GPU"
