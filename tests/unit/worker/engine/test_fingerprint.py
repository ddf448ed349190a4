import torch

from zerolayer_worker.engine.fingerprint import fingerprint, platform_parts

PARTS = {"model": "sha256:1", "threads": 2}


def test_is_short_and_depends_on_every_part_and_nothing_else() -> None:
    name = fingerprint(PARTS)
    assert name == fingerprint(dict(reversed(PARTS.items())))
    assert len({name, fingerprint(PARTS | {"threads": 3}), fingerprint(PARTS | {"more": 1})}) == 3
    assert len(name) == len("zl-") + 16


def test_names_software_and_hardware() -> None:
    parts = platform_parts(torch.device("cpu"), torch.float32)
    assert parts["torch"] == torch.__version__
    assert parts["hardware"]
    assert parts != platform_parts(torch.device("cpu"), torch.bfloat16)
