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
        "The text breaks YAML's grammar (or that of JSON, in questions to `estimate`), repeats a key, or is not a mapping "
        "at its top. Nothing in it can be trusted.",
        "Correct the text at the position named. Keys stand once; indentation uses spaces. Files are regular files in UTF-8, "
        "YAML 1.2 without directives and without tags beyond JSON's types: a date is text, and text is quoted.",
    ),
    _error(
        "YAML002",
        "The file is larger or deeper than a file of its kind can be",
        "A few hundred bytes of aliases can stand for a billion values, and a file of some megabytes can hold a checker up for "
        "minutes. Reading therefore stops at limits far beyond any real file. A model, environment or pipeline file has at most "
        "256 KiB, 10,000 lines, 6,000 keys and values (every alias counts as what it stands for), 64 "
        "mappings and lists within one another, "
        "keys of 1,024 characters, names of anchors and tags of 256, and numbers of 40. A config.json and a file of prices have "
        "at most 4 MiB, all JSON 200,000 values, the same depth and whole numbers of 40 digits; a file of "
        "CustomResourceDefinitions 32 MiB. Of one file the first 100 problems of a kind are listed.",
        "Take out what does not belong there, or divide the file: one model a file, and a large config.json by its path "
        "(`model.config: config.json`) instead of in the model file.",
    ),
    _error(
        "SPEC001",
        "Unknown key",
        "A key that the format does not have would otherwise be ignored in silence, and the model would run without it.",
        "Use the suggested spelling, or remove the key. `modelyard schema` writes JSON Schema files for your editor.",
    ),
    _error(
        "SPEC002",
        "A required key is missing",
        "A model needs `model`, `accelerator` and `replicas`; an environment needs `account`, `region` and "
        "`availabilityZones`; a question to `estimate` needs a model or config and an accelerator. No sensible value can "
        "be computed for them.",
        "Add the key.",
    ),
    _error(
        "SPEC003",
        "A value is of the wrong kind or out of range",
        "The value would be refused, or misread, by Kubernetes, AWS or the engine after minutes of waiting.",
        "Use one of the allowed values named in the message.",
    ),
    _error(
        "SPEC004",
        "Two files describe the same thing",
        "Names are identities: of two models with one name, Deployments, Services and dashboards would overwrite each other; of "
        "`dev.yaml` and `dev.yml`, nobody can say which one counts.",
        "Rename one of them: `name:` in the file, or the file itself.",
    ),
    _error(
        "SPEC005",
        "A model file lies in the wrong place",
        "`models/` holds model files, and a folder for each team that has its own: `models/search/x.yaml` belongs to team "
        "`search`. A file one level deeper would be overlooked, and an owner that contradicts the folder "
        "leaves open who answers.",
        "Move the file, or leave `owner.team` to its folder.",
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
        "Files end in Git, in S3 and in the cluster's API. A token in them is public sooner or later. "
        "Found are values with the shape "
        "of a credential, comments included, values under names such as `DB_PASSWORD` or `api-key`, and "
        "values that look drawn by "
        "chance. No message repeats them.",
        "Revoke the token, put the new one into AWS Secrets Manager with `modelyard secrets set`, and "
        "name it under the environment's "
        "`secrets`. Files refer to it by that name: `model.auth`, `access.apiKey`, `litellm.masterKey`, "
        "a gateway's `certificate`. "
        "A random value that is public passes with its kind in front of it, as in `sha256:…`.",
    ),
    _error(
        "HF001",
        "A gated repository without a token",
        "Hugging Face answers 401 or 403 for a gated repository, so the fetch job would fail after the nodes are paid for.",
        "Accept the licence on the repository's page and map `hf-token` under the environment's `secrets`.",
    ),
    _error(
        "MODEL001",
        "The model's architecture is not known",
        "Layers, heads and sizes decide whether the model fits. Modelyard never guesses them.",
        "Set `model.architecture` to a repository with the same `config.json` that `modelyard catalog models` lists.",
    ),
    _error(
        "MODEL002",
        "A config.json does not say what the model is made of",
        "A field that decides memory is missing, the class is one whose layers are not known, or the quantization is. "
        "Memory is computed from these and never guessed.",
        "Give the checkpoint's whole config.json. Classes and quantization methods that are known stand in the message.",
    ),
    _warning(
        "MODEL004",
        "A family of models whose memory was never measured",
        "The layout of the family is known and its parameters were counted, but no start-up log of it was held against "
        "the memory model. The prediction may be off by more than the figures of `make accuracy`.",
        "Leave room: compare the first start-up's log with `modelyard explain MODEL` before production.",
    ),
    _warning(
        "MODEL003",
        "The repository publishes another number of parameters",
        "Weights are computed from config.json. Where the checkpoint holds more or fewer numbers, by more than 1 %, the "
        "formula of the model's class is wrong, or files of the repository belong to something else, and so the memory "
        "may be wrong.",
        "Compare with what the engine prints at start-up, and leave a margin of the difference.",
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
        "vLLM exits with code 2 on a flag it does not know, and the pod crash-loops. Flags come and go between releases.",
        "Use the replacement named, or remove the flag.",
    ),
    _error(
        "VLLM002",
        "The flag belongs to the plan",
        "Model, lengths, parallelism and ports are derived from the model file once. A second value would contradict "
        "the memory arithmetic or the probes.",
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
        "`maxNumSeqs` admits more sequences than the KV cache can hold at 512 tokens each. The engine then throws "
        "sequences out of the batch and computes them again, and latency rises with load.",
        "Lower `engine.maxNumSeqs` to the number named, or make the cache larger: fp8, more accelerators, a higher "
        "`gpuMemoryUtilization`.",
    ),
    _warning(
        "IMG001",
        "Images can be larger than a prompt",
        "A vision model turns an image into tokens of the prompt. One whose tokens exceed the longest prompt is refused with "
        "an error to the client, though the file is small.",
        "Raise maxModelLen, or bound the pixels with mm-processor-kwargs, which also bounds the encoder's memory.",
    ),
    _error(
        "BATCH001",
        "A batch smaller than its sequences",
        "vLLM stops at start-up when maxNumBatchedTokens is below maxNumSeqs: every running sequence needs one token a step. "
        "Where the file leaves maxNumSeqs out, it follows from maxNumBatchedTokens. An encoder (embeddings, reranking) reads "
        "a text at once, so its maxModelLen must not exceed maxNumBatchedTokens either.",
        "Raise maxNumBatchedTokens, lower maxNumSeqs or maxModelLen, or leave them out.",
    ),
    _error(
        "UTIL001",
        "The utilization leaves no room outside the budget",
        "The CUDA context, buffers of collectives and, before vLLM 0.20, captured graphs lie outside "
        "total × gpuMemoryUtilization. Where they do not fit, the engine starts, fills the KV cache and then runs out of "
        "memory.",
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
        "bfloat16 needs compute capability 8.0, and each quantization has a minimum of its own.",
        "Use a newer accelerator, float16, or another quantization.",
    ),
    _error(
        "CAP002",
        "Models can ask for more accelerators than the pool may hold",
        "When a NodePool reaches its limit, pods stay Pending with a message that looks like missing capacity. A limit "
        "counts whole nodes, and running models are not moved: pods that leave parts of several nodes free leave no "
        "place for one that needs a whole node. The number named has a place for every replica, however they are packed.",
        "Raise the pool's `limit` to the number named, lower the models' maximum replicas, or give models that take "
        "whole nodes a pool of their own.",
    ),
    _error(
        "CAP003",
        "No instance type in the pool admits the pod",
        "The scheduler would leave the pod Pending for ever: accelerators, CPU, memory or disk do not suffice after the "
        "platform's own DaemonSets, or Karpenter cannot launch the type at all: for its region, capacity type or price, or "
        "because one node of it exceeds the pool's limit.",
        "Widen the pool's `instanceTypes`, choose another pool, or change the accelerator count; the nearest miss is named.",
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
        "The pod takes part of a node and nothing else fills the rest.",
        "Use a count that divides the node, or another instance size.",
    ),
    _warning(
        "CAP006",
        "The instance type has no public on-demand price",
        "Karpenter does not launch a type without a price; it starts only from a reservation or capacity block.",
        "Buy the capacity and list its `reservations` with capacity `reserved`, or state the price that you pay on demand "
        "under `prices`.",
    ),
    _warning(
        "CAP007",
        "Spot capacity for a model that loads slowly",
        "EC2 gives two minutes' notice. A model that takes longer to load is away in between, and drains must be short.",
        "Use on-demand, or accept the outage in a relaxed environment.",
    ),
    _warning(
        "CAP008",
        "Part of the pool's limit can never be used",
        "A limit counts whole nodes. What is left below the next whole node looks like room and is none.",
        "Use a multiple of the node's accelerators.",
    ),
    _warning(
        "CAP010",
        "The pool's capacity ends",
        "Every reservation of the pool ends and nothing else may be launched: from then on its models wait for nodes that "
        "never come. The nodes of a Capacity Block are drained forty minutes before its end.",
        "Add a capacity type or a reservation that begins before, or plan the models' move and acknowledge the finding.",
    ),
    _error(
        "CAP011",
        "A static pool is larger than its limit",
        "Static nodes are there whether models need them or not. What the limit does not count, quotas and costs do not "
        "count either.",
        "Raise the limit, or lower `nodes`.",
    ),
    _error(
        "CAP012",
        "Two pools state different prices for a type",
        "Karpenter knows one price of an instance type, and compares it with others when it chooses.",
        "State the same price in both pools.",
    ),
    _error(
        "S3001",
        "No identity may read the weights' bucket",
        "Model servers stream with one identity, which reads the buckets that the environment names. Every other bucket "
        "refuses them, and the server ends at start.",
        "Name the bucket under `cache.readBuckets`, or use the one that `cache.weightsBucket` creates.",
    ),
    _warning(
        "CACHE001",
        "The model cache lives in one zone",
        "A Lustre file system is in one zone: when that zone is away no model starts anywhere, and nodes elsewhere pay for "
        "traffic between zones.",
        "Use `efs`, or keep the pools in that zone and acknowledge the finding.",
    ),
    _error(
        "TEAM001",
        "A team's models can hold more accelerators than it was granted",
        "At their most replicas the models that the team owns exceed its share, and take capacity that others count on.",
        "Lower the models' largest number of replicas, or raise the grant.",
    ),
    _warning(
        "TEAM002",
        "The model's owner is not a team of the environment",
        "Nobody has access on behalf of the owner, and no share limits it.",
        "Add the team to the environment, or correct `owner.team`.",
    ),
    _warning(
        "CAP009",
        "The pool's zones may not offer the instance type",
        "EC2 offers some types in few zones of a region, which it names by id (`use2-az1`). Which of them is `us-east-2a` "
        "differs from account to account, so a pool in fewer zones may have none that offers the type.",
        "Compare ids with `aws ec2 describe-availability-zones`, add zones, or acknowledge the finding with what you saw.",
    ),
    _warning(
        "AMI001",
        "The AMI is not pinned",
        "`@latest` replaces every node when AWS publishes an image, untested.",
        "Pin a release such as `al2023@v20260714` and move it through dev, staging and prod.",
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
        "`surge` starts the new pod before the old one stops, but the pool's limit allows no further replica, counted in "
        "whole nodes while every model runs all its replicas. The new pod would wait for what the old one holds.",
        "Use `rollout: {strategy: in-place}` or `auto`, or raise the pool's limit to the number named.",
    ),
    _warning(
        "ROLL002",
        "The rollout interrupts the endpoint",
        "With one replica and no place for another, the old pod stops before the new one has loaded.",
        "Raise the pool's limit to the number named, or run two replicas.",
    ),
    _warning(
        "QUOTA001",
        "The account's vCPU quota is smaller than what the models can ask for",
        "EC2 answers VcpuLimitExceeded and pods stay Pending until the quota is raised, which takes days.",
        "Request the increase in Service Quotas, or lower replicas.",
    ),
    _warning(
        "LOAD001",
        "The start-up budget is below the estimate",
        "The startup probe would kill a model that is still loading, again and again.",
        "Raise `startup.budget`, or leave it on `auto`.",
    ),
    _warning(
        "OTEL001",
        "Traces are asked for and not sent",
        "The image lacks OpenTelemetry or sends no spans, or the environment names no collector. Passing the flag all the same "
        "would stop the server at its start, or lose the spans in silence.",
        "Name `monitoring.otlpEndpoint` in the environment, use an engine release whose image sends traces, or set "
        "`observability.tracing` to false.",
    ),
    _error(
        "NET001",
        "A replica over several nodes without a fabric",
        "Pipeline stages and experts on other nodes exchange activations for every token. Without EFA they go over TCP at a "
        "hundredth of the speed, and NCCL may not come up at all.",
        "Set `fabric: efa` for a pool of types with EFA interfaces, or ask for no more accelerators than one node has.",
    ),
    _error(
        "SEC004",
        "An exposed endpoint lacks what protects it",
        "Whoever reaches the load balancer reaches the model. A public endpoint needs a gateway with TLS, named networks and "
        "an API key; an internal one the gateway.",
        "Add the gateway to the environment, `access.apiKey` to the model, or set `access.exposure: cluster`.",
    ),
    _error(
        "HPA001",
        "The autoscaler's target cannot be reached",
        "A target beyond what the metric can show never adds a replica, and a schedule beyond the range of replicas never "
        "takes effect. Nobody is told: the endpoint is only slow.",
        "Use a target within the range that the message names.",
    ),
    _error(
        "ZERO001",
        "Nothing wakes the model",
        "A model with no replica has no queue and no metrics, so the autoscaler never sees the request that should start it.",
        "Give `scaling.schedule`, or `scaling.activator: gateway` where the environment has a LiteLLM gateway, or keep one "
        "replica.",
    ),
    _error(
        "SEC003",
        "The engine release has a known hole",
        "An advisory names this version: remote code, or requests that stop the server. The table of releases has the "
        "advisory.",
        "Use the release that the message names.",
    ),
    _warning(
        "SEC005",
        "An endpoint that changes the server is open",
        "vLLM guards only `/v1` with the API key. Sleep mode and loading of adapters at run time add endpoints that anybody "
        "who reaches the pod can call.",
        "Leave it out, or acknowledge the finding with the reason and who can reach the pod.",
    ),
    _error(
        "K8S001",
        "A rendered object breaks a rule",
        "A patch removed a guarantee: an immutable join, a security setting or a required field.",
        "Change the patch; the message names the object and the rule.",
    ),
    _error(
        "K8S002",
        "A custom resource does not meet its definition",
        "The API server of a cluster with these CustomResourceDefinitions refuses the object, CEL rules included.",
        "Install the releases that Modelyard renders for, or correct the patch; `--crds` names the definitions.",
    ),
    _warning(
        "CHECK001",
        "A point of the production checklist fails",
        "Memory, instance, quantization, length, parallelism, shared memory, metrics, scaling, caches, drain and access are "
        "each read off the objects that would be rendered. A patch, or a setting that is missing, takes away what the plan "
        "promises.",
        "The message names the point and what was found; `modelyard checklist` shows all of them.",
    ),
    _warning(
        "TARGET001",
        "The target leaves the model out",
        "Not every output can run every model: Docker Compose has one box, KServe's LLMInferenceService starts vLLM, and a "
        "simulator has no files of requests. The other models are rendered all the same.",
        "Render the model for Kubernetes, which runs all of them; the message names what stands in the way.",
    ),
)

CHECKS: dict[str, Check] = {check.code: check for check in _CHECKS}


def check(code: str) -> Check:
    """The check with this code.

    Raises:
        KeyError: unknown code.
    """
    return CHECKS[code]
