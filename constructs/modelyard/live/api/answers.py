"""Why a question has no answer: the same kinds of reasons for AWS and for a cluster."""

from __future__ import annotations


class Unanswered(Exception):
    """A question that got no answer; the text says why, for people.

    `said`: what the library said, word for word.
    """

    def __init__(self, text: str, said: str = "") -> None:
        super().__init__(text)
        self.said = said or text


class NoCredentials(Unanswered):
    """Nothing will be answered: credentials are missing, expired or wrong."""


class Refusal(Unanswered):
    """AWS understood the question and answered with an error, `code`."""

    def __init__(self, text: str, code: str, said: str = "") -> None:
        super().__init__(text, said)
        self.code = code


class Unreachable(Unanswered):
    """The cluster cannot be asked, or refuses."""


class WrongContext(Unreachable):
    """The kubeconfig's context is of another cluster."""
