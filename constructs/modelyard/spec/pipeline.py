"""`pipeline.yaml`: repository, environments in order, and approvals."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from modelyard.spec.document import DNS_LABEL, Document
from modelyard.spec.governance import Email

EnvironmentName = Annotated[str, Field(pattern=DNS_LABEL, max_length=20)]


class Stage(Document):
    """One environment of the pipeline; in YAML, a plain name is a stage without approval."""

    environment: EnvironmentName
    """Name of a file in `environments`."""
    approval: Annotated[str, Field(min_length=10)] | None = None
    """What a person has to review before this stage starts; default: no approval."""


def _name_alone(value: object) -> object:
    return {"environment": value} if isinstance(value, str) else value


StageOrName = Annotated[Stage, BeforeValidator(_name_alone, json_schema_input_type=EnvironmentName | Stage)]


class RepositoryIds(Document):
    """What GitHub never gives to another owner or repository, unlike a name."""

    owner_id: Annotated[int, Field(ge=1)]
    """Number of the organisation or user."""
    repository_id: Annotated[int, Field(ge=1)]
    """Number of the repository."""


class Notices(Document):
    """Who is told of approvals that wait and of pipelines that fail: addresses, or a topic."""

    emails: tuple[Email, ...] = ()
    """Addresses; each has to confirm a message from AWS. Without any, subscribe to the topic yourself."""
    topic_arn: (
        Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:sns:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]+$")] | None
    ) = None
    """An existing SNS topic in the pipeline's account and region, to which EventBridge may publish."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if self.emails and self.topic_arn:
            raise ValueError(
                "has emails and topicArn: addresses are subscribed to a topic of ours alone; keep one"
            )
        return self


class Pipeline(Document):
    """The path of a change from a branch to production."""

    repository: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+$")]
    """`OWNER/NAME` on GitHub."""
    branch: Annotated[str, Field(pattern=r"^[A-Za-z0-9_./-]+$")] = "main"
    """Branch whose pushes are promoted."""
    connection_arn: Annotated[
        str,
        Field(
            pattern=r"^arn:aws[a-z-]*:(codeconnections|codestar-connections):[a-z0-9-]+:[0-9]{12}:connection/.+$"
        ),
    ]
    """CodeConnections connection with access to the repository; create it once, in the console."""
    account: Annotated[str, Field(pattern=r"^[0-9]{12}$")]
    """Account of the pipeline, preferably a separate one; quote it, otherwise YAML reads a number."""
    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$")]
    """Region of the pipeline."""
    stages: Annotated[tuple[StageOrName, ...], Field(min_length=1)]
    """Environments, in order."""
    github_oidc_provider: Literal["create", "existing"] = "create"
    """Whether the accounts already have GitHub's OIDC provider: an account has one provider per URL."""
    github: RepositoryIds | None = None
    """Numbers of owner and repository, as `gh api repos/OWNER/NAME` prints them: the workflow's role then
    trusts tokens with these numbers alone. Needed for repositories that were created, renamed or transferred
    after 2026-07-15, and for those that have opted in to immutable subject claims."""
    notify: Notices | None = None
    """Who is told of approvals and failures; default: nobody, and approvals wait for somebody who looks."""
    log_retention_days: Literal[7, 14, 30, 60, 90, 180, 365] = 365
    """Retention of the build logs."""

    @property
    def github_subject(self) -> str:
        """Start of the `sub` claim in the tokens of the repository's workflows."""
        if self.github is None:
            return f"repo:{self.repository}"
        owner, name = self.repository.split("/")
        return f"repo:{owner}@{self.github.owner_id}/{name}@{self.github.repository_id}"

    @field_validator("stages")
    @classmethod
    def _each_once(cls, value: tuple[Stage, ...]) -> tuple[Stage, ...]:
        names = [stage.environment for stage in value]
        if len(set(names)) != len(names):
            raise ValueError("must name each environment once")
        return value
