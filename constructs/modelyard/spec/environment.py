"""`environments/NAME.yaml`: the only place for accounts, regions, zones, pools, secret names and what may differ."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from modelyard.spec.document import DNS_LABEL, Document, ObjectName, SecretName
from modelyard.spec.operation import Access, AllowedClients, Availability, Replicas, Scaling

CapacityType = Literal["reserved", "on-demand", "spot"]
RoleArn = Annotated[str, Field(pattern=r"^arn:aws[a-z-]*:iam::\d{12}:(role|user)/.+$")]


class Network(Document):
    """The VPC that Modelyard creates."""

    cidr: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+\.\d+/(1[6-9]|2[0-2])$")] = "10.64.0.0/16"
    """IPv4 range of the VPC, /16 to /22."""
    nat_gateways: Annotated[int, Field(ge=1)] = 1
    """NAT gateways; one per zone survives the loss of a zone, one alone is cheaper."""
    interface_endpoints: bool = True
    """Private endpoints for the AWS APIs that nodes call, so that pulls and tokens do not cross the NAT."""


class SystemNodes(Document):
    """The managed node group for everything that is not a model: controllers, monitoring, Karpenter itself."""

    instance_types: tuple[str, ...] = ("m7g.large", "m6g.large")
    """Graviton types, tried in order."""
    count: Annotated[int, Field(ge=2, le=20)] = 2
    """Nodes, spread over the zones; two are the least, because Karpenter runs two replicas on two nodes."""


AmiAlias = Annotated[str, Field(pattern=r"^(al2023|bottlerocket)@(latest|v[0-9][0-9.]*)$")]


class GeneralNodes(Document):
    """Graviton nodes that Karpenter adds for what the system nodes do not hold, such as downloads of weights."""

    vcpu_limit: Annotated[int, Field(ge=0, le=10000)] = 32
    """Most vCPU at once; 0 for none."""
    ami: AmiAlias = "al2023@v20260714"
    """AMI alias, pinned to a release."""


class Cluster(Document):
    """The Amazon EKS cluster."""

    name: ObjectName | None = None
    """Default: `modelyard-` and the environment's name."""
    version: Literal["1.35", "1.36"] = "1.36"
    """Kubernetes minor version, in EKS standard support."""
    public_access_cidrs: tuple[Annotated[str, Field(pattern=r"^[0-9./]+$")], ...] = ()
    """Networks that may reach the API server over the internet; none means a private endpoint alone."""
    admins: tuple[RoleArn, ...] = ()
    """IAM principals with cluster administration."""
    viewers: tuple[RoleArn, ...] = ()
    """IAM principals that may read everything but secrets."""
    system_nodes: SystemNodes = SystemNodes()
    general_nodes: GeneralNodes = GeneralNodes()
    log_retention_days: Literal[7, 14, 30, 60, 90, 180, 365] = 90
    """Retention of the control-plane and VPC flow logs."""

    @field_validator("public_access_cidrs")
    @classmethod
    def _not_the_world(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if "0.0.0.0/0" in value:
            raise ValueError("must not contain 0.0.0.0/0; name the networks of your offices or your VPN")
        return value


class Pool(Document):
    """A Karpenter NodePool with one accelerator."""

    accelerator: str
    """Accelerator of every node in the pool, such as l40s, h100 or trn2 (`modelyard catalog` lists them)."""
    instance_types: tuple[str, ...] = ()
    """EC2 types to choose from; default: every type with this accelerator that Karpenter can launch."""
    capacity: Annotated[tuple[CapacityType, ...], Field(min_length=1)] = ("on-demand",)
    """Capacity types, cheapest wins; `reserved` needs `reservations`."""
    reservations: tuple[Annotated[str, Field(pattern=r"^cr-[0-9a-f]{8,17}$")], ...] = ()
    """On-demand capacity reservations or purchased capacity blocks (cr-…)."""
    zones: tuple[str, ...] = ()
    """Availability zones of the pool; default: all zones of the environment."""
    fabric: Literal["none", "efa"] = "none"
    """`efa` attaches EFA interfaces, which replicas over several nodes need."""
    prices: dict[str, dict[CapacityType, Annotated[float, Field(ge=0, allow_inf_nan=False)]]] = Field(
        default_factory=dict
    )
    """US dollars an hour that your account really pays, by type of `instanceTypes` and capacity type, such as
    `p5.48xlarge: {reserved: 34.6}`: discounts, spot, Capacity Blocks; default: the public on-demand price."""
    limit: Annotated[int, Field(ge=1)]
    """Most accelerators (GPUs, or Trainium chips) that the pool may hold at once."""
    ami: AmiAlias = "al2023@v20260714"
    """AMI alias, pinned to a release; `@latest` replaces nodes whenever AWS publishes an image."""
    root_volume_gib: Annotated[int, Field(ge=100, le=16000)] = 200
    """Root volume in GiB: container images, logs and emptyDirs that are not memory."""

    @model_validator(mode="after")
    def _reserved_needs_reservations(self) -> Self:
        if ("reserved" in self.capacity) != bool(self.reservations):
            raise ValueError(
                "capacity 'reserved' and reservations go together: without the first a paid reservation stays "
                "unused, without the second nothing can be launched"
            )
        return self

    @model_validator(mode="after")
    def _prices_are_used(self) -> Self:
        for instance_type, prices in self.prices.items():
            if instance_type not in self.instance_types:
                raise ValueError(f"prices.{instance_type}: name the type under instanceTypes as well")
            if unused := sorted(set(prices) - set(self.capacity)):
                raise ValueError(
                    f"prices.{instance_type}: {', '.join(unused)} is not among the pool's capacity"
                )
        return self


class Monitoring(Document):
    """How the environment's Prometheus finds monitors."""

    enabled: bool = True
    """Render ServiceMonitors; needs the Prometheus Operator's CRDs in the cluster."""
    namespace: Annotated[str, Field(pattern=DNS_LABEL)] = "monitoring"
    """Namespace of Prometheus: the only one besides `access.allowFrom` that may reach a model's port."""
    labels: dict[str, str] = Field(default_factory=lambda: {"release": "kube-prometheus-stack"})
    """Labels that Prometheus' serviceMonitorSelector asks for."""
    prometheus: Annotated[str, Field(pattern=r"^https?://.+")] | None = None
    """Address of Prometheus for autoscaling; default: the service of kube-prometheus-stack in `namespace`."""
    install: bool = True
    """Install kube-prometheus-stack; false where the cluster has a Prometheus Operator already."""
    otlp_endpoint: (
        Annotated[str, Field(pattern=r"^https?://[a-z0-9-]+\.[a-z0-9-]+(\.svc[a-z0-9.-]*)?:\d{2,5}(/.*)?$")]
        | None
    ) = None
    """OpenTelemetry collector for models with `observability.tracing`: `http://SERVICE.NAMESPACE:4317`, inside the cluster."""
    runbooks: Annotated[str, Field(pattern=r"^https?://.+[^/]$")] | None = None
    """Where the pages of `docs/runbooks` can be read, without the last slash; alerts then link `RUNBOOKS/ALERT.md`."""

    @property
    def prometheus_url(self) -> str:
        return self.prometheus or f"http://kube-prometheus-stack-prometheus.{self.namespace}:9090"


class Cache(Document):
    """The shared model cache on EFS."""

    size_gib: Annotated[int, Field(ge=10)] = 2048
    """Capacity stated in the claim; EFS itself grows and bills by use."""
    file_system_id: Annotated[str, Field(pattern=r"^fs-[0-9a-f]{8,17}$")] | None = None
    """An EFS file system of your own; default: Modelyard creates one."""
    access_point_id: Annotated[str, Field(pattern=r"^fsap-[0-9a-f]{8,17}$")] | None = None
    """Its access point with uid and gid 2000; goes together with `fileSystemId`."""

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.file_system_id is None) != (self.access_point_id is None):
            raise ValueError("fileSystemId and accessPointId go together")
        return self


Cidr = Annotated[str, Field(pattern=r"^\d{1,3}(\.\d{1,3}){3}/\d{1,2}$")]


class Gateway(Document):
    """A way to models from outside the cluster: a load balancer with TLS, by Gateway API."""

    domain: Annotated[
        str, Field(pattern=r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+$")
    ]
    """Models answer at `NAME.DOMAIN`; point a wildcard record at the load balancer."""
    certificate: SecretName
    """Logical name of the secret with the domain's certificate: JSON with the keys `tls.crt` and `tls.key`."""
    cidrs: tuple[Cidr, ...] = ()
    """Networks that may connect; none means everybody who reaches the load balancer."""
    class_name: Annotated[str, Field(pattern=DNS_LABEL)] = "istio"
    """GatewayClass; Istio is installed for the default."""


class Gateways(Document):
    """The environment's gateways, by who reaches them."""

    internal: Gateway | None = None
    """From the VPC and the networks connected to it."""
    public: Gateway | None = None
    """From the internet; needs `cidrs`, and an API key of every model behind it."""

    def of(self, exposure: str) -> Gateway | None:
        """The gateway for an exposure; None for `cluster`, and where there is none."""
        return {"internal": self.internal, "public": self.public}.get(exposure)

    @model_validator(mode="after")
    def _public_names_its_networks(self) -> Self:
        if self.public and not self.public.cidrs:
            raise ValueError(
                "public needs cidrs: name the networks that may connect, 0.0.0.0/0 for everybody"
            )
        return self


class LiteLlm(Document):
    """LiteLLM in front of all models: one OpenAI address, model names from the catalogue, keys of its own."""

    master_key: SecretName
    """Logical name of the secret with the key that clients send."""
    replicas: Annotated[int, Field(ge=1, le=50)] = 2
    """Copies of the proxy."""
    allow_from: tuple[AllowedClients, ...] = ()
    """Pods that may call it; default: every pod of the models' namespace."""
    exposure: Literal["cluster", "internal", "public"] = "cluster"
    """As `access.exposure` of a model; it answers at `llm.DOMAIN`."""


class Checks(Document):
    """Jobs that ask every model after it was delivered; the delivery has failed where one of them does."""

    smoke: bool = True
    """Everything that `modelyard smoke` checks."""
    bench: bool = False
    """The load of `modelyard bench`, which takes minutes and the model's whole capacity."""

    @property
    def enabled(self) -> bool:
        return self.smoke or self.bench


class GitRepository(Document):
    """Where Argo CD reads the rendered tree."""

    url: Annotated[str, Field(pattern=r"^(https://|ssh://|git@).+")]
    revision: str = "main"
    path: str = "dist"
    """Folder that holds `ENVIRONMENT/`."""


class Override(Document):
    """What may differ between environments, and nothing else: promotion stays meaningful."""

    replicas: Replicas | None = None
    scaling: Scaling | None = None
    pool: str | None = None
    access: Access | None = None
    availability: Availability | None = None


class Acknowledgement(Document):
    """A warning that somebody has read and accepted."""

    code: Annotated[str, Field(pattern=r"^[A-Z0-9]+$")]
    """The finding's code."""
    reason: Annotated[str, Field(min_length=10)]
    """Why it is acceptable here."""
    model: ObjectName | None = None
    """Only for this model; default: everywhere in the environment."""


class Environment(Document):
    """One account and region in which models run."""

    name: Annotated[str, Field(pattern=DNS_LABEL, max_length=20)]
    """Default: the file's name."""
    account: Annotated[str, Field(pattern=r"^\d{12}$")]
    """AWS account id; quote it, or YAML reads a number."""
    region: Annotated[str, Field(pattern=r"^[a-z]{2}(-[a-z]+)+-\d$")]
    availability_zones: Annotated[tuple[str, ...], Field(min_length=2, max_length=3)]
    """Two or three zones of the region, by name; never looked up."""
    policy: Literal["relaxed", "strict"] = "relaxed"
    """`strict` turns every warning into an error; use it for production."""
    removal: Literal["retain", "destroy"] = "retain"
    """What `cdk destroy` does with data (caches, logs, keys, secrets); `retain` also protects the cluster."""
    network: Network = Network()
    cluster: Cluster = Cluster()
    pools: dict[ObjectName, Pool] = Field(default_factory=dict)
    """Accelerator pools by name."""
    secrets: dict[SecretName, Annotated[str, Field(pattern=r"^[A-Za-z0-9/_+=.@-]{1,512}$")]] = Field(
        default_factory=dict
    )
    """Logical secret name to the name of a secret in AWS Secrets Manager; names only, never values."""
    cache: Cache = Cache()
    monitoring: Monitoring = Monitoring()
    gateways: Gateways = Gateways()
    """Load balancers for models that are reached from outside the cluster."""
    litellm: LiteLlm | None = None
    """One OpenAI endpoint in front of all models."""
    checks: Checks = Checks()
    delivery: Literal["flux", "argocd", "none"] = "flux"
    """Who applies the rendered tree: Flux from S3, Argo CD from Git, or you with `kubectl apply -k`."""
    git: GitRepository | None = None
    """Repository for `delivery: argocd`."""
    namespace: Annotated[str, Field(pattern=DNS_LABEL, max_length=63)] = "models"
    """Namespace of the model servers."""
    quotas: dict[str, Annotated[int, Field(ge=0)]] = Field(default_factory=dict)
    """EC2 vCPU quotas of the account by Service Quotas code, such as `L-DB2E81BA: 384`; the plan compares them."""
    tags: dict[str, str] = Field(default_factory=dict)
    """Tags on every AWS resource."""
    acknowledge: tuple[Acknowledgement, ...] = ()
    """Warnings accepted here, each with its reason; errors cannot be accepted."""
    overrides: dict[ObjectName, Override] = Field(default_factory=dict)
    """Per model: what this environment runs differently."""

    @property
    def cluster_name(self) -> str:
        return self.cluster.name or f"modelyard-{self.name}"

    @property
    def strict(self) -> bool:
        return self.policy == "strict"

    def pool_zones(self, pool: Pool) -> tuple[str, ...]:
        """Zones of `pool`: its own, or the environment's."""
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
        if (self.delivery == "argocd") != (self.git is not None):
            raise ValueError("delivery 'argocd' and git go together")
        if self.delivery != "flux" and not self.cache.file_system_id:
            raise ValueError(
                f"delivery '{self.delivery}' needs cache.fileSystemId and cache.accessPointId: only Flux fills in the "
                "ids that the deploy creates"
            )
        return self
