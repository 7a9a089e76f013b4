"""EKS types on a cluster: add-ons, access entries, pod identity associations."""

from __future__ import annotations

from typing import Any

from modelyard.localcloud.plugin import internals
from modelyard.localcloud.plugin.eks_cluster import require_role
from modelyard.localcloud.plugin.resource_type import (
    Aws,
    Made,
    Properties,
    ResourceAddress,
    ResourceType,
    camel,
    given,
    tags_of,
)

# Namespaces of add-on agents without `NamespaceConfig`; all others are in kube-system.
_NAMESPACES = {
    "amazon-cloudwatch-observability": "amazon-cloudwatch",
    "adot": "opentelemetry-operator-system",
}


class Addon(ResourceType):
    name = "AWS::EKS::Addon"
    replaced_by = ("ClusterName", "AddonName", "NamespaceConfig")

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        cluster, name = properties["ClusterName"], properties["AddonName"]
        answer = aws.client("eks").create_addon(
            clusterName=cluster, addonName=name, tags=tags_of(properties), **self._settings(properties)
        )
        try:
            self._associate(aws, properties)
        except Exception:  # CloudFormation does not delete a resource without an id
            self.delete(aws, f"{cluster}|{name}", properties)
            raise
        return self._made(cluster, name, answer["addon"]["addonArn"])

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        cluster, name = physical_id.split("|")
        eks = aws.client("eks")
        eks.update_addon(clusterName=cluster, addonName=name, **self._settings(new))
        if old.get("PodIdentityAssociations") != new.get("PodIdentityAssociations"):
            self._dissociate(aws, cluster, name)
            self._associate(aws, new)
        arn = eks.describe_addon(clusterName=cluster, addonName=name)["addon"]["addonArn"]
        internals.set_eks_tags(internals.eks_record("add-on", cluster, name), arn, tags_of(new))
        return self._made(cluster, name, arn)

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        cluster, name = physical_id.split("|")
        self._dissociate(aws, cluster, name)
        aws.client("eks").delete_addon(clusterName=cluster, addonName=name)

    @staticmethod
    def _settings(properties: Properties) -> dict[str, Any]:
        wanted = ("AddonVersion", "ServiceAccountRoleArn", "ResolveConflicts", "ConfigurationValues")
        settings: dict[str, Any] = camel(given(properties, *wanted))
        return settings

    @staticmethod
    def _associate(aws: Aws, properties: Properties) -> None:
        """As in EKS: the add-on's associations are ordinary ones, and the add-on lists their ARNs."""
        cluster, name = properties["ClusterName"], properties["AddonName"]
        namespace = (properties.get("NamespaceConfig") or {}).get("Namespace")
        arns: list[str] = []
        internals.eks_record("add-on", cluster, name)["podIdentityAssociations"] = arns
        for wanted in properties.get("PodIdentityAssociations") or []:
            answer = aws.client("eks").create_pod_identity_association(
                clusterName=cluster,
                namespace=namespace or _NAMESPACES.get(name, "kube-system"),
                serviceAccount=wanted["ServiceAccount"],
                roleArn=wanted["RoleArn"],
            )
            arns.append(answer["association"]["associationArn"])

    @staticmethod
    def _dissociate(aws: Aws, cluster: str, name: str) -> None:
        addon = aws.client("eks").describe_addon(clusterName=cluster, addonName=name)["addon"]
        for arn in addon.get("podIdentityAssociations", []):
            aws.client("eks").delete_pod_identity_association(
                clusterName=cluster, associationId=arn.rsplit("/", 1)[-1]
            )

    @staticmethod
    def _made(cluster: str, name: str, arn: str) -> Made:
        return Made(f"{cluster}|{name}", {"Arn": arn})


class AccessEntry(ResourceType):
    name = "AWS::EKS::AccessEntry"
    replaced_by = ("ClusterName", "PrincipalArn", "Type")

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        cluster, principal = properties["ClusterName"], properties["PrincipalArn"]
        eks = aws.client("eks")
        eks.describe_cluster(name=cluster)
        require_role(aws, principal, "The specified principalArn is invalid: invalid principal.")
        answer = eks.create_access_entry(
            clusterName=cluster,
            principalArn=principal,
            tags=tags_of(properties),
            **camel(given(properties, "KubernetesGroups", "Username", "Type")),
        )
        try:
            self._set_policies(aws, cluster, principal, {}, properties)
        except Exception:
            eks.delete_access_entry(clusterName=cluster, principalArn=principal)
            raise
        return self._made(cluster, principal, answer["accessEntry"]["accessEntryArn"])

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        cluster, principal = physical_id.split("|")
        answer = aws.client("eks").update_access_entry(
            clusterName=cluster,
            principalArn=principal,
            kubernetesGroups=list(new.get("KubernetesGroups") or []),
            **camel(given(new, "Username")),
        )
        self._set_policies(aws, cluster, principal, old, new)
        arn = answer["accessEntry"]["accessEntryArn"]
        internals.set_eks_tags(internals.eks_record("access entry", cluster, principal), arn, tags_of(new))
        return self._made(cluster, principal, arn)

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        cluster, principal = physical_id.split("|")
        aws.client("eks").delete_access_entry(clusterName=cluster, principalArn=principal)

    @staticmethod
    def _set_policies(aws: Aws, cluster: str, principal: str, old: Properties, new: Properties) -> None:
        eks = aws.client("eks")
        wanted = {policy["PolicyArn"]: policy for policy in new.get("AccessPolicies") or []}
        for policy in old.get("AccessPolicies") or []:
            if policy["PolicyArn"] not in wanted:
                eks.disassociate_access_policy(
                    clusterName=cluster, principalArn=principal, policyArn=policy["PolicyArn"]
                )
        for arn, policy in wanted.items():
            eks.associate_access_policy(
                clusterName=cluster,
                principalArn=principal,
                policyArn=arn,
                accessScope=camel(policy["AccessScope"]),
            )

    @staticmethod
    def _made(cluster: str, principal: str, arn: str) -> Made:
        return Made(f"{cluster}|{principal}", {"AccessEntryArn": arn})


class PodIdentityAssociation(ResourceType):
    name = "AWS::EKS::PodIdentityAssociation"
    replaced_by = ("ClusterName", "Namespace", "ServiceAccount")
    _MUTABLE = ("RoleArn", "TargetRoleArn", "DisableSessionTags")

    def create(self, aws: Aws, place: ResourceAddress, properties: Properties) -> Made:
        eks = aws.client("eks")
        eks.describe_cluster(name=properties["ClusterName"])
        role = properties["RoleArn"]
        require_role(aws, role, f"Role provided in the request does not exist: {role}")
        answer = eks.create_pod_identity_association(
            **camel(given(properties, "ClusterName", "Namespace", "ServiceAccount", *self._MUTABLE)),
            tags=tags_of(properties),
        )
        return self._made(answer["association"])

    def update(
        self, aws: Aws, place: ResourceAddress, physical_id: str, old: Properties, new: Properties
    ) -> Made:
        cluster, association = new["ClusterName"], physical_id.rsplit("/", 1)[-1]
        answer = aws.client("eks").update_pod_identity_association(
            clusterName=cluster, associationId=association, **camel(given(new, *self._MUTABLE))
        )
        record = internals.eks_record("association", cluster, association)
        internals.set_eks_tags(record, physical_id, tags_of(new))
        return self._made(answer["association"])

    def delete(self, aws: Aws, physical_id: str, properties: Properties) -> None:
        aws.client("eks").delete_pod_identity_association(
            clusterName=properties["ClusterName"], associationId=physical_id.rsplit("/", 1)[-1]
        )

    @staticmethod
    def _made(association: dict[str, Any]) -> Made:
        attributes = {
            "AssociationArn": association["associationArn"],
            "AssociationId": association["associationId"],
            "ExternalId": association.get("externalId", ""),
        }
        return Made(association["associationArn"], attributes)


TYPES: tuple[ResourceType, ...] = (
    Addon(),
    AccessEntry(),
    PodIdentityAssociation(),
)
