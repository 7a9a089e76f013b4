"""The real controller of LeaderWorkerSets, with the webhooks that its chart installs.

It is 0.9.0, one release before the one that is rendered for: the module proxy refuses 0.10.0. Its CRDs are
of the release that `MODELYARD_CRDS` has.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cluster.api import Object
from tests.cluster.cluster import Cluster
from tests.cluster.control_plane import ControlPlane
from tests.cluster.programs import Running, free_port, running, until

USER = "system:serviceaccount:lws-system:lws-controller-manager"
_OF_GROUPS = {"matchExpressions": [{"key": "leaderworkerset.sigs.k8s.io/name", "operator": "Exists"}]}


@contextmanager
def lws(plane: ControlPlane, cluster: Cluster, folder: Path) -> Iterator[Running]:
    """The controller, until the block ends; pods of groups pass its webhooks."""
    certificates = folder / "webhook"
    certificates.mkdir(mode=0o700)
    shutil.copy(plane.certificates.server, certificates / "tls.crt")
    shutil.copy(plane.certificates.server_key, certificates / "tls.key")
    port, health = free_port(), free_port()
    settings = {
        "apiVersion": "config.lws.x-k8s.io/v1alpha1",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "webhook": {"port": port, "certDir": str(certificates)},
        "internalCertManagement": {"enable": False},
        "leaderElection": {"leaderElect": False},
    }
    config = folder / "lws.json"
    config.write_text(json.dumps(settings), encoding="utf-8")
    variables = {"KUBECONFIG": str(plane.kubeconfig(USER)), "TMPDIR": str(folder)}
    with running("lws", [f"--config={config}"], folder, variables=variables) as started:

        def serves() -> bool:
            started.check()
            return "Serving webhook server" in started.log.read_text(encoding="utf-8", errors="replace")

        until(serves, "the webhooks of LeaderWorkerSet")
        cluster.put(_webhooks(plane, port))
        yield started


def _webhooks(plane: ControlPlane, port: int) -> Iterator[Object]:
    group = ("leaderworkerset.x-k8s.io", "v1", "leaderworkersets")
    of_groups = "leaderworkerset-x-k8s-io-v1-leaderworkerset"
    wanted = {
        "Mutating": [(f"/mutate-{of_groups}", group), ("/mutate--v1-pod", ("", "v1", "pods"))],
        "Validating": [(f"/validate-{of_groups}", group), ("/validate--v1-pod", ("", "v1", "pods"))],
    }
    authority = base64.b64encode(plane.certificates.authority.read_bytes()).decode()
    for kind, hooks in wanted.items():
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": f"lws-{kind.lower()}"},
            "webhooks": [
                {
                    "name": f"{'pod' if plural == 'pods' else 'group'}.{kind.lower()}.lws.example.com",
                    "admissionReviewVersions": ["v1"],
                    "clientConfig": {"url": f"https://127.0.0.1:{port}{path}", "caBundle": authority},
                    "failurePolicy": "Fail",
                    "sideEffects": "None",
                    "rules": [
                        {
                            "apiGroups": [api],
                            "apiVersions": [version],
                            "operations": ["CREATE"],
                            "resources": [plural],
                        }
                    ],
                    **({"objectSelector": _OF_GROUPS} if plural == "pods" else {}),
                }
                for path, (api, version, plural) in hooks
            ],
        }
