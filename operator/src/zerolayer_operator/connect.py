"""Where the API server is: the pod's service account, or a kubeconfig."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.request import getproxies, proxy_bypass

from kubernetes.aio import config
from kubernetes.aio.client.api_client import ApiClient
from kubernetes.aio.client.configuration import Configuration
from yarl import URL


@asynccontextmanager
async def connect() -> AsyncGenerator[ApiClient]:
    """Opens a client for the cluster that `KUBECONFIG` names, else this pod's, else `~/.kube/config`'s.

    Raises:
        kubernetes.aio.config.ConfigException: None of them is there.
    """
    configuration = Configuration()
    if "KUBECONFIG" not in os.environ and "KUBERNETES_SERVICE_HOST" in os.environ:
        config.load_incluster_config(  # pyright: ignore[reportUnknownMemberType]
            client_configuration=configuration
        )
    else:
        await config.load_kube_config(  # pyright: ignore[reportUnknownMemberType]
            client_configuration=configuration, persist_config=False
        )
    # aiohttp would look for a proxy and for ~/.netrc anew, in a thread, for each request.
    configuration.proxy = configuration.proxy or _proxy(configuration.host)
    configuration.client_session_kwargs = {"trust_env": False}
    async with ApiClient(configuration) as client:
        yield client


def _proxy(address: str) -> str | None:
    """The proxy that the environment names for an address."""
    url = URL(address)
    return None if proxy_bypass(url.host or "") else getproxies().get(url.scheme)
