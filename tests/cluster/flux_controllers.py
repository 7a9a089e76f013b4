"""The processes of Flux, with the settings of the release that `cdk deploy` installs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from modelyard.names import FLUX_NAMESPACE
from tests.cluster.api import Object
from tests.cluster.cluster import Cluster, namespace
from tests.cluster.control_plane import ControlPlane
from tests.cluster.programs import Running, free_port, running

_ACCOUNT = "system:serviceaccount:flux-system"
_OURS = {"tests.modelyard.dev/watched": "true"}
"""The source controller looks at the bucket alone: repositories of charts are played."""


@contextmanager
def controllers(
    plane: ControlPlane,
    cluster: Cluster,
    values: Mapping[str, Any],
    address: str,
    credentials: Mapping[str, str],
    *,
    interval: str = "1m",
) -> Iterator[tuple[Running, ...]]:
    """Both controllers and the objects of a release with these `values`.

    `address`: of S3. `interval`: between two looks at the bucket.
    """
    cluster.put([namespace(FLUX_NAMESPACE), _may_do_everything()])
    with ExitStack() as stack:
        stored = free_port()
        source = [
            f"--storage-addr=127.0.0.1:{stored}",
            f"--storage-adv-addr=127.0.0.1:{stored}",
            f"--storage-path={plane.folder / 'artifacts'}",
            f"--watch-label-selector={','.join('='.join(each) for each in _OURS.items())}",
        ]
        (plane.folder / "artifacts").mkdir()
        kustomize = [
            *values["kustomizeController"]["container"]["additionalArgs"],
            "--requeue-dependency=1s",  # the last one counts; somebody waits for it
        ]
        started = tuple(
            stack.enter_context(_controller(plane, name, arguments, credentials))
            for name, arguments in (("source-controller", source), ("kustomize-controller", kustomize))
        )
        cluster.put([_here(item, address, interval) for item in values["extraObjects"]])
        yield started


@contextmanager
def _controller(
    plane: ControlPlane, name: str, arguments: list[str], credentials: Mapping[str, str]
) -> Iterator[Running]:
    usual = [
        f"--metrics-addr=127.0.0.1:{free_port()}",
        f"--health-addr=127.0.0.1:{free_port()}",
        "--enable-leader-election=false",
        "--log-level=info",
    ]
    variables = {
        "KUBECONFIG": str(plane.kubeconfig(f"{_ACCOUNT}:{name}")),
        "RUNTIME_NAMESPACE": FLUX_NAMESPACE,
        "TMPDIR": str(plane.folder),
        **credentials,
    }
    with running(name, [*usual, *arguments], plane.folder, variables=variables) as started:
        yield started


def _here(item: Mapping[str, Any], address: str, interval: str) -> Object:
    """The object without Helm's hooks; the bucket is the embedded one."""
    metadata = {key: value for key, value in item["metadata"].items() if key != "annotations"}
    if item["kind"] != "Bucket":
        return {**item, "metadata": metadata}
    spec = {**item["spec"], "endpoint": address, "insecure": True, "interval": interval}
    return {**item, "metadata": {**metadata, "labels": _OURS}, "spec": spec}


def _may_do_everything() -> Object:
    """The chart's own binding."""
    users = [f"{_ACCOUNT}:{name}" for name in ("kustomize-controller", "source-controller")]
    group = "rbac.authorization.k8s.io"
    return {
        "apiVersion": f"{group}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": "cluster-reconciler"},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user} for user in users],
    }
