"""Names a model by its content."""

import hashlib
from pathlib import Path

from zerolayer_worker.models.weights import weight_files

_CONFIGURATION = (
    "chat_template.jinja",
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)


def folder_digest(folder: Path) -> str:
    """`sha256:…` over weights and configuration, whatever the folder is called and whoever copied it."""
    total = hashlib.sha256()
    configuration = [folder / name for name in _CONFIGURATION if (folder / name).exists()]
    for path in sorted([*configuration, *weight_files(folder)]):
        with path.open("rb") as opened:
            content = hashlib.file_digest(opened, "sha256").hexdigest()
        total.update(f"{path.name}\0{content}\n".encode())
    return f"sha256:{total.hexdigest()}"
