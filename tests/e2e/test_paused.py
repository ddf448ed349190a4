"""A paused pool is left alone, and hand edits of any other are put back."""

import json

import pykube


def test_paused_pool_is_left_alone_until_it_is_resumed(pool) -> None:
    paused = pool("paused", replicas=0, paused=True)
    paused.wait(
        lambda: paused.status.get("phase"), lambda phase: phase == "Paused", what="Paused", seconds=60
    )
    assert paused.deployments() == {}

    paused.change(paused=None)
    paused.wait(paused.deployments, bool, what="a Deployment", seconds=60)


def test_hand_edits_and_deleted_children_are_put_back(serving_pool, api: pykube.HTTPClient) -> None:
    def service() -> dict:
        found = pykube.Service.objects(api, namespace=serving_pool.namespace).get_or_none(
            name=serving_pool.name
        )
        return found.obj if found else {}

    before = service()["spec"]
    patch = json.dumps([{"op": "replace", "path": "/spec/ports/0/targetPort", "value": 9}])
    serving_pool.kubectl(
        "-n", serving_pool.namespace, "patch", "service", serving_pool.name, "--type=json", f"--patch={patch}"
    )
    serving_pool.wait(
        lambda: service().get("spec", {}).get("ports"),
        lambda ports: ports == before["ports"],
        what="the port to be put back",
        seconds=30,
    )
    serving_pool.kubectl("-n", serving_pool.namespace, "delete", "pdb", serving_pool.name)
    serving_pool.wait(
        lambda: pykube.PodDisruptionBudget.objects(api, namespace=serving_pool.namespace).get_or_none(
            name=serving_pool.name
        ),
        bool,
        what="a disruption budget",
        seconds=30,
    )
