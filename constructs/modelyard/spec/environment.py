"""`environments/NAME.yaml`: the only place for accounts, regions, zones, pools, secret names and
overrides."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, field_validator, model_validator

from modelyard.findings import CHECKS
from modelyard.names import EFS_DRIVER, EXTERNAL_SECRETS
from modelyard.reading import closest
from modelyard.releases import ImageRoutes
from modelyard.spec.cluster import Cluster, RoleArn, Team
from modelyard.spec.document import DNS_LABEL, Document, ObjectName, SecretName
from modelyard.spec.existing_cluster import ExistingCluster
from modelyard.spec.governance import CostLimits, OfficeHours
from modelyard.spec.labels import LabelKey, LabelValue, TagKey, TagValue
from modelyard.spec.network import Cidr, Network
from modelyard.spec.operation import Access, AllowedClients, Availability, Replicas, Scaling, parse_replicas
from modelyard.spec.pool import Pool
from modelyard.spec.receivers import Receiver
from modelyard.spec.registry import Registry, parse_registry
from modelyard.spec.storage import Cache

# Other partitions by the regions' names (AWS General Reference, ARN format).
_PARTITIONS = {"cn": "aws-cn"}


class Monitoring(Document):
    """How Prometheus discovers and stores the environment's metrics."""

    enabled: bool = True
    """Render ServiceMonitors; needs the Prometheus Operator's CRDs in the cluster."""
    namespace: Annotated[str, Field(pattern=DNS_LABEL)] = "monitoring"
    """Namespace of Prometheus; besides `access.allowFrom`, only this namespace can reach a model's port."""
    labels: dict[LabelKey, LabelValue] = Field(default_factory=lambda: {"release": "kube-prometheus-stack"})
    """Labels that Prometheus' serviceMonitorSelector matches."""
    prometheus: Annotated[str, Field(pattern=r"^https?://.+")] | None = None
    """URL of Prometheus for autoscaling; default: the Service of kube-prometheus-stack in `namespace`."""
    install: bool = True
    """Install kube-prometheus-stack; set to false if the cluster already has a Prometheus Operator."""
    managed: bool = False
    """Also store the metrics in Amazon Managed Service for Prometheus, by remote write."""
    managed_grafana: bool = False
    """Create an Amazon Managed Grafana workspace for them; users sign in through IAM Identity Center."""
    otlp_endpoint: (
        Annotated[
            str, Field(pattern=r"^https?://[a-z0-9-]+\.[a-z0-9-]+(\.svc[a-z0-9.-]*)?:[0-9]{2,5}(/.*)?$")
        ]
        | None
    ) = None
    """OpenTelemetry collector inside the cluster for models with `observability.tracing`:
    `http://SERVICE.NAMESPACE:4317`."""
    runbooks: Annotated[str, Field(pattern=r"^https?://.+[^/]$")] | None = None
    """URL of the published `docs/runbooks`, without a trailing slash; alerts then link to
    `RUNBOOKS/ALERT.md`."""

    receivers: dict[ObjectName, Receiver] = Field(default_factory=dict)
    """Who is told of alerts, by name; needs the Prometheus that Modelyard installs."""

    @model_validator(mode="after")
    def _receivers_need_ours(self) -> Self:
        if self.receivers and not (self.enabled and self.install):
            raise ValueError(
                "receivers needs enabled and install: they are the Alertmanager's that Modelyard installs; route alerts in "
                "yours instead"
            )
        return self

    @model_validator(mode="after")
    def _managed_needs_ours(self) -> Self:
        if self.managed and not (self.enabled and self.install):
            raise ValueError(
                "managed needs enabled and install: the Prometheus that Modelyard installs writes there"
            )
        if self.managed_grafana and not self.managed:
            raise ValueError("managedGrafana needs managed: it shows the metrics that are kept there")
        return self

    @property
    def receiver_secrets(self) -> tuple[str, ...]:
        """Logical names of the receivers' secrets, each once."""
        return tuple(sorted({each.secret for each in self.receivers.values() if each.secret}))

    @property
    def publishes(self) -> bool:
        """Whether alerts go to an SNS topic."""
        return any(each.sns for each in self.receivers.values())

    @property
    def prometheus_url(self) -> str:
        return self.prometheus or f"http://kube-prometheus-stack-prometheus.{self.namespace}:9090"


class Gateway(Document):
    """Access to models from outside the cluster: a load balancer with TLS, through Gateway API."""

    domain: Annotated[
        str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$")
    ]
    """Models are served at `NAME.DOMAIN`; point a wildcard DNS record at the load balancer."""
    certificate: SecretName
    """Logical name of the secret with the domain's certificate: JSON with the keys `tls.crt` and
    `tls.key`."""
    cidrs: tuple[Cidr, ...] = ()
    """Networks that may connect; default: everyone who can reach the load balancer."""
    class_name: Annotated[str, Field(pattern=DNS_LABEL)] = "istio"
    """GatewayClass; Istio is installed for the default."""


class Gateways(Document):
    """The environment's gateways, by exposure."""

    internal: Gateway | None = None
    """From the VPC and the networks connected to it."""
    public: Gateway | None = None
    """From the internet; needs `cidrs`, and an API key for every exposed model."""

    def of(self, exposure: str) -> Gateway | None:
        """The gateway for an exposure; None for `cluster`, or if the environment has none."""
        return {"internal": self.internal, "public": self.public}.get(exposure)

    @model_validator(mode="after")
    def _public_names_its_networks(self) -> Self:
        if self.public and not self.public.cidrs:
            raise ValueError(
                "public needs cidrs: name the networks that may connect, 0.0.0.0/0 for everybody"
            )
        return self


class LiteLlm(Document):
    """LiteLLM in front of all models: one OpenAI endpoint, model names from the catalogue, its own API
    keys."""

    master_key: SecretName
    """Logical name of the secret with the key that clients send."""
    replicas: Annotated[int, Field(ge=1, le=50)] = 2
    """Replicas of the proxy."""
    allow_from: tuple[AllowedClients, ...] = ()
    """Pods that may call it; default: every pod in the models' namespace."""
    exposure: Literal["cluster", "internal", "public"] = "cluster"
    """Like `access.exposure` of a model; served at `llm.DOMAIN`."""


class Checks(Document):
    """Jobs that query every model after its delivery; if one fails, the delivery has failed."""

    smoke: bool = True
    """Run all checks of `modelyard smoke`."""
    bench: bool = False
    """Run `modelyard bench`, which takes minutes and the model's whole capacity."""

    @property
    def enabled(self) -> bool:
        return self.smoke or self.bench


class ArgoCdCapability(Document):
    """Argo CD as an EKS capability: AWS runs it, users sign in through IAM Identity Center."""

    identity_center: Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:sso:::instance/ssoins-[0-9a-f]{16}$")]
    """The Identity Center instance."""
    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$")] | None = None
    """Its region; default: the environment's."""
    admins: Annotated[tuple[str, ...], Field(min_length=1)]
    """IDs of the Identity Center groups that administer Argo CD."""


class GitRepository(Document):
    """The Git repository from which Argo CD reads the rendered tree."""

    url: Annotated[str, Field(pattern=r"^(https://|ssh://|git@).+")]
    """URL of the repository, by HTTPS or SSH."""
    revision: str = "main"
    """Branch, tag or commit."""
    path: str = "dist"
    """Folder that contains `ENVIRONMENT/`."""
    managed: ArgoCdCapability | None = None
    """Have EKS run Argo CD; default: your own Argo CD."""


class Override(Document):
    """The only settings that may differ between environments, so that promotion stays meaningful."""

    replicas: Annotated[
        Replicas | None, BeforeValidator(parse_replicas, json_schema_input_type=Replicas | int | None)
    ] = None
    """A number, or `{min, max}` for autoscaling."""
    scaling: Scaling | None = None
    pool: str | None = None
    """Pool of this environment, by name; default: the cheapest that fits."""
    access: Access | None = None
    availability: Availability | None = None
    """`zonal` spreads replicas over zones; `single` accepts an outage at every disruption."""


def _known(code: str) -> str:
    if code not in CHECKS:
        close = closest(code, CHECKS)
        raise ValueError(f"there is no finding of this code{f' (did you mean {close[0]}?)' if close else ''}")
    return code


class Acknowledgement(Document):
    """A warning that was reviewed and accepted."""

    code: Annotated[str, Field(pattern=r"^[A-Z0-9]+$"), AfterValidator(_known)]
    """The finding's code."""
    reason: Annotated[str, Field(min_length=10)]
    """Why it is acceptable here."""
    model: ObjectName | None = None
    """Only for this model; default: the whole environment."""


class Environment(Document):
    """One account and region in which models run."""

    name: Annotated[str, Field(pattern=DNS_LABEL, max_length=20)]
    """Default: the file's name."""
    account: Annotated[str, Field(pattern=r"^[0-9]{12}$")]
    """AWS account ID; quote it, otherwise YAML reads a number."""
    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$")]
    """AWS region of everything in the environment."""
    availability_zones: Annotated[tuple[str, ...], Field(min_length=2, max_length=3)]
    """Two or three zones of the region, by name; never looked up."""
    policy: Literal["relaxed", "strict"] = "relaxed"
    """`strict` turns every warning into an error; use it for production."""
    removal: Literal["retain", "destroy"] = "retain"
    """What `cdk destroy` does with data (caches, logs, keys, secrets); `retain` also protects the cluster."""
    permissions_boundary: (
        Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/[A-Za-z0-9+=,.@_/-]+$")]
        | None
    ) = None
    """ARN of an IAM policy that bounds every role of the stacks; default: none. Where an organisation lets
    deployers create only bounded roles, a deploy fails without it."""
    network: Network = Network.model_construct()
    cluster: Cluster = Cluster.model_construct()
    teams: dict[ObjectName, Team] = Field(default_factory=dict)
    """Teams with their own namespaces, by the name that models use as `owner.team`."""
    pools: dict[ObjectName, Pool] = Field(default_factory=dict)
    """Accelerator pools by name."""
    secrets: dict[SecretName, Annotated[str, Field(pattern=r"^[A-Za-z0-9/_+=.@-]{1,512}$")]] = Field(
        default_factory=dict
    )
    """Logical secret name to the name of a secret in AWS Secrets Manager; names only, never values."""
    cache: Cache = Cache.model_construct()
    registry: Annotated[
        Registry | None, BeforeValidator(parse_registry, json_schema_input_type=Registry | str | None)
    ] = None
    """What stands for the registries of images and charts: HOST/PREFIX of a mirror, or an object. Default:
    everything is pulled from where it is published."""
    cost: CostLimits = CostLimits.model_construct()
    """Budget, cost anomalies, and alert recipients."""
    office_hours: OfficeHours | None = None
    """Run models only in these hours, for example in dev."""
    monitoring: Monitoring = Monitoring.model_construct()
    gateways: Gateways = Gateways.model_construct()
    """Load balancers for access to models from outside the cluster."""
    litellm: LiteLlm | None = None
    """One OpenAI endpoint in front of all models."""
    checks: Checks = Checks.model_construct()
    delivery: Literal["flux", "argocd", "none"] = "flux"
    """What applies the rendered tree: Flux from S3, Argo CD from Git, or `none`: you, with `kubectl apply
    -k`."""
    publishers: tuple[RoleArn, ...] = ()
    """IAM principals that may write the tree's bucket besides `cdk deploy`: who writes there decides what
    runs in the cluster. Default: everybody whom IAM allows."""
    git: GitRepository | None = None
    """Repository for `delivery: argocd`."""
    namespace: Annotated[str, Field(pattern=DNS_LABEL, max_length=63)] = "models"
    """Namespace of the model servers."""
    quotas: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """EC2 vCPU quotas of the account by Service Quotas code, such as `L-DB2E81BA: 384`, for the plan's quota
    check."""
    tags: Annotated[dict[TagKey, TagValue], Field(max_length=40)] = Field(default_factory=dict)
    """Tags on every AWS resource."""
    acknowledge: tuple[Acknowledgement, ...] = ()
    """Warnings accepted here, each with its reason; errors cannot be accepted."""
    overrides: dict[ObjectName, Override] = Field(default_factory=dict)
    """Overrides per model for this environment."""

    @property
    def cluster_name(self) -> str:
        return self.cluster.name or f"modelyard-{self.name}"

    @property
    def strict(self) -> bool:
        return self.policy == "strict"

    @property
    def deletion_protection(self) -> bool:
        """Whether EKS refuses to delete the cluster."""
        stated = self.cluster.deletion_protection
        return self.removal == "retain" if stated is None else stated

    @property
    def weights_bucket(self) -> str | None:
        """Name of the bucket for streamed weights, if it is enabled."""
        if not self.cache.weights_bucket:
            return None
        return f"modelyard-{self.name}-weights-{self.account}-{self.region}"

    @property
    def readable_buckets(self) -> tuple[str, ...]:
        """Buckets from which model servers can stream weights."""
        return (*((self.weights_bucket,) if self.weights_bucket else ()), *self.cache.read_buckets)

    @property
    def routes(self) -> ImageRoutes:
        """From where images and charts are pulled."""
        if self.registry is None:
            return ImageRoutes()
        return self.registry.routes(environment=self.name, account=self.account, region=self.region)

    @property
    def image_cache(self) -> str | None:
        """Prefix of the repositories that ECR fills with images of other registries; None without a cache."""
        return self.name if self.registry and self.registry.pull_through else None

    @property
    def partition(self) -> str:
        """Partition of the region, as in ARNs."""
        if self.region.startswith("us-gov-"):
            return "aws-us-gov"
        return _PARTITIONS.get(self.region.partition("-")[0], "aws")

    @property
    def alert_topic(self) -> str:
        """ARN of the topic that is created for receivers with `emails`."""
        return f"arn:{self.partition}:sns:{self.region}:{self.account}:modelyard-{self.name}-alerts"

    @property
    def secrets_reader(self) -> str | None:
        """ARN of the role that an External Secrets of an existing cluster assumes; None if ours is installed,
        which has its identity from the cluster."""
        if not (self.secrets and self.cluster.has(EXTERNAL_SECRETS)):
            return None
        return f"arn:{self.partition}:iam::{self.account}:role/modelyard-{self.name}-secrets"

    @property
    def mounts_by_role(self) -> bool:
        """Whether the EFS driver mounts the cache as a role that the environment's stacks have made."""
        return self.cache.mounted_by_role and not self.cluster.has(EFS_DRIVER)

    @property
    def delivers_from_aws(self) -> bool:
        """Whether AWS is part of the delivery: your own Git repository with your own Argo CD needs nothing
        there."""
        return self.delivery == "flux" or bool(self.git and self.git.managed)

    @property
    def reports_checks(self) -> bool:
        """Whether the check jobs write reports to a bucket: only if Flux runs them."""
        return self.delivery == "flux" and self.checks.enabled

    def scrapes(self, component: str) -> bool:
        """Whether metrics of `component` are read by monitors of ours: not where a cluster has both it and
        its own Prometheus, which reads it already."""
        return self.monitoring.install or not self.cluster.has(component)

    def team_namespace(self, team: str) -> str:
        """Namespace of a team's own workloads."""
        return self.teams[team].namespace or team

    def share(self, team: str) -> dict[str, int] | None:
        """Accelerators by type that the models of `team` may hold; None: no limit."""
        return self.teams[team].accelerators if team in self.teams else None

    def pool_zones(self, pool: Pool) -> tuple[str, ...]:
        """Zones of `pool`; default: the environment's."""
        return pool.zones or self.availability_zones

    @field_validator("availability_zones")
    @classmethod
    def _distinct_zones(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if len(set(value)) != len(value):
            raise ValueError("must name each zone once")
        return value

    @model_validator(mode="after")
    def _zones_belong_to_region(self) -> Self:
        foreign = [zone for zone in self.availability_zones if not zone.startswith(self.region)]
        if foreign:
            raise ValueError(f"availabilityZones must lie in {self.region}, got {', '.join(foreign)}")
        for name, pool in self.pools.items():
            strange = set(pool.zones) - set(self.availability_zones)
            if strange:
                raise ValueError(
                    f"pools.{name}.zones must be among availabilityZones, got {', '.join(sorted(strange))}"
                )
        if self.network.vpc and (
            missing := set(self.availability_zones) - set(self.network.vpc.private_subnets)
        ):
            raise ValueError(
                f"network.vpc.privateSubnets must name a subnet for {', '.join(sorted(missing))}"
            )
        if existing := self.cluster.existing:
            self._fits(existing)
        if (self.delivery == "argocd") != (self.git is not None):
            raise ValueError("delivery 'argocd' and git go together")
        if self.delivery != "flux" and not self.cache.file_system_id:
            raise ValueError(
                f"delivery '{self.delivery}' needs cache.fileSystemId and cache.accessPointId: only Flux fills in the "
                "ids that the deploy creates"
            )
        if self.delivery != "flux" and self.monitoring.managed:
            raise ValueError(
                f"delivery '{self.delivery}' with monitoring.managed: only Flux fills its address in"
            )
        return self

    def _fits(self, existing: ExistingCluster) -> None:
        if self.network.vpc is None:
            raise ValueError("cluster.existing needs network.vpc: the VPC that the cluster is in")
        if self.network.endpoints != "none" and not {"endpoints", "cidr"} <= self.network.model_fields_set:
            raise ValueError(
                "interface endpoints answer for AWS in the whole VPC of cluster.existing, also to others, and admit "
                "network.cidr alone; write network.endpoints: none, or all or essential beside the VPC's cidr"
            )
        if self.network.prefix_delegation:
            raise ValueError(
                "network.prefixDelegation is a setting of a VPC CNI that Modelyard installs, and cluster.existing has its own"
            )
        if self.cache.file_system == "s3-files" and EFS_DRIVER in existing.has:
            raise ValueError(
                f"cache.fileSystem s3-files gives {EFS_DRIVER} a role, and cluster.existing has one of its own; use efs, or "
                "cache.fileSystemId and cache.accessPointId"
            )
        if (self.secrets_reader is None) == (existing.secrets_role is not None):
            raise ValueError(
                "cluster.existing.secretsRole is for secrets that an External Secrets reads which is not of Modelyard; leave "
                "it out"
                if existing.secrets_role
                else "cluster.existing needs secretsRole: the IAM role of its External Secrets, which is to read `secrets`"
            )

    @model_validator(mode="after")
    def _credentials_are_here(self) -> Self:
        cache = self.registry.pull_through if self.registry else None
        if cache is None:
            return self
        if self.region.partition("-")[0] in _PARTITIONS:
            raise ValueError(f"registry.pullThrough: Amazon ECR caches from no registry in {self.region}")
        for host, secret in cache.credentials.items():
            region, account = secret.split(":")[3:5]
            if (region, account) != (self.region, self.account):
                raise ValueError(
                    f"registry.pullThrough.credentials: the secret for {host} must be in {self.region} of account "
                    f"{self.account}, got {region} of {account}"
                )
        return self

    @model_validator(mode="after")
    def _namespaces_are_somebodys(self) -> Self:
        taken = {self.namespace: "namespace", self.monitoring.namespace: "monitoring.namespace"}
        for team in self.teams:
            name = self.team_namespace(team)
            if name in taken or name.startswith("kube-") or name == "default":
                raise ValueError(
                    f"teams.{team}: namespace {name} is taken by {taken.get(name, 'Kubernetes')}"
                )
            taken[name] = f"teams.{team}"
        return self
