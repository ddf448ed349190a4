"""A kubeconfig with exactly the rights that the chart gives the operator, and no others."""

import json
from pathlib import Path

import yaml

from zerolayer_dev.cluster.api import Cluster
from zerolayer_dev.paths import repo_root

_RIGHTS = frozenset({"ServiceAccount", "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"})


class Account:
    """The operator's service account, made from the chart without the operator itself.

    Args:
        cluster: where it is made.
        namespace: its namespace, which must exist.
        watch: namespaces whose pools may be served; none means all of them.
        values: further values of the chart.
    """

    def __init__(
        self, cluster: Cluster, namespace: str, watch: tuple[str, ...] = (), **values: object
    ) -> None:
        self._cluster = cluster
        self.namespace = namespace
        # Cluster roles have no namespace: their names must tell accounts apart.
        self.name = f"zerolayer-{namespace}"
        rights = {"watchNamespaces": list(watch), "rbac": {"aggregateToDefaultRoles": False}}
        rendered = cluster.helm(
            "template", self.name, str(repo_root() / "charts" / "zerolayer"),
            f"--namespace={namespace}", "--values=-", stdin=json.dumps(values | rights),
        )  # fmt: skip
        self._objects = [item for item in yaml.safe_load_all(rendered) if item and item["kind"] in _RIGHTS]
        cluster.kubectl("apply", "--filename=-", stdin=yaml.safe_dump_all(self._objects))

    @property
    def user(self) -> str:
        """The account's name in the audit log."""
        return f"system:serviceaccount:{self.namespace}:{self.name}"

    def kubeconfig(self, path: Path) -> Path:
        """Writes a kubeconfig whose token is valid for an hour to `path`, and returns `path`."""
        return token_kubeconfig(self._cluster, self.namespace, self.name, path)

    def remove(self) -> None:
        """Removes what the account could do in other namespaces and in the whole cluster."""
        documents = yaml.safe_dump_all(self._objects)
        self._cluster.kubectl("delete", "--ignore-not-found", "--wait=false", "--filename=-", stdin=documents)


def token_kubeconfig(cluster: Cluster, namespace: str, account: str, path: Path) -> Path:
    """Writes a kubeconfig to `path` by which one is a service account for an hour, and returns `path`."""
    token = cluster.kubectl("-n", namespace, "create", "token", account, "--duration=1h")
    admin = yaml.safe_load(cluster.kubeconfig.read_text(encoding="utf-8"))
    admin["users"] = [{"name": admin["users"][0]["name"], "user": {"token": token.strip()}}]
    path.write_text(yaml.safe_dump(admin), encoding="utf-8")
    path.chmod(0o600)
    return path
