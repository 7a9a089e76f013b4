"""Every check with its stable code. `docs/findings/CODE.md` is generated from here (`python -m
modelyard.findings`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Check:
    """One check: its title, why the problem matters (`cause`), and the fix."""

    code: str
    severity: Literal["error", "warning"]
    title: str
    cause: str
    fix: str


def _error(code: str, title: str, cause: str, fix: str) -> Check:
    return Check(code, "error", title, cause, fix)


def _warning(code: str, title: str, cause: str, fix: str) -> Check:
    return Check(code, "warning", title, cause, fix)


_CHECKS = (
    _error(
        "YAML001",
        "The file is not readable YAML",
        "The text is not valid YAML (or JSON, in questions to `estimate`), repeats a key, or is not a mapping at the top "
        "level. None of it can be trusted.",
        "Correct the text at the given position. Each key may appear once; indent with spaces. Files are regular UTF-8 files "
        "in YAML 1.2, without directives and without tags beyond JSON's types: a date is text, and text is quoted.",
    ),
    _error(
        "YAML002",
        "The file is larger or deeper than a file of its kind can be",
        "A few hundred bytes of aliases can expand to a billion values, and a file of a few megabytes can block a checker for "
        "minutes. So reading stops at limits far beyond any real file. Limits of a model, environment or pipeline file: 256 "
        "KiB, 10,000 lines, 6,000 keys and values after alias expansion, 64 levels of nested mappings and lists, 1,024 "
        "characters per key, 40 per number. A config.json or a price file: 4 MiB; the record of a checkpoint: 8 MiB; all JSON: "
        "200,000 values, the same nesting, integers of 40 digits; a file of CustomResourceDefinitions: 32 MiB. Only the first "
        "100 problems of a kind are listed per file.",
        "Remove what does not belong in the file, or split it: one model per file, and a large config.json by path "
        "(`model.config: config.json`) instead of inline.",
    ),
    _error(
        "SPEC001",
        "Unknown key",
        "An unknown key would otherwise be ignored silently, and the model would run without the setting.",
        "Use the suggested spelling, or remove the key. `modelyard schema` writes JSON Schema files for your editor.",
    ),
    _error(
        "SPEC002",
        "A required key is missing",
        "A model needs `model`, `accelerator` and `replicas`; an environment needs `account`, `region` and "
        "`availabilityZones`; a question to `estimate` needs a model or config and an accelerator. There are no sensible "
        "defaults for them.",
        "Add the key.",
    ),
    _error(
        "SPEC003",
        "A value is of the wrong kind or out of range",
        "Kubernetes, AWS or the engine would reject or misread the value, minutes into the deploy.",
        "Use one of the allowed values named in the message.",
    ),
    _error(
        "SPEC004",
        "Two files describe the same thing",
        "Names are identities: with two models of the same name, Deployments, Services and dashboards would overwrite each "
        "other; with both `dev.yaml` and `dev.yml`, it is unclear which one counts.",
        "Rename one of them: `name:` in the file, or the file itself.",
    ),
    _error(
        "SPEC005",
        "A model file lies in the wrong place",
        "`models/` contains model files, and a folder per team with models of its own: `models/search/x.yaml` belongs to team "
        "`search`. A file one level deeper would be ignored, and an owner that contradicts the folder leaves the responsible "
        "team unclear.",
        "Move the file, or leave `owner.team` out: the folder sets it.",
    ),
    _error(
        "ENV001",
        "A model file holds something of one account",
        "Model files are promoted unchanged from dev to prod. An account id or ARN ties the model to one account.",
        "Move it to the environment file, or refer to a logical secret or pool name.",
    ),
    _error(
        "ENV002",
        "The environment does not define what the model refers to",
        "A pool, secret or override that no file defines cannot be rendered.",
        "Define it in the environment file, or correct the name.",
    ),
    _error(
        "SEC001",
        "A secret value stands in a file",
        "Files end up in Git, in S3 and in the cluster's API, so a token in them becomes public sooner or later. Detected "
        "are: values with the shape of a credential, also in comments; values under names such as `DB_PASSWORD` or `api-key`; "
        "and values that look random. No message repeats them.",
        "Revoke the token, store the new one in AWS Secrets Manager with `modelyard secrets set`, and list it under the "
        "environment's `secrets`. Files refer to it by that name: `model.auth`, `access.apiKey`, `litellm.masterKey`, a "
        "gateway's `certificate`. Prefix a public random value with its kind, as in `sha256:…`.",
    ),
    _error(
        "HF001",
        "A gated repository without a token",
        "Hugging Face returns 401 or 403 for a gated repository, so the fetch job would fail after the nodes are paid for.",
        "Accept the licence on the repository's page and map `hf-token` under the environment's `secrets`.",
    ),
    _error(
        "MODEL001",
        "The model's architecture is not known",
        "Layers, heads and sizes decide whether the model fits. Modelyard never guesses them.",
        "Write what the message proposes: for a derivative of a known checkpoint `model: {uri: hf://ORG/NAME, architecture: "
        "BASE}`, where both have the same `config.json`. For all others `modelyard model add hf://ORG/NAME` fetches the "
        "`config.json`, and `model.config` names a file of your own. `modelyard catalog models` lists what is known.",
    ),
    _error(
        "MODEL005",
        "A repository's name has a number format that the model file does not have",
        "A name such as `Qwen3-8B-AWQ` says that the weights are quantized. With the facts of the 16-bit checkpoint, memory "
        "would be planned for four times the weights, and the engine's kernels would be checked for the wrong format. How a "
        "checkpoint is quantized stands in its `config.json`; a name is never taken for it.",
        "Name the checkpoint's own `config.json` in `model.config`, or in `model.architecture` a known checkpoint that is "
        "quantized in the same way. For GGUF name the file in `model.file`. Checkpoints of NVIDIA's ModelOpt may state their "
        "format in `hf_quant_config.json` alone: copy it into `config.json` as `quantization_config`. For 16-bit weights "
        "that the engine quantizes at load, `engine.quantization` says so.",
    ),
    _error(
        "MODEL002",
        "A config.json does not say what the model is made of",
        "A field that determines memory is missing, or the model class or the quantization is unknown. Memory is computed "
        "from these and never guessed.",
        "Use the checkpoint's complete config.json. The message lists the known classes or quantization methods.",
    ),
    _warning(
        "MODEL004",
        "A family of models whose memory was never measured",
        "The layout of the family is known and its parameters were counted, but the memory model was never checked against a "
        "start-up log of it. The prediction may be off by more than the figures of `make accuracy`.",
        "Leave headroom, and compare the first start-up's log with `modelyard explain MODEL` before production.",
    ),
    _warning(
        "MODEL006",
        "A model file states another revision than the record of its checkpoint",
        "Memory is computed from the record, and the engine loads what the file states. Between two revisions the config.json "
        "and the weights may differ.",
        "Leave `model.revision` out, so that the recorded commit is served, or record the other revision with `modelyard model "
        "add URI --revision REVISION`.",
    ),
    _warning(
        "MODEL003",
        "The repository publishes another number of parameters",
        "Weights are computed from config.json. If the checkpoint has over 1 % more or fewer parameters, then the formula of "
        "the model's class is wrong, or some of the repository's files belong to something else, and the memory figures may "
        "be wrong.",
        "Compare with the engine's start-up log, and leave the difference as headroom.",
    ),
    _error(
        "ENG001",
        "No engine serves this model on this accelerator",
        "Engines support certain accelerators and architectures only; the server would exit at start-up.",
        "Choose another accelerator or engine as the message says.",
    ),
    _error(
        "VLLM001",
        "The engine release does not know this flag, or not this value",
        "vLLM exits with code 2 on an unknown flag, and the pod crash-loops. Flags come and go between releases.",
        "Use the replacement named, or remove the flag.",
    ),
    _error(
        "VLLM002",
        "The flag belongs to the plan",
        "Model, lengths, parallelism and ports are derived from the model file once. A second value would contradict the "
        "memory calculation or the probes.",
        "Set the field of the model file that the message names.",
    ),
    _error(
        "HW001",
        "Unknown accelerator",
        "The name is not in the dated catalogue, so neither memory nor price is known.",
        "Use a name from `modelyard catalog accelerators`.",
    ),
    _error(
        "FIT001",
        "The weights do not fit",
        "Weights, activations and overhead alone exceed the accelerator's memory budget; there is no room for a KV cache.",
        "Use more accelerators, a larger one, or a quantized checkpoint.",
    ),
    _error(
        "KV001",
        "The context does not fit the KV cache",
        "vLLM refuses to start when one request of `maxModelLen` tokens needs more KV cache than is left after the weights.",
        "Use the length that fits, fp8 KV cache, more accelerators or a larger one; the message has the numbers.",
    ),
    _warning(
        "KV002",
        "A full batch preempts itself",
        "`maxNumSeqs` admits more sequences than the KV cache can hold at 512 tokens each. The engine then preempts sequences "
        "and recomputes them, and latency rises with load.",
        "Lower `engine.maxNumSeqs` to the number named, or make the cache larger: fp8, more accelerators, a higher "
        "`gpuMemoryUtilization`.",
    ),
    _warning(
        "IMG001",
        "Images can be larger than a prompt",
        "A vision model turns an image into prompt tokens. An image with more tokens than the longest prompt is rejected with "
        "a client error, even if its file is small.",
        "Raise maxModelLen, or limit the pixels with mm-processor-kwargs, which also limits the encoder's memory.",
    ),
    _error(
        "BATCH001",
        "A batch smaller than its sequences",
        "vLLM stops at start-up if maxNumBatchedTokens is below maxNumSeqs: every running sequence needs one token per step. "
        "If the file omits maxNumSeqs, it is derived from maxNumBatchedTokens. An encoder (embeddings, reranking) reads a "
        "text in one pass, so its maxModelLen must not exceed maxNumBatchedTokens either.",
        "Raise maxNumBatchedTokens, lower maxNumSeqs or maxModelLen, or leave them out.",
    ),
    _error(
        "UTIL001",
        "The utilization leaves no room outside the budget",
        "The CUDA context, collective buffers and, before vLLM 0.20, captured graphs are outside of total × "
        "gpuMemoryUtilization. If they do not fit, the engine starts, fills the KV cache and then runs out of memory.",
        "Lower gpuMemoryUtilization to the figure in the message.",
    ),
    _error(
        "LEN001",
        "The length exceeds what the model was trained for",
        "vLLM refuses a `maxModelLen` above `max_position_embeddings`.",
        "Lower `engine.maxModelLen`, or leave it out.",
    ),
    _error(
        "TP001",
        "The model cannot be split over this many accelerators",
        "Tensor parallelism needs attention heads, KV heads and layer widths that divide evenly.",
        "Use one of the counts named in the message.",
    ),
    _error(
        "GPU001",
        "The accelerator is too old for the number format",
        "bfloat16 needs compute capability 8.0, and each quantization has its own minimum.",
        "Use a newer accelerator, float16, or another quantization.",
    ),
    _error(
        "CAP002",
        "Models can ask for more accelerators than the pool may hold",
        "When a NodePool reaches its limit, pods stay Pending with a message that looks like missing capacity. A limit counts "
        "whole nodes, and running models are not moved: pods on several half-empty nodes leave no room for a pod that needs a "
        "whole node. At the limit in the message every replica fits, however they are packed.",
        "Raise the pool's `limit` to that number, lower the models' maximum replicas, or give models that need whole nodes "
        "their own pool.",
    ),
    _error(
        "CAP003",
        "No instance type in the pool admits the pod",
        "The pod would stay Pending forever: accelerators, CPU, memory or disk do not suffice after the platform's "
        "DaemonSets, or Karpenter cannot launch the type at all because of its region, capacity type or price, or because one "
        "node of it exceeds the pool's limit.",
        "Widen the pool's `instanceTypes`, choose another pool, or change the accelerator count; the message names the "
        "nearest miss.",
    ),
    _warning(
        "CAP001",
        "The pool depends on a single offering",
        "One instance type, in one zone, of one capacity type: when EC2 has none, nothing starts.",
        "Allow more types, zones or capacity types.",
    ),
    _warning(
        "CAP004",
        "Accelerators are paid for and not used",
        "The pod uses part of a node and nothing else uses the rest.",
        "Use a count that divides the node, or another instance size.",
    ),
    _warning(
        "CAP006",
        "The instance type has no public on-demand price",
        "Karpenter does not launch a type without a price; it starts only from a reservation or capacity block.",
        "Buy the capacity and list its `reservations` with capacity `reserved`, or state your on-demand price under `prices`.",
    ),
    _warning(
        "CAP007",
        "Spot capacity for a model that loads slowly",
        "EC2 gives two minutes' notice. A model that takes longer to load is unavailable in between, and drains must be "
        "short.",
        "Use on-demand, or accept the outage in a relaxed environment.",
    ),
    _warning(
        "CAP008",
        "Part of the pool's limit can never be used",
        "A limit counts whole nodes. The remainder below the next whole node can never be used.",
        "Use a multiple of the node's accelerators.",
    ),
    _warning(
        "CAP010",
        "The pool's capacity ends",
        "All reservations of the pool end and nothing else may be launched: after that, its models stay Pending forever. The "
        "nodes of a Capacity Block are drained forty minutes before its end.",
        "Add a capacity type or a reservation that starts before then, or plan to move the models and acknowledge the "
        "finding.",
    ),
    _error(
        "CAP011",
        "A static pool is larger than its limit",
        "Static nodes run whether models need them or not. Quotas and costs are computed from the limit, so they would miss "
        "nodes beyond it.",
        "Raise the limit, or lower `nodes`.",
    ),
    _error(
        "CAP012",
        "Two pools state different prices for a type",
        "Karpenter has one price per instance type, and uses it to choose between types.",
        "State the same price in both pools.",
    ),
    _error(
        "S3001",
        "No identity may read the weights' bucket",
        "Model servers stream with one identity, which can read only the buckets that the environment names. Any other bucket "
        "denies access, and the server exits at start-up.",
        "Name the bucket under `cache.readBuckets`, or use the one that `cache.weightsBucket` creates.",
    ),
    _error(
        "NAME001",
        "Two models have the same name at the gateway",
        "LiteLLM routes by name: the model's own, its `servedNames` and its adapters. Where two models share one, it answers "
        "with either of them in turn.",
        "Give one of them another name.",
    ),
    _warning(
        "CACHE001",
        "The model cache lives in one zone",
        "A Lustre file system is in one zone: if that zone fails, no model starts anywhere, and nodes in other zones pay for "
        "cross-zone traffic.",
        "Use `efs`, or keep the pools in that zone and acknowledge the finding.",
    ),
    _error(
        "TEAM001",
        "A team's models can hold more accelerators than it was granted",
        "At maximum replicas, the models that the team owns exceed its share and take capacity that others rely on.",
        "Lower the models' maximum replicas, or raise the grant.",
    ),
    _warning(
        "PAGE001",
        "Alerts fire, and nobody is told",
        "Alertmanager's default configuration sends everything nowhere. Where policy is strict, somebody depends on the models, "
        "and would learn of an outage from their users. A receiver with `teams` hears of these teams' models alone: not of "
        "nodes, GPUs, deliveries and secrets.",
        "Name a receiver without `teams` under `monitoring.receivers`: an SNS topic, a Slack channel or a PagerDuty service. "
        "Where alerts are routed elsewhere, such as in managed Grafana, acknowledge the finding and say so.",
    ),
    _error(
        "REG001",
        "Something is pulled past the environment's registry",
        "The environment names a mirror or a cache, for example because its nodes reach nothing else, or because others limit "
        "pulls. An image of another registry works until it does not: on the next new node. Amazon ECR cannot cache every "
        "registry, nor charts of an https:// index.",
        "Name a mirror for the registry, push charts to `registry.charts`, or admit the host under `registry.direct`.",
    ),
    _warning(
        "REG002",
        "New nodes depend on Docker Hub's limits",
        "Docker Hub limits pulls without an account by address, and all nodes of a VPC share the NAT gateway's. A node that is "
        "refused has ImagePullBackOff while its accelerators are billed, most likely when many start at once.",
        "Set `registry` in the environment; or acknowledge the finding where nodes are few.",
    ),
    _error(
        "CLUSTER001",
        "A component of the existing cluster is too old",
        "Modelyard leaves alone what `cluster.existing.has` names, and renders objects for it. A version that does not know a "
        "field drops it or refuses the object, and one that the cluster's Kubernetes has left behind does not run.",
        "Upgrade the component where it is managed, then correct its version in the file. `modelyard doctor` compares the "
        "versions with the cluster's.",
    ),
    _error(
        "CLUSTER003",
        "The cluster would refuse an object",
        "Its API server was asked for a dry run (`validate --context`), with its own defaulting, schemas, rules, admission and "
        "Pod Security, and would not keep the object or the pod that a controller makes of it. Delivery would stop there, or "
        "no pod would ever come.",
        "Do as the server says: correct the patch or the chart of your own that made the object, install the version of the "
        "component that knows it, or ask the owner of the policy.",
    ),
    _warning(
        "CLUSTER002",
        "A setting depends on a feature gate of somebody else's Karpenter",
        "The Karpenter that Modelyard installs has the gates that the environment's settings need. One that is there already "
        "(`cluster.existing.has`) has those that its owner has turned on: without NodeOverlay a stated price is ignored and the "
        "type is never launched, without StaticCapacity a pool with `nodes` has none, without NodeRepair a broken node stays.",
        "Turn the gate on in the values of its chart (`settings.featureGates`), or do without the setting; acknowledge the "
        "finding once the gate is on.",
    ),
    _warning(
        "TEAM002",
        "The model's owner is not a team of the environment",
        "Nobody has access on the owner's behalf, and no share limits its models.",
        "Add the team to the environment, or correct `owner.team`.",
    ),
    _warning(
        "CAP009",
        "The pool's zones may not offer the instance type",
        "EC2 offers some types only in some zones of a region, and publishes these by zone ID (`use2-az1`). The ID of "
        "`us-east-2a` differs between accounts, so a pool in few zones may have none that offers the type.",
        "Compare zone IDs with `aws ec2 describe-availability-zones`, add zones, or acknowledge the finding with the result.",
    ),
    _warning(
        "AMI001",
        "The AMI is not pinned",
        "With `@latest`, every node is replaced, untested, when AWS publishes an image.",
        "Pin a release such as `al2023@v20260714` and promote it through dev, staging and prod.",
    ),
    _warning(
        "AVAIL001",
        "One replica is an outage at every disruption",
        "Node repair, AMI updates and rollouts stop the only replica; loading takes minutes.",
        "Use two replicas or more, or state `availability: single`.",
    ),
    _error(
        "ROLL001",
        "The rollout would deadlock",
        "`surge` starts the new pod before the old one stops, but the pool's limit leaves no room for another replica, "
        "counted in whole nodes with every model at maximum replicas. The new pod would wait for accelerators that the old "
        "pod holds.",
        "Use `rollout: {strategy: in-place}` or `auto`, or raise the pool's limit to the number in the message.",
    ),
    _warning(
        "ROLL002",
        "The rollout interrupts the endpoint",
        "With one replica and no room for another, the old pod stops before the new one has loaded.",
        "Raise the pool's limit to the number in the message, or run two replicas.",
    ),
    _warning(
        "QUOTA001",
        "The account's vCPU quota is smaller than what the models can ask for",
        "EC2 returns VcpuLimitExceeded and pods stay Pending until the quota is raised, which takes days.",
        "Request the increase in Service Quotas, or lower replicas.",
    ),
    _warning(
        "LOAD001",
        "The start-up budget is below the estimate",
        "The startup probe would repeatedly kill a model that is still loading.",
        "Raise `startup.budget`, or leave it on `auto`.",
    ),
    _warning(
        "OTEL001",
        "Traces are asked for and not sent",
        "The image lacks OpenTelemetry or sends no spans, or the environment names no collector. With the flag, the server "
        "would fail at start-up or lose the spans silently.",
        "Name `monitoring.otlpEndpoint` in the environment, use an engine release whose image sends traces, or set "
        "`observability.tracing` to false.",
    ),
    _warning(
        "NET002",
        "The engine's image does not use the fabric",
        "Between nodes NCCL reaches EFA through libfabric and aws-ofi-nccl. An image without them uses TCP, at a fraction of the "
        "speed, and without an error. No published image of vLLM has them (vllm-project/vllm#55635).",
        "Build an image with the EFA installer on top of the engine's, and set it with a patch of the workload; or acknowledge "
        "the finding where TCP is fast enough.",
    ),
    _error(
        "NET001",
        "A replica over several nodes without a fabric",
        "Pipeline stages and experts on other nodes exchange activations for every token. Without EFA they use TCP at a "
        "hundredth of the speed, and NCCL may fail to initialise.",
        "Set `fabric: efa` for a pool of types with EFA interfaces, or request no more accelerators than one node has.",
    ),
    _error(
        "SEC004",
        "An exposed endpoint lacks what protects it",
        "Anyone who reaches the load balancer reaches the model. A public endpoint needs a gateway with TLS, allowed networks "
        "and an API key; an internal endpoint needs the gateway.",
        "Add the gateway to the environment, `access.apiKey` to the model, or set `access.exposure: cluster`.",
    ),
    _error(
        "HPA001",
        "The autoscaler's target cannot be reached",
        "A target beyond the metric's range never adds a replica, and a schedule outside of the replica range never takes "
        "effect. There is no error: the endpoint is just slow.",
        "Use a target within the range in the message.",
    ),
    _error(
        "ZERO001",
        "Nothing wakes the model",
        "A model with no replica has no queue and no metrics, so the autoscaler never sees the request that should start it.",
        "Set `scaling.schedule`, or `scaling.activator: gateway` if the environment has a LiteLLM gateway, or keep one "
        "replica.",
    ),
    _error(
        "SEC003",
        "The engine release has a known hole",
        "A security advisory lists this version: remote code execution, or requests that crash the server. The release table "
        "links the advisory.",
        "Use the release in the message.",
    ),
    _warning(
        "SEC005",
        "An endpoint that changes the server is open",
        "vLLM protects only `/v1` with the API key. Sleep mode and runtime adapter loading add endpoints that anyone who can "
        "reach the pod can call.",
        "Leave the setting out, or acknowledge the finding with the reason and who can reach the pod.",
    ),
    _error(
        "SEC006",
        "A principal both administers the cluster and may only read it",
        "`cluster.admins` may do everything, `cluster.viewers` may read everything but secrets. EKS has one access entry for "
        "each principal, so one of the two would be ignored without a word: the wider one, or the one that was meant. A "
        "principal of one or several teams may also be an admin or a viewer; those permissions add up.",
        "Remove the principal from `cluster.admins` or from `cluster.viewers`.",
    ),
    _error(
        "K8S001",
        "A rendered object breaks a rule",
        "A patch broke a guarantee: a selector that must match, a security setting or a required field; or it set an amount "
        "of memory, CPU or devices that is not a valid Kubernetes quantity.",
        "Change the patch; the message names the object and the rule.",
    ),
    _error(
        "K8S002",
        "The API server would refuse an object",
        "A field is unknown, missing or of another type in the API schema of the environment's Kubernetes version; or a custom "
        "resource does not meet the definition (schema or CEL rule) in the folder of `--crds`.",
        "Correct the patch or the chart that the message names. For custom resources, install the releases that Modelyard "
        "renders for.",
    ),
    _warning(
        "CHECK001",
        "A point of the production checklist fails",
        "Memory, instance, quantization, length, parallelism, shared memory, metrics, scaling, caches, drain and access are "
        "checked on the rendered objects. A patch or a missing setting broke what the plan guarantees.",
        "The message names the point and the actual value; `modelyard checklist` shows all points.",
    ),
    _warning(
        "TARGET001",
        "The target leaves the model out",
        "Not every target can run every model: Docker Compose has a single machine, KServe's LLMInferenceService starts only "
        "vLLM, and a simulator cannot run batch files. The other models are still rendered.",
        "Render the model for Kubernetes, which can run all models; the message says what prevents this target.",
    ),
)

CHECKS: dict[str, Check] = {check.code: check for check in _CHECKS}


def check(code: str) -> Check:
    """The check with this code.

    Raises:
        KeyError: unknown code.
    """
    return CHECKS[code]
