"""What a deploy would change in the system node group, besides its version: EKS updates one or the other.

CloudFormation's handler refuses a change of Version or ReleaseVersion beside any other in one update
("Version and ReleaseVersion updates cannot be combined with other updates", aws-cdk issue 13602,
containers-roadmap issue 1258), and the whole stack rolls back. A new version of the launch template is such a
change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from modelyard.findings import Finding
from modelyard.live.api.aws import Ask
from modelyard.live.stacks import deployed_template
from modelyard.names import stack_name
from modelyard.reading import RECORD, parse_json, read_file
from modelyard.spec import Environment

ASSEMBLY: Final = Path("cdk.out")
"""Where the CDK CLI writes templates."""

_GROUP: Final = "AWS::EKS::Nodegroup"
_IN_PLACE: Final = {
    "LaunchTemplate": "launch template",
    "ScalingConfig": "number",
    "UpdateConfig": "update settings",
    "Labels": "labels",
    "Taints": "taints",
    "Tags": "tags",
}
_REPLACING: Final = ("AmiType", "CapacityType", "DiskSize", "InstanceTypes", "NodeRole", "Subnets")


class NoTemplate(Exception):
    """The assembly has no template of the environment's cluster; the text says what to do."""


def other_changes(ask: Ask, environment: Environment, assembly: Path = ASSEMBLY) -> tuple[str, ...]:
    """What else the next deploy changes in place, in words; empty if nothing, or if it makes a new group.

    Raises:
        NoTemplate: `assembly` has no template of this environment.
        Unanswered: AWS does not answer.
    """
    stack = stack_name(environment.name, "cluster")
    wanted = synthesized_template(assembly, stack)
    deployed = deployed_template(ask, stack)
    try:
        return tuple(sorted(set(_differences(deployed, wanted))))
    except (AttributeError, LookupError, TypeError) as problem:
        raise NoTemplate(f"{assembly} is no output of cdk synth: {type(problem).__name__}") from None


def synthesized_template(assembly: Path, stack: str) -> Mapping[str, Any]:
    """The template of `stack` in a folder that the CDK CLI wrote.

    Raises:
        NoTemplate: it has none.
    """
    try:
        artifacts = _document(assembly / "manifest.json")["artifacts"].values()
        files = [
            str(each["properties"]["templateFile"])
            for each in artifacts
            if each["type"] == "aws:cloudformation:stack" and each["properties"].get("stackName") == stack
        ]
        if not files:
            raise NoTemplate(f"{assembly} has no stack {stack}")
        template: Mapping[str, Any] = _document(assembly / Path(files[0]).name)
        template["Resources"].values()
    except (AttributeError, KeyError, TypeError, ValueError) as problem:
        raise NoTemplate(f"{assembly} is no output of cdk synth: {type(problem).__name__}") from None
    return template


def _document(path: Path) -> Any:
    text = read_file(path, RECORD)
    if isinstance(text, Finding):
        raise NoTemplate(f"there is no {path}")
    return parse_json(text)


def _differences(deployed: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    before, after = deployed.get("Resources", {}), wanted["Resources"]
    for name, group in after.items():
        old = before.get(name)
        if group.get("Type") != _GROUP or old is None:
            continue
        was, will = old.get("Properties", {}), group.get("Properties", {})
        if any(was.get(key) != will.get(key) for key in _REPLACING):
            continue
        yield from (words for key, words in _IN_PLACE.items() if was.get(key) != will.get(key))
        if _launch_data(before, was) != _launch_data(after, will):
            yield _IN_PLACE["LaunchTemplate"]


def _launch_data(resources: Mapping[str, Any], group: Mapping[str, Any]) -> Any:
    """What is in the launch template that the group takes the latest version of."""
    version = (group.get("LaunchTemplate") or {}).get("Version")
    source = version.get("Fn::GetAtt", [""])[0] if isinstance(version, Mapping) else ""
    return resources.get(source, {}).get("Properties", {}).get("LaunchTemplateData")
