"""The chart's copy of the CustomResourceDefinition, which Helm keeps when the release is uninstalled."""

from pathlib import Path

import yaml

from zerolayer_dev.generate import crd

COPY = "charts/zerolayer/files/crd.yaml"
_KEEP = {"helm.sh/resource-policy": "keep"}


def render(root: Path) -> dict[str, str]:
    """Returns the copy by its path below `root`."""
    (text,) = crd.render(root).values()
    name = yaml.safe_load(text)["metadata"]["name"]
    kept = yaml.safe_dump({"annotations": _KEEP})
    line = f"  name: {name}\n"
    if text.count(line) != 1:
        raise ValueError(f"the definition has no single line {line!r} to put annotations after")
    indented = "".join(f"  {entry}\n" for entry in kept.splitlines())
    return {COPY: text.replace(line, line + indented)}
