"""The operator may do what it does, and nothing else."""

import pykube
import pytest

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.testing import kube
from zerolayer_dev.testing.audit import AuditLog, Permission, granted
from zerolayer_dev.testing.release import Release


def rules_of(api: pykube.HTTPClient, user: str) -> set[Permission]:
    """Returns what the bindings of one service account give it, as bound by name."""
    _, _, namespace, account = user.split(":")
    subject = {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    roles: list[tuple[str, str, str]] = []
    for kind in (pykube.ClusterRoleBinding, pykube.RoleBinding):
        for binding in kube.objects(api, kind, namespace=pykube.all):
            if any(subject.items() <= found.items() for found in binding.get("subjects", ())):
                reference = binding["roleRef"]
                roles.append((reference["kind"], reference["name"], binding["metadata"].get("namespace", "")))
    found = [
        pykube.ClusterRole.objects(api).get_by_name(name)
        if kind == "ClusterRole"
        else pykube.Role.objects(api, namespace=within).get_by_name(name)
        for kind, name, within in roles
    ]
    return granted(rule for role in found for rule in role.obj["rules"])


@pytest.mark.last
@pytest.mark.promise("least-rbac")
def test_every_grant_is_used_and_no_call_is_denied(
    cluster: Cluster, api: pykube.HTTPClient, release: Release, audit: AuditLog, figures
) -> None:
    """Over the suite's audit log, no granted verb is never used and no call of the operator is denied."""
    calls = audit.calls(user=release.user)
    used = {permission for call in calls if call.allowed for permission in call.used}
    grants = rules_of(api, release.user)
    denied = sorted(
        {str(call.permission) for call in calls if not call.allowed and not release.in_upheaval(call.at)}
    )
    unused = sorted(str(permission) for permission in grants - used)

    figures(calls=len(calls), granted=len(grants), unused=len(unused), denied=len(denied))
    assert denied == []
    assert unused == []
