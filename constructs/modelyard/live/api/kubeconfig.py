"""Lookup of the kubeconfig context for an environment's cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from modelyard.live.api.answers import Unreachable, WrongContext
from modelyard.reading import short
from modelyard.spec import Environment


def server_name(config: Any) -> str | None:
    """`tls-server-name` of a context that `context_of` found: the host of the certificate, if it is another
    than the server's address.

    Raises:
        Unreachable: the kubeconfig cannot be read any more.
    """
    from yaml import YAMLError, safe_load  # type: ignore[import-untyped]

    path = Path(config.fname)
    try:
        for entry in safe_load(path.read_text(encoding="utf-8")).get("clusters") or ():
            if entry.get("name") == config.context.cluster:
                name = entry["cluster"].get("tls-server-name")
                return str(name) if name else None
    except (YAMLError, AttributeError, LookupError, OSError, RecursionError, TypeError, ValueError) as error:
        said = short(" ".join(str(error).split()), 200)
        raise Unreachable(f"kubeconfig {path}: {type(error).__name__} {said}") from None
    return None


def context_of(environment: Environment, context: str | None, *, foreign: bool = False) -> Any:
    """lightkube's configuration of `context`; default: the context whose cluster has the environment's ARN.

    `foreign`: the context may be of any cluster.

    Raises:
        Unreachable: the context does not exist; WrongContext: it belongs to another cluster.
    """
    from lightkube import KubeConfig
    from lightkube.core.exceptions import ConfigError
    from yaml import YAMLError

    wanted = f":{environment.region}:{environment.account}:cluster/{environment.cluster_name}"
    remedy = f"aws eks update-kubeconfig --name {environment.cluster_name} --region {environment.region}"
    paths = [path for path in os.environ.get("KUBECONFIG", "").split(os.pathsep) if path]
    for path in paths or ["~/.kube/config"]:
        if not Path(path).expanduser().is_file():
            continue
        try:
            config = KubeConfig.from_file(path)
            for name, each in config.contexts.items():
                if name == context and not foreign and not each.cluster.endswith(wanted):
                    raise WrongContext(
                        f"context {name} is of {each.cluster}, environment {environment.name} is "
                        f"{environment.cluster_name} in account {environment.account}; its context: {remedy}"
                    )
                if name == context or (context is None and each.cluster.endswith(wanted)):
                    return config.get(name)
        except (
            *(ConfigError, YAMLError, OSError),
            *(AttributeError, LookupError, RecursionError, TypeError, ValueError),
        ) as error:
            said = short(" ".join(str(error).split()), 200)
            raise Unreachable(f"kubeconfig {path}: {type(error).__name__} {said}") from None
    missing = f"context {context}" if context else f"a context of {environment.cluster_name}"
    raise Unreachable(f"the kubeconfig lacks {missing}: {remedy}")
