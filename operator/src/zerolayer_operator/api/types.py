"""Scalar types of the API with their limits, and references into Kubernetes' own schemas.

Every string and list is bounded: the API server estimates the cost of CEL rules from these bounds and refuses
a CRD whose rules could become expensive.
"""

import math
import re
from typing import Annotated, Any, Final

from pydantic import Field, WithJsonSchema

KUBE_REF: Final = "x-kube-ref"
"""Key in a field's JSON schema that names the Kubernetes definition to put in its place."""

GO_DURATION = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$"
SHORT_GO_DURATION = r"^([0-9]{1,6}m)?([0-9]{1,6}s)?([0-9]{1,6}ms)?$"
DNS_1123_SUBDOMAIN = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$"
CONFIG_KEY = r"^[-._a-zA-Z0-9]+$"
SPACE = r"\t\n\f\r "
r"""What `\s` is to the API server, within a class; here it would be every space that Unicode knows."""

ObjectName = Annotated[str, Field(min_length=1, max_length=253, pattern=DNS_1123_SUBDOMAIN)]
SecretKey = Annotated[str, Field(min_length=1, max_length=253, pattern=CONFIG_KEY)]
ImageReference = Annotated[str, Field(min_length=1, max_length=512, pattern=rf"^[^{SPACE}]+$")]
Duration = Annotated[str, Field(min_length=2, max_length=24, pattern=GO_DURATION)]
ShortDuration = Annotated[str, Field(min_length=2, max_length=24, pattern=SHORT_GO_DURATION)]
RelativePath = Annotated[str, Field(min_length=1, max_length=512, pattern=rf"^[^/{SPACE}][^{SPACE}]*$")]
AbsolutePath = Annotated[str, Field(min_length=2, max_length=512, pattern=rf"^/[^{SPACE}]+$")]

KubeObject = dict[str, Any]
"""An object whose schema is Kubernetes' own; the API server checks it, the operator passes it on."""


def kube(definition: str) -> WithJsonSchema:
    """The schema of a Kubernetes type, filled in when the CRD is generated."""
    return WithJsonSchema({KUBE_REF: definition})


Affinity = Annotated[KubeObject, kube("io.k8s.api.core.v1.Affinity")]
Toleration = Annotated[KubeObject, kube("io.k8s.api.core.v1.Toleration")]
TopologySpreadConstraint = Annotated[KubeObject, kube("io.k8s.api.core.v1.TopologySpreadConstraint")]
EnvVar = Annotated[KubeObject, kube("io.k8s.api.core.v1.EnvVar")]
ResourceRequirements = Annotated[KubeObject, kube("io.k8s.api.core.v1.ResourceRequirements")]
LocalObjectReference = Annotated[KubeObject, kube("io.k8s.api.core.v1.LocalObjectReference")]
ScalingRules = Annotated[KubeObject, kube("io.k8s.api.autoscaling.v2.HPAScalingRules")]

_DURATION_PART = re.compile(r"([0-9]+)(ms|[hms])")
_UNIT_SECONDS = {"h": 3600, "m": 60, "s": 1, "ms": 0.001}


def seconds(duration: str) -> int:
    """Whole seconds of a duration such as ``5m`` or ``1h30s``; a part of one counts as whole."""
    return math.ceil(exact_seconds(duration))


def exact_seconds(duration: str) -> float:
    """Seconds of a duration such as ``500ms`` or ``1m30s``."""
    return sum(int(number) * _UNIT_SECONDS[unit] for number, unit in _DURATION_PART.findall(duration))


def stays_inside(path: str) -> bool:
    """Whether a path names no parent folder."""
    return ".." not in path.split("/")
