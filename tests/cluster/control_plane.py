"""A Kubernetes control plane without nodes: etcd, API server, controller manager and scheduler.

Real: everything that the API server, its admission and the controllers decide. Not there: kubelets, EKS' own
webhooks and controllers, and everything that a Helm chart would install.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.cluster.api import Api
from tests.cluster.certificates import Certificates
from tests.cluster.programs import Running, free_port, running, until

ADMISSION = ("NodeRestriction", "ExtendedResourceToleration")
"""What EKS enables beside Kubernetes' defaults, which have PodSecurity, ResourceQuota, LimitRanger, Priority
and admission policies (docs.aws.amazon.com/eks/latest/userguide/platform-versions.html, 2026-11)."""

WITHOUT = ("node-lifecycle-controller", "node-ipam-controller", "taint-eviction-controller")
"""Controllers that would taint nodes whose kubelet sends nothing, and evict their pods."""

_GROUPS = {
    "administrator": "system:masters",
    "system:kube-controller-manager": "",
    "system:kube-scheduler": "",
    "system:serviceaccount:flux-system:kustomize-controller": "",
    "system:serviceaccount:flux-system:source-controller": "",
    "system:serviceaccount:kube-system:karpenter": "system:masters",
    "system:serviceaccount:lws-system:lws-controller-manager": "system:masters",
}


@dataclass(frozen=True)
class ControlPlane:
    """A started one."""

    address: str
    certificates: Certificates
    tokens: dict[str, str]
    folder: Path
    programs: tuple[Running, ...]

    def restart_server(self) -> None:
        """End the API server, and start another with the same data."""
        server = self.programs[1]
        server.end()
        server.restart()

    def client(self, user: str = "administrator") -> Api:
        return Api(self.address, self.tokens[user], self.certificates.authority)

    def kubeconfig(self, user: str) -> Path:
        """A file of this control plane alone."""
        path = self.folder / f"{user.replace(':', '-')}.kubeconfig"
        cluster = {"server": self.address, "certificate-authority": str(self.certificates.authority)}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "tests", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "tests", "context": {"cluster": "tests", "user": user}}],
            "current-context": "tests",
        }
        path.touch(mode=0o600)
        path.write_text(json.dumps(content), encoding="utf-8")
        return path


@contextmanager
def control_plane(folder: Path) -> Iterator[ControlPlane]:
    """One of its own, on free ports of 127.0.0.1 and with its data in `folder`, ended with the block."""
    with ExitStack() as stack:
        etcd, api = free_port(), free_port()
        store = stack.enter_context(running("etcd", _etcd(folder, etcd, free_port()), folder))
        certificates = Certificates.made(folder / "certificates")
        tokens = {user: secrets.token_hex(16) for user in _GROUPS}
        arguments = _api_server(folder, etcd=etcd, port=api, certificates=certificates, tokens=tokens)
        server = stack.enter_context(running("kube-apiserver", arguments, folder))
        plane = ControlPlane(f"https://127.0.0.1:{api}", certificates, tokens, folder, (store, server))
        client = stack.enter_context(plane.client())

        def ready() -> bool:
            store.check()
            server.check()
            return client.ready()

        until(ready, "API server")
        manager = stack.enter_context(running("kube-controller-manager", _manager(plane), folder))
        scheduler = stack.enter_context(running("kube-scheduler", _scheduler(plane), folder))

        def accounts() -> bool:
            manager.check()
            scheduler.check()
            return client.get("v1", "ServiceAccount", "default", "default") is not None

        until(accounts, "controller manager")
        yield ControlPlane(plane.address, certificates, tokens, folder, (store, server, manager, scheduler))


def _etcd(folder: Path, clients: int, peers: int) -> list[str]:
    client, peer = f"http://127.0.0.1:{clients}", f"http://127.0.0.1:{peers}"
    return [
        f"--data-dir={folder / 'etcd'}",
        "--unsafe-no-fsync",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--log-level=warn",
    ]


def _api_server(
    folder: Path, *, etcd: int, port: int, certificates: Certificates, tokens: dict[str, str]
) -> list[str]:
    users = folder / "tokens.csv"
    users.touch(mode=0o600)
    rows = [f'{tokens[user]},{user},{user},"{groups}"' for user, groups in _GROUPS.items()]
    users.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return [
        f"--etcd-servers=http://127.0.0.1:{etcd}",
        "--bind-address=127.0.0.1",
        f"--secure-port={port}",
        f"--tls-cert-file={certificates.server}",
        f"--tls-private-key-file={certificates.server_key}",
        # Only an object in the cluster: nobody connects there, and an endpoint cannot be 127.0.0.1.
        "--advertise-address=192.0.2.1",
        "--endpoint-reconciler-type=none",
        "--service-cluster-ip-range=172.20.0.0/16",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={certificates.accounts_key}",
        f"--service-account-signing-key-file={certificates.accounts_key}",
        f"--token-auth-file={users}",
        "--authorization-mode=Node,RBAC",
        "--anonymous-auth=false",
        f"--enable-admission-plugins={','.join(ADMISSION)}",
        "--allow-privileged",
        "--profiling=false",
        "--v=1",
    ]


def _manager(plane: ControlPlane) -> list[str]:
    return [
        f"--kubeconfig={plane.kubeconfig('system:kube-controller-manager')}",
        f"--service-account-private-key-file={plane.certificates.accounts_key}",
        f"--root-ca-file={plane.certificates.authority}",
        "--use-service-account-credentials",
        "--leader-elect=false",
        "--secure-port=0",
        "--controllers=*," + ",".join(f"-{name}" for name in WITHOUT),
        # The tests wait for these: all replicas of a tree, and namespaces that go.
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        "--concurrent-namespace-syncs=20",
    ]


def _scheduler(plane: ControlPlane) -> list[str]:
    return [
        f"--kubeconfig={plane.kubeconfig('system:kube-scheduler')}",
        "--leader-elect=false",
        "--secure-port=0",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
    ]
