"""The table of readers: the input of each, the exceptions that it may raise, and its module.

`tests/unit/test_readers.py` enforces completeness: a module that reads files or parses text is listed here,
or among those that read only shipped files or files that our own tools have just written.
"""

from __future__ import annotations

import contextlib
import io
import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date
from functools import cache
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final

from modelyard.checkpoints import UnreadableConfig, architectures, read_config
from modelyard.checkpoints.gguf_config import NoConfig, config_of
from modelyard.checkpoints.gguf_header import read_gguf_header
from modelyard.checkpoints.safetensors_header import read_header
from modelyard.checkpoints.tensors import WrongTensors, fold
from modelyard.cli.answers import answer, answer_line
from modelyard.cli.bench import _is_result
from modelyard.cli.workspace import read_config_file
from modelyard.endpoint_tests.checks import Failed, _place
from modelyard.endpoint_tests.endpoint import Expectations
from modelyard.engines.metrics_page import read_page
from modelyard.engines.triton.engine import _stated
from modelyard.findings import Finding
from modelyard.hardware.prices import read_prices
from modelyard.live.account.prices import _offers
from modelyard.live.account.secrets import WrongValue, checked_value
from modelyard.live.api.answers import Unreachable
from modelyard.live.api.kubeconfig import server_name
from modelyard.live.checkpoints.reading import Asked, read_checkpoint
from modelyard.live.checkpoints.source import Facts, NotRead
from modelyard.live.clusters.node_group import NoTemplate, other_changes
from modelyard.live.verification.reports import CheckJob, UnreadableTree, check_jobs, job_outcome, read_report
from modelyard.localcloud.deployment import AssemblyRefused, target_of
from modelyard.localcloud.entries import UnreadableJournal
from modelyard.localcloud.entries import read as read_journal
from modelyard.localcloud.lifecycle import ServerFailed, _recorded
from modelyard.memory.estimate import estimate
from modelyard.names import stack_name
from modelyard.object_rules.definitions import UnreadableDefinitions, complaints, read_definitions
from modelyard.planning import plan
from modelyard.reading import parse_json
from modelyard.secret_values import mask, random_values, settings
from modelyard.spec import Catalogue, Environment, Model, load_environment, load_model, load_pipeline
from modelyard.spec.question import read_questions
from modelyard.writing import Ownership
from tests.fuzz.documents import by_bytes
from tests.hostile.files import FIXTURES, NO_TEXT, THREE_LINES
from tests.hub.fake_hub import safetensors_file
from tests.hub.gguf_file import llama_file

ROOT: Final = Path(__file__).parents[2]
FILES: Final = Path(__file__).parents[1] / "fixtures"


@dataclass(frozen=True)
class Reader:
    """`read` takes any bytes and may raise nothing but `refuses`, its documented refusals."""

    read: Callable[[bytes], object]
    modules: tuple[str, ...]
    refuses: tuple[type[Exception], ...] = ()
    seeds: Callable[[], list[bytes]] = field(default=list)


@cache
def _folder() -> Path:
    """One folder a process, in memory where the system has such files."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="modelyard-fuzz-", dir=memory if memory.is_dir() else None))


def _file(name: str, content: bytes) -> Path:
    path = _folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _printed(findings: list[Finding]) -> None:
    """What every finding becomes: a line that a terminal and JSON can take."""
    for finding in findings:
        str(finding).encode()
        json.dumps([finding.message, finding.fix], ensure_ascii=False).encode()


@cache
def _environment() -> Environment:
    return Environment.model_validate(
        {
            "name": "lab",
            "account": "123456789012",
            "region": "us-east-2",
            "availabilityZones": ["us-east-2a", "us-east-2b"],
            "pools": {"l40s": {"accelerator": "l40s", "limit": 1000}},
            "secrets": {"hf-token": "lab/hf-token"},
        }
    )


@cache
def _model() -> Model:
    found, _, findings = load_model(_file("three.yaml", THREE_LINES.encode()))
    assert found is not None, findings
    return found


def _planned(model: Model | None, environment: Environment | None) -> None:
    if model is not None and environment is not None:
        _printed(list(plan(Catalogue(MappingProxyType({model.name: model})), environment).findings))


def _read_model(content: bytes) -> None:
    model, source, findings = load_model(_file("model.yaml", content))
    _printed(findings)
    _planned(model, _environment())
    assert model is not None or findings
    assert source is not None or findings


def _read_environment(content: bytes) -> None:
    environment, _, findings = load_environment(_file("environment.yaml", content))
    _printed(findings)
    _planned(_model(), environment)


def _read_pipeline(content: bytes) -> None:
    _printed(load_pipeline(_file("pipeline.yaml", content))[2])


def _read_config(content: bytes) -> None:
    _file("config.json", content)
    lines = b"model: {uri: 'hf://a/b', config: config.json}\naccelerator: l40s\nreplicas: 1\n"
    model, _, findings = load_model(_file("with_config.yaml", lines))
    _printed(findings)
    _planned(model, _environment())
    config = read_config_file(_folder() / "config.json")
    if isinstance(config, Finding):
        _printed([config])
    else:
        read_config(config)


def _read_checkpoint(content: bytes) -> None:
    """As a record beside a model file that needs it."""
    _file("recorded/checkpoints/acme--small.json", content)
    lines = b"model: 'hf://acme/small'\naccelerator: l40s\nreplicas: 1\n"
    model, _, findings = load_model(_file("recorded/small.yaml", lines))
    _printed(findings)
    _planned(model, _environment())


def _records() -> list[bytes]:
    record = {
        "schema": 1,
        "uri": "hf://acme/small",
        "revision": "c" * 40,
        "ref": "main",
        "date": "2026-11-22",
        "gated": True,
        "config": _CONFIG,
        "tensors": {
            "model.embed_tokens.weight": ["BF16", [128256, 2048]],
            "model.layers.{0..15}.mlp.up_proj.weight": ["BF16", [8192, 2048]],
            "model.layers.{0,2..15}.mlp.experts.{0..7}.up_proj.weight_scale": ["F32", [1]],
        },
        "files": {"small.gguf": {"tensors": {"blk.{0..15}.ffn_up.weight": ["Q4_K", [8192, 2048]]}}},
    }
    return _json(record)


class _FromBytes:
    """The same bytes as every file of a checkpoint."""

    name = "acme/small"
    facts = Facts()

    def __init__(self, content: bytes) -> None:
        self._content = content
        listed = ("config.json", "generation_config.json", "model.safetensors")
        self.files = dict.fromkeys(listed, len(content))

    def read(self, file: str, start: int, length: int) -> bytes:
        return self._content[start : start + length]


def _read_source(content: bytes) -> None:
    source = _FromBytes(content)
    with contextlib.suppress(NotRead):
        read_checkpoint(source, Asked("hf://acme/small"), date(2026, 11, 22))
    source.files = {"small.gguf": len(content)}
    with contextlib.suppress(NotRead):
        read_checkpoint(source, Asked("hf://acme/small"), date(2026, 11, 22))


def _gguf_seeds() -> list[bytes]:
    file = llama_file({"*": "Q4_K"})
    return [file.head[:20_000], file.head]


def _safetensors_seeds() -> list[bytes]:
    return [safetensors_file({"model.layers.0.a.weight": ("BF16", (2, 3))}).head]


def _read_questions(content: bytes) -> None:
    for question in read_questions(io.BytesIO(content)):
        if question.request is not None:
            estimate(question.request)  # without the net under a batch
        answer_line(answer(question)).encode()


def _read_definitions(content: bytes) -> None:
    text = content.decode("utf-8", "replace")
    item = {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "a"},
        "spec": {"a": [1]},
    }
    for schema in read_definitions(text).values():
        complaints(item, schema)


def _read_jobs(content: bytes) -> None:
    _file("tree/checks/a/job-a.yaml", content)
    check_jobs(_folder() / "tree")


def _read_report(content: bytes) -> None:
    str(job_outcome(CheckJob("a", "a", "a", 1), [read_report("a", content)])).encode(
        errors="backslashreplace"
    )


def _read_journal(content: bytes) -> None:
    read_journal(_file("journal.jsonl", content))


def _read_record(content: bytes) -> None:
    _file("server.json", content)
    _recorded(_folder())


def _read_manifest(content: bytes) -> None:
    _file("manifest.json", content)
    target_of(_folder())


def _read_templates(content: bytes) -> None:
    _file("manifest.json", content)
    _file("Cluster.template.json", content)
    other_changes(lambda *asked, **more: {"TemplateBody": {}}, _environment(), _folder())


def _read_server_name(content: bytes) -> None:
    server_name(SimpleNamespace(fname=_file("kubeconfig", content), context=SimpleNamespace(cluster="lab")))


def _read_offers(content: bytes) -> None:
    with contextlib.suppress(AttributeError, LookupError, TypeError):  # _on_demand catches these
        _offers(parse_json(content))


def _read_results(content: bytes) -> None:
    _is_result(_file("results.json", content))


def _looked_through(text: str) -> None:
    assert len(mask(mask(text))) == len(mask(text))
    random_values(text)
    settings(text)


def _text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda content: read(content.decode("utf-8", "replace"))


def _yaml_seeds(*patterns: str) -> list[bytes]:
    hostile = [path for path in sorted(FIXTURES.glob("*.yaml")) if path.stat().st_size < 1000]
    found = [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]
    return [*(path.read_bytes() for path in (*found, *hostile)), *NO_TEXT.values()]


def _models() -> list[bytes]:
    return _yaml_seeds("models/*.yaml", "tests/fixtures/*.yaml", "tests/fixtures/*/models/*.yaml")


def _environments() -> list[bytes]:
    return _yaml_seeds("environments/*.yaml", "tests/fixtures/*/environments/*.yaml")


def _published() -> list[Any]:
    table = architectures()
    return [table.config(name) for name in sorted(table)]


def _json(*documents: Any) -> list[bytes]:
    return [json.dumps(document).encode() for document in documents]


_CONFIG: Final = {
    "architectures": ["Qwen3MoeForCausalLM"],
    "hidden_size": 2048,
    "head_dim": 128,
    "intermediate_size": 6144,
    "moe_intermediate_size": 768,
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "max_position_embeddings": 40960,
    "num_attention_heads": 32,
    "num_hidden_layers": 48,
    "num_key_value_heads": 4,
    "vocab_size": 151936,
    "rope_scaling": {"rope_type": "yarn", "factor": 4.0},
    "quantization_config": {"quant_method": "compressed-tensors", "ignore": ["lm_head", "re:.*mlp.gate$"]},
}
_DEFINITION: Final = b"""apiVersion: v1
items:
- kind: CustomResourceDefinition
  spec:
    group: keda.sh
    names: {kind: ScaledObject}
    versions:
    - name: v1alpha1
      served: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              properties: {a: {type: array, items: {type: integer, default: 1}}}
              x-kubernetes-validations: [{rule: "self.a.size() > 0", message: none}]
"""
_JOB: Final = b"""metadata: {name: a, namespace: b, labels: {modelyard.dev/model: a}}
spec: {backoffLimit: 2}
"""
_PRICES: Final = {
    "_about": {"date": "2026-11-21", "region": "us-east-2", "source": {"onDemand": "a"}},
    "onDemandUsdPerHour": {"p5.48xlarge": 50.5},
    "spotUsdPerHour": {"p5.48xlarge": {"us-east-2a": 20.5}},
}
_ENTRY: Final = {
    "action": "create",
    "stack": "a",
    "logical_id": "b",
    "type": "c",
    "physical_id": "d",
    "level": "created",
}

READERS: Final[Mapping[str, Reader]] = {
    "model file": Reader(
        _read_model,
        ("spec.yaml_source", "spec.yaml_reader", "spec.loading", "spec.refused_secrets", "reading.file"),
        seeds=_models,
    ),
    "environment file": Reader(
        _read_environment,
        ("spec.loading",),
        seeds=_environments,
    ),
    "pipeline file": Reader(_read_pipeline, ("spec.loading",), seeds=lambda: _yaml_seeds("pipeline.yaml")),
    "config.json": Reader(
        _read_config,
        ("cli.workspace", "spec.loading", "reading.json_text"),
        (UnreadableConfig,),
        lambda: _json(_CONFIG),
    ),
    "record of a checkpoint": Reader(
        _read_checkpoint, ("spec.checkpoint_files", "spec.checkpoint", "checkpoints.stored"), seeds=_records
    ),
    "record of a checkpoint by keys": Reader(
        by_bytes(_read_checkpoint, _records), ("spec.checkpoint_files", "checkpoints.tensors")
    ),
    "files of a checkpoint": Reader(
        _read_source,
        ("live.checkpoints.reading", "live.checkpoints.hub", "live.checkpoints.folder", "cli.model"),
        seeds=lambda: [*_safetensors_seeds(), *_gguf_seeds(), *_json(_CONFIG)],
    ),
    "safetensors header": Reader(
        lambda content: fold(read_header(lambda start, length: content[start : start + length])),
        ("checkpoints.safetensors_header", "checkpoints.tensors"),
        (WrongTensors,),
        _safetensors_seeds,
    ),
    "GGUF header": Reader(
        lambda content: config_of(read_gguf_header(lambda start, length: content[start : start + length])),
        ("checkpoints.gguf_header", "checkpoints.gguf_config"),
        (WrongTensors, NoConfig),
        _gguf_seeds,
    ),
    "questions": Reader(
        _read_questions,
        ("spec.question",),
        seeds=lambda: _json(
            {"id": 1, "model": "Qwen/Qwen3-8B", "accelerator": "l40s"},
            {"config": _CONFIG, "accelerator": "h100"},
        ),
    ),
    "model file by keys": Reader(by_bytes(_read_model, _models), ("spec.loading",)),
    "environment file by keys": Reader(by_bytes(_read_environment, _environments), ("spec.loading",)),
    "config.json by keys": Reader(
        by_bytes(_read_config, lambda: _json(_CONFIG, *_published())),
        ("checkpoints.config",),
        (UnreadableConfig,),
    ),
    "definitions by keys": Reader(
        by_bytes(_read_definitions, lambda: [_DEFINITION]),
        ("object_rules.definitions",),
        (UnreadableDefinitions,),
    ),
    "prices": Reader(
        _text(lambda text: read_prices(text, "us-east-2")),
        ("hardware.prices", "project"),
        (ValueError,),
        lambda: _json(_PRICES),
    ),
    "definitions": Reader(
        _read_definitions, ("object_rules.definitions",), (UnreadableDefinitions,), lambda: [_DEFINITION]
    ),
    "page of metrics": Reader(
        _text(read_page),
        ("engines.metrics_page",),
        seeds=lambda: [(FILES / "vllm_metrics.txt").read_bytes()[:4000]],
    ),
    "rendered jobs": Reader(_read_jobs, ("live.verification.reports",), (UnreadableTree,), lambda: [_JOB]),
    "reports": Reader(
        _read_report,
        ("live.verification.reports",),
        seeds=lambda: _json({"passed": False, "checks": [{"name": "a", "outcome": "failed"}]}),
    ),
    "certificate": Reader(
        _text(lambda text: checked_value(text, "certificate")),
        ("live.account.secrets",),
        (WrongValue,),
        lambda: _json({"tls.crt": "-----BEGIN CERTIFICATE-----", "tls.key": "-----BEGIN PRIVATE KEY-----"}),
    ),
    "price list of AWS": Reader(
        _read_offers,
        ("live.account.prices",),
        (ValueError,),
        lambda: _json(
            {
                "terms": {
                    "OnDemand": {
                        "a": {"priceDimensions": {"b": {"unit": "Hrs", "pricePerUnit": {"USD": "1"}}}}
                    }
                }
            }
        ),
    ),
    "journal": Reader(
        _read_journal,
        ("localcloud.journal", "localcloud.entries"),
        (UnreadableJournal,),
        lambda: _json(_ENTRY),
    ),
    "record of the server": Reader(
        _read_record, ("localcloud.lifecycle",), (ServerFailed,), lambda: _json({"pid": 1, "port": 8080})
    ),
    "manifest of an assembly": Reader(
        _read_manifest,
        ("localcloud.deployment",),
        (AssemblyRefused,),
        lambda: _json(
            {
                "artifacts": {
                    "a": {"type": "aws:cloudformation:stack", "environment": "aws://123456789012/us-east-2"}
                }
            }
        ),
    ),
    "templates of a deploy": Reader(
        _read_templates,
        ("live.clusters.node_group",),
        (NoTemplate,),
        lambda: _json(
            {
                "artifacts": {
                    "Cluster": {
                        "type": "aws:cloudformation:stack",
                        "properties": {
                            "templateFile": "Cluster.template.json",
                            "stackName": stack_name(_environment().name, "cluster"),
                        },
                    }
                },
                "Resources": {"Nodes": {"Type": "AWS::EKS::Nodegroup", "Properties": {}}},
            }
        ),
    ),
    "name in a kubeconfig": Reader(
        _read_server_name,
        ("live.api.kubeconfig",),
        (Unreachable,),
        lambda: [b"clusters: [{name: lab, cluster: {server: a, tls-server-name: b}}]"],
    ),
    "expectations of an endpoint": Reader(
        _text(Expectations.from_json),
        ("endpoint_tests.endpoint",),
        (ValueError,),
        lambda: [Expectations("a", ("a",)).to_json().encode()],
    ),
    "answer of a model": Reader(
        _text(lambda text: _place(text, "it")),
        ("endpoint_tests.checks",),
        (Failed,),
        lambda: _json({"city": "Paris"}),
    ),
    "list of a tree": Reader(
        Ownership.from_json,
        ("writing.ownership", "live.delivery.comparison", "live.delivery.publish"),
        (ValueError,),
        lambda: [Ownership.of({Path("models/a.yaml"): b"a"}).to_json()],
    ),
    "results of a load": Reader(_read_results, ("cli.bench",), seeds=lambda: _json({"kind": "Bench"})),
    "secrets in a text": Reader(
        _text(_looked_through), ("secret_values.shapes", "secret_values.randomness"), seeds=_models
    ),
    "model repository": Reader(
        _text(_stated), ("engines.triton.engine",), seeds=lambda: _json({"max_model_len": 1})
    ),
}
"""By name; `modules` are below `modelyard`."""

NOT_OF_USERS: Final[Mapping[str, str]] = {
    "checkpoints.table": "a table in the package",
    "reading.table": "tables of packages",
    "objects.checks.jobs": "modules of the package, as text",
    "objects.serving.fetch_weights": "hashes files of weights, and parses nothing",
    "objects.serving.weights": "a module of the package, as text",
    "objects.serving.cache_sweep": "a module of the package, as text",
    "objects.serving.sweep_cache": "days that it has written itself, and folders that the renderer has",
    "object_rules.cache_folders": "folders that the renderer has written into the same object",
    "secret_values.names": "a table in the package",
    "cli.schema": "looks for its own comment, and parses nothing",
    "spec.timezone": "a table in a package",
    "live.api.kubernetes": "loads a kind of Kubernetes from lightkube's own modules",
    "cli.main": "opens the system's empty file in the place of standard output",
    "localcloud.plugin.internals": "requests to the embedded AWS, which botocore has written",
    "writing.file": "opens what it writes",
    "writing.aside": "reads a hash that it has written itself, and compares it",
    "writing.lock": "opens a folder",
    "writing.tree": "compares bytes with what is to be written there, and parses nothing",
    "observability.panels": "JSON that the Grafana SDK has made a line before",
    "findings.__main__": "compares its own pages, and parses nothing",
    "endpoint_tests.bench": "settings of the job, written by the renderer into the same object",
    "cli.secret_value": "a value that is stored as it is; its length is bounded, and `certificate` above parses it",
    "cli.estimate": "opens the batch; `questions` above parses its lines",
    "engines.registry": "loads packages by their entry points",
    "localcloud.plugin.helm_chart": "values that CDK has written into the template; the server answers with the failure",
}
"""Modules that read or parse and are no reader of what users bring, with the reason."""
