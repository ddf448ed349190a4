"""One Deployment per revision."""

import json
from typing import Final

from zerolayer_operator.api import names
from zerolayer_operator.api.kinds import DEPLOYMENT
from zerolayer_operator.api.revision import FrozenInputs
from zerolayer_operator.api.spec import PoolSpec
from zerolayer_operator.build.meta import Object, child
from zerolayer_operator.build.pod import pod_template
from zerolayer_operator.decide.defaults import Defaults
from zerolayer_operator.observe.state import ObservedDeployment, ObservedPool

START_MARGIN_S: Final = 120
FETCH_MARGIN_S: Final = 3600


def new_deployment(
    pool: ObservedPool, revision: str, spec: PoolSpec, frozen: FrozenInputs, defaults: Defaults
) -> Object:
    """The Deployment of a revision that has none yet, made with the operator's present template."""
    template = pod_template(pool.name, revision, spec, frozen, defaults)
    fetches = spec.model.source.hugging_face is not None or spec.model.source.image is not None
    deadline = spec.warmup.timeout_seconds + START_MARGIN_S + (FETCH_MARGIN_S if fetches else 0)
    return _deployment(pool, revision, template, frozen, deadline)


def same_deployment(pool: ObservedPool, deployment: ObservedDeployment, live: Object) -> Object:
    """The Deployment of a revision that exists, with the pod template that it was made with.

    A newer operator may render another template; pods that serve must not restart for that.
    """
    deadline = live["spec"].get("progressDeadlineSeconds", START_MARGIN_S)
    return _deployment(pool, deployment.revision, deployment.template, deployment.frozen, deadline)


def _deployment(
    pool: ObservedPool, revision: str, template: Object, frozen: FrozenInputs, deadline: int
) -> Object:
    spec = {
        # No replicas: sizes go through the scale subresource, or the autoscaler's would be overwritten.
        "revisionHistoryLimit": 1,
        "progressDeadlineSeconds": deadline,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
        "selector": {"matchLabels": names.revision_selector(pool.name, revision)},
        "template": template,
    }
    return child(
        pool,
        DEPLOYMENT,
        names.deployment_name(pool.name, revision),
        {"spec": spec},
        labels={names.LABEL_REVISION: revision},
        annotations={
            names.ANNOTATION_TEMPLATE: json.dumps(template, sort_keys=True),
            names.ANNOTATION_FROZEN: json.dumps(frozen.to_wire(), sort_keys=True),
        },
    )
