"""The way to a private API server: a port of this machine, through a system node and Session Manager."""

from __future__ import annotations

from typing import Final

from modelyard.spec import Environment

LOCAL_PORT: Final = 8443


def tunnel_commands(environment: Environment) -> tuple[str, ...]:
    """Two commands, for two shells; empty if the API is public or no node takes part in Session Manager.

    The API server's certificate is not for localhost, so the kubeconfig has to name the host of its endpoint.
    Nodes of EKS Auto Mode run no agent of Systems Manager.
    """
    cluster = environment.cluster
    if cluster.public_access_cidrs or cluster.auto_mode:
        return ()
    name, region = environment.cluster_name, environment.region
    host = f"aws eks describe-cluster --name {name} --region {region} --query cluster.endpoint --output text | cut -d/ -f3"
    node = (
        f"aws ec2 describe-instances --region {region} --filters Name=tag:eks:cluster-name,Values={name} "
        "Name=instance-state-name,Values=running --query 'Reservations[0].Instances[0].InstanceId' --output text"
    )
    arn = f"arn:aws:eks:{region}:{environment.account}:cluster/{name}"
    session = (
        f"aws ssm start-session --region {region} --target $({node}) "
        "--document-name AWS-StartPortForwardingSessionToRemoteHost "
        f"--parameters host=$({host}),portNumber=443,localPortNumber={LOCAL_PORT}"
    )
    return (
        session,
        f"kubectl config set-cluster {arn} --server=https://localhost:{LOCAL_PORT} --tls-server-name=$({host})",
    )
