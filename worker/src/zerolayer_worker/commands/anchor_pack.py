"""`zerolayer-worker anchor pack`: a ConfigMap that holds a bundle, and what to do with it."""

import argparse
import base64
import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from zerolayer_worker.commands import Subparsers
    from zerolayer_worker.common.anchor import Anchor

KEY: Final = "bundle.safetensors"
"""Where a pool looks for the bundle, unless it names another key."""

MAX_CONFIG_MAP_BYTES: Final = 1024 * 1024
"""What the API server lets a ConfigMap's values hold, together and decoded."""

MAX_ANNOTATION_BYTES: Final = 256 * 1024
"""What it lets an object's annotations hold; `kubectl apply` keeps the whole manifest in one of them."""

_ROOM: Final = 1024
_MOST_NAME_CHARS: Final = 253
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")


def add_parser(actions: "Subparsers") -> None:
    """Adds the action."""
    parser = actions.add_parser(
        "pack",
        help="write a bundle as a ConfigMap's manifest",
        description="Writes the manifest, and says how to apply it and what a pool's spec has to say.",
    )
    parser.add_argument("bundle", type=Path, metavar="FILE", help="the bundle's file")
    parser.add_argument(
        "--configmap", required=True, type=_name, metavar="NAME", help="name of the ConfigMap"
    )
    parser.add_argument(
        "--namespace", type=_namespace, metavar="NS", help="the pool's (kubectl's present one)"
    )
    parser.add_argument("-o", "--output", metavar="FILE", help="manifest to write; - is standard output")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Writes the manifest; 2 for a bundle that can't be used, or does not fit."""
    from zerolayer_worker.anchors.bundle import read_bundle  # noqa: PLC0415  # imports torch
    from zerolayer_worker.common.anchor import BundleError  # noqa: PLC0415

    try:
        bundle = read_bundle(arguments.bundle)
    except BundleError as error:
        return _fail(str(error))
    if bundle.size > MAX_CONFIG_MAP_BYTES:
        return _fail(
            f"{arguments.bundle} has {bundle.size} bytes, a ConfigMap holds {MAX_CONFIG_MAP_BYTES}; put it "
            "on a volume or into an image, and name that in the pool's spec:\n"
            + snippet(bundle.anchor, ("persistentVolumeClaim", {"claimName": "NAME", "path": "PATH"}))
            + "or\n"
            + snippet(bundle.anchor, ("image", {"reference": "IMAGE", "path": "PATH"}))
        )
    manifest = manifest_of(arguments.configmap, arguments.namespace, bundle.content)
    output = arguments.output or f"{arguments.configmap}.yaml"
    notes = f"# Apply it:\n{apply_command(manifest, output)}\n# and in the pool's spec:\n" + snippet(
        bundle.anchor, ("configMap", {"name": arguments.configmap, "key": KEY})
    )
    if output == "-":
        sys.stdout.write(manifest)
        sys.stderr.write(notes)
        return 0
    if Path(output).resolve() == arguments.bundle.resolve():
        return _fail(f"--output: {output} is the bundle itself; name another file")
    try:
        _write(Path(output), manifest)
    except OSError as error:
        return _fail(f"{output}: {error.strerror or error}")
    sys.stdout.write(notes)
    return 0


def _write(path: Path, manifest: str) -> None:
    """Writes a file, and leaves none that is not whole."""
    opened = path.open("w", encoding="utf-8")
    try:
        with opened:
            opened.write(manifest)
    except OSError:
        if path.is_file():
            path.unlink()
        raise


def manifest_of(name: str, namespace: str | None, content: bytes) -> str:
    """The ConfigMap, as YAML."""
    place = f"  namespace: {json.dumps(namespace)}\n" if namespace else ""
    return (
        "apiVersion: v1\nkind: ConfigMap\n"
        f"metadata:\n  name: {json.dumps(name)}\n{place}"
        f"binaryData:\n  {KEY}: {base64.b64encode(content).decode()}\n"
    )


def apply_command(manifest: str, output: str) -> str:
    """How to apply it: by the server, where kubectl's own annotation would be too large."""
    flag = " --server-side" if len(manifest) > MAX_ANNOTATION_BYTES - _ROOM else ""
    return f"kubectl apply{flag} -f {shlex.quote(output)}"


def snippet(anchor: "Anchor", source: tuple[str, dict[str, str]]) -> str:
    """`spec.anchor`, as YAML."""
    kind, fields = source
    lines = [f"      {key}: {json.dumps(value)}" for key, value in fields.items()]
    head = ["anchor:", f"  version: {json.dumps(anchor.version)}", f"  digest: {anchor.digest}"]
    return "\n".join([*head, "  source:", f"    {kind}:", *lines]) + "\n"


def _name(text: str) -> str:
    return _matching(text, _NAME)


def _namespace(text: str) -> str:
    return _matching(text, _NAMESPACE)


def _matching(text: str, pattern: re.Pattern[str]) -> str:
    if len(text) > _MOST_NAME_CHARS or not pattern.fullmatch(text):
        raise argparse.ArgumentTypeError(
            f"{text!r} is no name in Kubernetes: lower-case letters, digits and '-', beginning and ending "
            "with a letter or digit"
        )
    return text


def _fail(message: str) -> int:
    sys.stderr.write(f"anchor pack: {message}\n")
    return 2
