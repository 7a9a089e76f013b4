"""`make cluster`: a Kubernetes behind the embedded AWS of `make up`, until Ctrl-C."""

from __future__ import annotations

import argparse
import fcntl
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from httpx import TransportError

from modelyard.localcloud import lifecycle
from modelyard.planning import Plan
from modelyard.project import load_project
from tests.cluster.addresses import here, pod_addresses, port_here
from tests.cluster.api import Api, Object, Refused
from tests.cluster.cluster import Cluster, condition
from tests.cluster.containers import component
from tests.cluster.control_plane import control_plane
from tests.cluster.embedded_aws import EmbeddedAws, NotUp, deploy
from tests.cluster.flux_controllers import controllers
from tests.cluster.karpenter import karpenter
from tests.cluster.kubectl import kubectl
from tests.cluster.kubelets import Kubelets
from tests.cluster.player import CONTROLLERS, Player
from tests.cluster.programs import BUILT, ROOT, Stopped, definitions
from tests.cluster.proxy import Proxy
from tests.cluster.rounds import rounds
from tests.cluster.standins import stand_ins

TOOLS = ROOT / ".tools"
_PLAYED = tuple(each for each in CONTROLLERS if "karpenter" not in each[0])
_LOOK = 0.5  # seconds


class Refusal(Exception):
    """Why there will be no cluster, in one line."""


class _Told:
    """Lines for a person, each with the seconds since the start."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self._last = ""

    def __call__(self, line: str) -> None:
        if line != self._last:
            self._last = line
            print(f"{time.monotonic() - self.began:4.0f} s  {line}", flush=True)


@contextmanager
def _own_folder(env: str) -> Iterator[Path]:
    """A new one for this run, gone after it; one run an environment."""
    folder = TOOLS / "clusters" / env
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise Refusal(f"a cluster for environment {env} runs already; end it with Ctrl-C first") from None
        for left in folder.iterdir():
            if left.name != "lock":
                shutil.rmtree(left) if left.is_dir() else left.unlink()
        try:
            yield folder
        finally:
            shutil.rmtree(folder)


def _planned(env: str) -> Plan:
    found = load_project(env).plan()
    if found is None or not found.deployable:
        raise Refusal(f"environment {env} has errors: modelyard validate --env {env}")
    return found


def run(env: str, state: Path) -> None:
    """Start everything, say so, and play until somebody ends it.

    Raises:
        Refusal, NotUp: it cannot start.
        Stopped: a program ended.
    """
    told = _Told()
    with _own_folder(env) as folder, ExitStack() as stack:
        deploy(env, state, folder / "up.log")
        told("embedded AWS, with everything that `make up` deploys")
        plan = _planned(env)
        aws = EmbeddedAws.of(plan.environment, state)
        plane = stack.enter_context(control_plane(folder))
        told("etcd, API server, controller manager and scheduler")
        _write(folder, plane.kubeconfig("administrator"), aws.variables)
        api, others, kubelets_api, proxys = (stack.enter_context(plane.client()) for _ in range(4))
        cluster = Cluster(api)
        cluster.define(definitions())
        objects = [*aws.objects()]
        cluster.define_these(stand_ins(objects, api.kinds()))
        scaled = any(item["kind"] == "ScaledObject" for item in objects)
        addresses = stack.enter_context(pod_addresses())
        proxy = stack.enter_context(closing(Proxy(proxys)))
        logs = folder / "logs"
        logs.mkdir()
        kubelets = Kubelets(kubelets_api, logs, addresses, account=aws.variables, url=proxy.url)
        stack.enter_context(closing(kubelets))
        player = Player(others, _PLAYED)

        def play_others() -> None:
            player.play_controllers()
            if scaled:
                player.play_scaling()

        played = [stack.enter_context(rounds(each)) for each in (kubelets.play, proxy.play, play_others)]
        _, launcher = stack.enter_context(karpenter(plane, plan, folder))
        delivery = stack.enter_context(
            controllers(plane, cluster, aws.values, aws.address, aws.variables, interval="10s")
        )
        told("Karpenter, Flux' source and kustomize controllers")

        def check() -> None:
            launcher.check()
            for program in (*plane.programs, *delivery):
                program.check()
            for each in played:
                each.check()

        names = {item["metadata"]["name"] for item in objects if _serves(item)}
        _wait(api, names, told, check)
        _explain(api, plan, min(names), folder)
        while True:
            check()
            time.sleep(_LOOK)


def _wait(api: Api, names: set[str], told: _Told, check: Callable[[], None]) -> None:
    """Until every one of these Deployments has the pods that it asks for, ready."""
    while True:
        check()
        servers = [item for item in api.list("apps/v1", "Deployment") if item["metadata"]["name"] in names]
        pods = [pod for pod in api.list("v1", "Pod") if component(pod) == "server"]
        ready = sum(condition(pod, "Ready") == "True" for pod in pods)
        nodes = len(api.list("v1", "Node"))
        if pods:
            told(f"{nodes} nodes, {ready} of {len(pods)} pods of models ready")
        if len([item for item in servers if _has_all(item)]) == len(names):
            return
        time.sleep(_LOOK)


def _serves(item: Object) -> bool:
    """Whether it is a Deployment of engines that are to run."""
    replicas = item.get("spec", {}).get("replicas", 1)
    return item["kind"] == "Deployment" and component(item) == "server" and bool(replicas)


def _has_all(item: Object) -> bool:
    wanted, status = item["spec"]["replicas"], item.get("status", {})
    return bool(status.get("readyReplicas", 0) >= wanted)


def _write(folder: Path, kubeconfig: Path, variables: dict[str, str]) -> None:
    """What a shell needs to meet this cluster and nothing else."""
    program = kubectl(TOOLS / "kubectl-v36")
    path = [str(ROOT / ".venv" / "bin"), *([str(program.parent)] if program else [])]
    lines = [
        "unset AWS_PROFILE AWS_SESSION_TOKEN",
        *(f"export {name}={value}" for name, value in variables.items()),
        f"export KUBECONFIG='{kubeconfig}'",
        f"export PATH='{':'.join(path)}':\"$PATH\"",
    ]
    (folder / "env.sh").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _explain(api: Api, plan: Plan, name: str, folder: Path) -> None:
    env, space = plan.environment.name, plan.environment.namespace
    service = api.get("v1", "Service", name, space)
    assert service is not None
    address = f"{here(service['spec']['clusterIP'])}:{port_here(80)}"
    print(
        f"""
real    API server, admission, controllers, scheduler; Flux, which reads the bucket
        of `make up`; Karpenter; addresses of Services and pods, with 127 in front;
        arguments, ports and probes of models; the Jobs that ask them
played  instances, kubelets and drivers; engines, which compute nothing; charts,
        KEDA, secrets and downloads; kinds of those charts have no schema;
        without containers there is no kubectl logs, exec or port-forward

In another shell, here:
  . {(folder / "env.sh").relative_to(ROOT)}
  kubectl -n {space} get pods,services
  modelyard smoke {name} --env {env} --url http://{address}/v1
  modelyard verify --env {env} --wait 5m
  modelyard publish --env {env}      after a change in models/
Logs: {(folder / "logs").relative_to(ROOT)}. Ctrl-C ends all of it; the embedded AWS stays up.""",
        flush=True,
    )


def _ended(*_: Any) -> None:
    raise KeyboardInterrupt


def main() -> int:
    parser = argparse.ArgumentParser(prog="make cluster", description=__doc__)
    parser.add_argument("--env", default="local")
    parser.add_argument("--state", type=Path)
    asked = parser.parse_args()
    if not BUILT.is_file():
        print("no control plane is built; `make cluster` says what is missing", file=sys.stderr)
        return 1
    if sys.platform != "linux":
        print("pods and Services are addresses of 127.0.0.0/8, which only Linux has", file=sys.stderr)
        return 1
    for each in (signal.SIGINT, signal.SIGTERM):  # a shell ignores the first for what it starts with &
        signal.signal(each, _ended)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    try:
        run(asked.env, (asked.state or Path(lifecycle.HOME) / asked.env).resolve())
    except KeyboardInterrupt:
        down = (
            "make down" if asked.env == "local" else f"python -m modelyard.localcloud down --env {asked.env}"
        )
        print(f"\nended: no process is left; the embedded AWS goes with `{down}`")
        return 0
    except (NotUp, Refusal, Stopped, Refused, TransportError) as why:
        print(why, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
