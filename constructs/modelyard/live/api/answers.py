"""Why a call has no answer: the same exceptions for AWS and for a cluster."""

from __future__ import annotations


class Unanswered(Exception):
    """A call without an answer; the text says why, for people.

    `said`: the library's message, verbatim.
    """

    def __init__(self, text: str, said: str = "") -> None:
        super().__init__(text)
        self.said = said or text


class NoCredentials(Unanswered):
    """No call can succeed: credentials are missing, expired or wrong."""


class Refusal(Unanswered):
    """AWS answered with an error, `code`."""

    def __init__(self, text: str, code: str, said: str = "") -> None:
        super().__init__(text, said)
        self.code = code


class Unreachable(Unanswered):
    """The cluster cannot be reached, or refuses."""


class Silent(Unreachable):
    """Nothing answers at the cluster's address."""


class Denied(Unreachable):
    """The cluster's RBAC does not let the user ask."""


class WrongContext(Unreachable):
    """The kubeconfig's context belongs to another cluster."""
