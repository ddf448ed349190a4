"""What the operator is told from outside: one environment variable per field, checked once at start."""

import secrets
import socket
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, field_validator
from pydantic_core import from_json
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from zerolayer_operator.syntax import (
    DnsLabel,
    DnsSubdomain,
    Endpoint,
    Image,
    Interval,
    LabelKey,
    LabelValue,
    Port,
    Registry,
    listed_once,
)

LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR"]
PullPolicy = Literal["Always", "IfNotPresent", "Never"]


class Settings(BaseSettings):
    """The operator's settings, read from `ZEROLAYER_<FIELD>` and never changed afterwards.

    Raises:
        pydantic.ValidationError: A variable is missing or holds a value that makes no sense.
    """

    model_config = SettingsConfigDict(env_prefix="ZEROLAYER_", frozen=True, env_ignore_empty=True)

    worker_image: Image = Field(
        description="Worker image of pools that name none; resolved once per revision.",
    )
    worker_image_pull_policy: PullPolicy = Field(
        default="IfNotPresent",
        description="Pull policy of the worker image of pools that name none.",
    )
    namespaces: Annotated[tuple[DnsLabel, ...], NoDecode] = Field(
        default=(),
        description="Namespaces whose pools are served, separated by commas; none means all of them.",
    )
    pod_namespace: DnsLabel = Field(
        default="zerolayer-system",
        description="Namespace the operator runs in: its Lease lives there, its pods may reach the workers' "
        "operations port.",
    )
    pod_name: DnsSubdomain = Field(
        default_factory=lambda: f"{socket.gethostname().lower()}-{secrets.token_hex(4)}",
        description="The name by which this replica holds the Lease, and which its Events carry; a pod's own "
        "name lets its restarted container go on at once.",
    )
    lease_name: DnsSubdomain = Field(
        default="zerolayer-operator",
        description="Name of the Lease that makes one replica the leader.",
    )
    lease_duration_s: int = Field(
        default=15,
        ge=3,
        le=300,
        description="Seconds after the last renewal until a standby may take the Lease over.",
    )
    resync_interval_s: float = Field(
        default=60,
        ge=1,
        le=3600,
        description="Seconds between two rounds over every pool, on top of what watch events ask for.",
    )
    canary_interval_s: float = Field(
        default=15,
        ge=1,
        le=60,
        description="Seconds between two looks at the workers of a canary and of the revision that serves.",
    )
    hub_endpoint: Endpoint = Field(
        default="https://huggingface.co",
        description="Address of the model hub, or of a mirror, that is asked for the commit of a revision.",
    )
    registries: Annotated[tuple[Registry, ...], NoDecode, AfterValidator(listed_once)] = Field(
        default=(),
        description="Registries that may be asked which digest an image's tag stands for, separated by "
        "commas: `host` or `host:port` as images name them, `http://` before one without TLS.",
    )
    network_policy: bool = Field(
        default=True,
        description="Whether every pool gets a NetworkPolicy.",
    )
    prometheus_namespace: DnsLabel = Field(
        default="monitoring",
        description="Namespace whose pods may scrape the workers' operations port.",
    )
    pod_monitor: bool = Field(
        default=False,
        description="Whether every pool gets a PodMonitor, where the Prometheus operator defines them.",
    )
    pod_monitor_interval: Interval = Field(
        default="15s",
        description="How often Prometheus scrapes workers by these PodMonitors.",
    )
    pod_monitor_labels: Annotated[dict[LabelKey, LabelValue], NoDecode] = Field(
        default_factory=dict,
        description="Further labels of these PodMonitors, as a JSON object.",
    )
    keda: bool = Field(
        default=False,
        description="Whether pools may be autoscaled by KEDA, where it is installed.",
    )
    gateway: bool = Field(
        default=False,
        description="Whether pools may have an HTTPRoute, where the Gateway API is installed.",
    )
    prometheus_addresses: Annotated[tuple[Endpoint, ...], NoDecode] = Field(
        default=(),
        description="Addresses of Prometheus that pools may name, separated by commas; the first one is that "
        "of pools that name none.",
    )
    image_volumes: bool = Field(
        default=True,
        description="Whether nodes mount images as volumes; where not, an init container copies the model.",
    )
    allow_host_path: bool = Field(
        default=False,
        description="Whether pools may take their model from a folder of the node: whoever may make a pool "
        "then has workers read any folder of any node.",
    )
    metrics_port: Port = Field(
        default=9090,
        description="Port of the operator's own `/metrics`.",
    )
    health_port: Port = Field(
        default=8080,
        description="Port of `/healthz` and `/readyz`.",
    )
    bind_host: str | None = Field(
        default=None,
        description="Address that these two ports listen on; none means every address of the pod.",
    )
    page: bool = Field(
        default=True,
        description="Whether a page shows how pools follow their load.",
    )
    page_port: Port = Field(
        default=8082,
        description="Port of the page, on the loopback address alone.",
    )
    log_level: LogLevel = Field(
        default="INFO",
        description="Least severe records that are logged.",
    )

    @field_validator("namespaces", "registries", "prometheus_addresses", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Reads `a, b` as two entries and drops repetitions, so that no namespace is watched twice."""
        if not isinstance(value, str):
            return value
        entries = (part.strip() for part in value.split(","))
        return tuple(dict.fromkeys(entry for entry in entries if entry))

    @field_validator("pod_monitor_labels", mode="before")
    @classmethod
    def _read_labels(cls, value: object) -> object:
        return from_json(value) if isinstance(value, str) else value

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper_log_level(cls, value: object) -> object:
        return value.upper() if isinstance(value, str) else value
