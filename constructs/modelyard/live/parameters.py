"""Parameter Store: values that stacks publish, and public parameters of AWS."""

from __future__ import annotations

from modelyard.live.api.answers import Refusal
from modelyard.live.api.aws import Ask, Operation
from modelyard.names import parameter_name

GET_PARAMETER = Operation("ssm", "GetParameter")


def parameter(ask: Ask, name: str) -> str | None:
    """The value of parameter `name`; None if it does not exist.

    Raises:
        Unanswered: AWS does not answer.
    """
    try:
        return str(ask(GET_PARAMETER, Name=name)["Parameter"]["Value"])
    except Refusal as refused:
        if refused.code == "ParameterNotFound":
            return None
        raise


def handed_over(ask: Ask, environment: str, concern: str, key: str) -> str | None:
    """The value that the stack of `concern` has published under `key`; None before its first deploy.

    Raises:
        Unanswered: AWS does not answer.
    """
    return parameter(ask, parameter_name(environment, concern, key))
