"""Weights in the shared cache: one fetch per model and revision, a marker file when complete, read-only
servers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

from modelyard.engines.vocabularies import EncodingFile, vocabulary_of
from modelyard.names import WEIGHTS_FETCH, WEIGHTS_READER
from modelyard.objects.labels import platform_labels
from modelyard.objects.manifest import Manifest, manifest
from modelyard.objects.platform.model_cache import CLAIM, MOUNT_PATH
from modelyard.objects.pods.digest import digest
from modelyard.objects.pods.images import BOTO3, PYTHON
from modelyard.objects.pods.parts import (
    UNDISTURBED,
    Container,
    Pod,
    claim,
    empty_dir,
    mount,
    one_off,
    variables,
)
from modelyard.planning import ModelPlan
from modelyard.releases import ImageRoutes
from modelyard.spec import Environment
from modelyard.spec.weights import Weights, fetch_name

MARKER = ".complete"

_HUB = "huggingface_hub==2.4.0"

FETCH_SCRIPT = files("modelyard.objects.serving").joinpath("fetch_weights.py").read_text(encoding="utf-8")
"""The module's text for the Job. No `${}` in it: Flux would substitute it."""

# Runs in every server's image; some images have no Python.
AWAIT_SCRIPT = """\
for path in "$@"; do
  until [ -e "$path" ]; do
    echo "waiting for $path"
    sleep 10
  done
done
"""

# A restarted container finds the node's disk unchanged; the marker is written last.
COPY_SCRIPT = """\
set -eu
for target in "$@"; do
  copy="$LOCAL$target"
  if [ ! -e "$copy/$MARKER" ]; then
    mkdir -p "$copy"
    (cd "$target" && find . -type f ! -name "$MARKER" -print0 | xargs -0 -n 1 -P 8 cp --parents -t "$copy")
    touch "$copy/$MARKER"
  fi
done
"""

LOCAL_PATH = "/local"


_BUCKET_SCRIPT = (
    files("modelyard.objects.serving").joinpath("fetch_from_bucket.py").read_text(encoding="utf-8")
)


def weights_path(uri: str, revision: str, files: tuple[str, ...] = ()) -> str:
    """Where a server reads the weights of `uri` at `revision`: a folder of the cache, or a bucket."""
    return uri if uri.startswith("s3://") else cache_path(uri, revision, files)


def cache_path(uri: str, revision: str, files: tuple[str, ...] = ()) -> str:
    """Folder of `uri` at `revision` in the cache: one per revision. One more for each choice of `files`: a
    folder is complete once, and a second quantization of a repository would find it so without its file."""
    scheme, rest = uri.split("://", 1)
    if scheme == "hf":
        chosen = "".join(f"--{_UNSAFE.sub('-', file.removesuffix('.gguf')).strip('-.')}" for file in files)
        return f"{MOUNT_PATH}/hf/{rest}/{revision.replace('/', '-')}{chosen}"
    return f"{MOUNT_PATH}/{rest}" if scheme == "efs" else f"{MOUNT_PATH}/s3/{rest}"


@dataclass(frozen=True)
class WeightsSource:
    """The source of one fetch Job; `files`: patterns of files to download, empty for the whole repository."""

    uri: str
    revision: str
    files: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        return cache_path(self.uri, self.revision, self.files)

    @property
    def in_bucket(self) -> bool:
        return self.uri.startswith("s3://")


def fetched_sources(plan: ModelPlan) -> list[WeightsSource]:
    """The sources that the shared cache must hold for a model."""
    return [WeightsSource(part.uri, part.revision, _chosen(part)) for part in plan.model.downloaded]


def cached_paths(plan: ModelPlan) -> list[str]:
    """Folders of the shared cache that a server reads, each once: of everything that is not streamed."""
    model = plan.model
    draft = model.speculative_decoding.model if model.speculative_decoding else None
    own = [part for part in (model.model, draft) if part is not None and not part.uri.startswith("s3://")]
    paths = [cache_path(part.uri, part.revision, _chosen(part)) for part in own]
    paths += [cache_path(part.uri, part.revision) for part in model.adapters]
    return list(dict.fromkeys(paths))


def _chosen(part: object) -> tuple[str, ...]:
    return gguf_files(part.file) if isinstance(part, Weights) else ()


_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]+")
_PART = re.compile(r"-00001-of-(\d{5})\.gguf$")


def gguf_files(file: str | None) -> tuple[str, ...]:
    """The file, or all parts if it is split."""
    if file is None:
        return ()
    return (_PART.sub(r"-*-of-\1.gguf", file),)


def awaited(plan: ModelPlan) -> list[str]:
    """Files in the cache without which a server must not start: the marker of each source, and a
    vocabulary."""
    sources = fetched_sources(plan)
    vocabularies = [(source, found) for source in sources if (found := beside(source, plan))]
    return [
        *(f"{source.target}/{MARKER}" for source in sources),
        *(f"{source.target}/{found.path}" for source, found in vocabularies),
    ]


def await_container(paths: list[str], image: str) -> Manifest:
    """An init container that ends when all `paths` are there; it uses the server's image, which is pulled
    anyway."""
    return Container(
        name="await-weights",
        image=image,
        command=["/bin/sh", "-c", AWAIT_SCRIPT, "await-weights", *paths],
        requests={"cpu": "10m", "memory": "128Mi"},
        limits={"memory": "256Mi"},
        mounts=[mount(CLAIM, MOUNT_PATH, read_only=True)],
    ).manifest()


def copy_container(targets: list[str], image: str, memory: str) -> Manifest:
    """An init container that copies `targets` to the node's local disk; the page cache of the copy counts
    towards its memory."""
    return Container(
        name="copy-weights",
        image=image,
        command=["/bin/sh", "-c", COPY_SCRIPT, "copy-weights", *targets],
        env=variables({"LOCAL": LOCAL_PATH, "MARKER": MARKER}),
        requests={"cpu": "1", "memory": "1Gi"},
        limits={"memory": memory},
        mounts=[mount(CLAIM, MOUNT_PATH, read_only=True), mount("local", LOCAL_PATH)],
    ).manifest()


def vocabulary(plan: ModelPlan) -> EncodingFile | None:
    """The vocabulary that the server's engine would download."""
    return vocabulary_of(plan.serving.release, plan.serving.arch.architecture)


def beside(source: WeightsSource, plan: ModelPlan) -> EncodingFile | None:
    """The vocabulary that lies beside the model's own weights; none beside drafts and adapters."""
    own = plan.model.model
    return vocabulary(plan) if (source.uri, source.revision) == (own.uri, own.revision) else None


def fetch_variables(source: WeightsSource, extra: EncodingFile | None = None) -> dict[str, str]:
    """Input of the fetch script, except the token; `extra`: a vocabulary to put beside the weights."""
    if source.in_bucket:
        bucket, _, prefix = source.uri.removeprefix("s3://").partition("/")
        told = {"BUCKET": bucket, "CLIENT": BOTO3, "HOME": "/tmp", "MARKER": MARKER, "PREFIX": prefix}
        return told | {"TARGET": source.target}
    told = {
        "HOME": "/tmp",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        # Chunks would stay on the node's disk for a second download that never comes.
        "HF_XET_CHUNK_CACHE_SIZE_BYTES": "0",
        "HUB": _HUB,
        "MARKER": MARKER,
        "REPOSITORY": source.uri.split("://", 1)[1],
        "REVISION": source.revision,
        "TARGET": source.target,
    }
    if extra:
        told |= {
            "VOCABULARY": extra.path,
            "VOCABULARY_SHA256": extra.sha256,
            "VOCABULARY_URL": extra.url,
        }
    return told | ({"FILES": ",".join(source.files)} if source.files else {})


def fetch_jobs(plans: Iterable[ModelPlan], environment: Environment) -> dict[WeightsSource, Manifest]:
    """The Jobs that fill the model cache: one per repository and revision, shared by all models."""
    wanted: dict[WeightsSource, str | None] = {}
    vocabularies: dict[WeightsSource, EncodingFile] = {}
    for plan in plans:
        for source in fetched_sources(plan):
            if found := beside(source, plan):
                vocabularies[source] = found
            wanted[source] = None if source.in_bucket else wanted.get(source) or plan.token_secret
    return {
        source: fetch_job(
            source=source,
            environment=environment.name,
            namespace=environment.namespace,
            token_secret=token,
            extra=vocabularies.get(source),
            images=environment.routes,
        )
        for source, token in wanted.items()
    }


def fetch_job(
    *,
    source: WeightsSource,
    environment: str,
    namespace: str,
    token_secret: str | None,
    extra: EncodingFile | None = None,
    images: ImageRoutes | None = None,  # default: the image is pulled from where it is published
) -> Manifest:
    """The Job that downloads one repository at one revision for all models that need it.

    A Job is immutable, so its name carries a hash of its spec: a new revision is a new Job.
    """
    labels = {
        **platform_labels(WEIGHTS_FETCH),
        "app.kubernetes.io/name": WEIGHTS_FETCH,
        "modelyard.dev/env": environment,
    }
    told = [{"name": name, "value": value} for name, value in fetch_variables(source, extra).items()]
    container = Container(
        name="fetch",
        image=PYTHON,
        command=["python3", "-c", _BUCKET_SCRIPT if source.in_bucket else FETCH_SCRIPT],
        env=[*told, *variables({}, secrets={"HF_TOKEN": token_secret} if token_secret else {})],
        requests={"cpu": "500m", "memory": "2Gi", "ephemeral-storage": "1Gi"},
        limits={"memory": "4Gi", "ephemeral-storage": "2Gi"},
        mounts=[mount(CLAIM, MOUNT_PATH), mount("tmp", "/tmp")],
    )
    pod = Pod(
        account=WEIGHTS_READER if source.in_bucket else WEIGHTS_FETCH,
        containers=[container.manifest()],
        volumes=[claim(CLAIM), empty_dir("tmp", "2Gi")],
        fields={"restartPolicy": "Never"},
    )
    spec = one_off(
        {
            "backoffLimit": 10,
            "template": {
                "metadata": {"labels": labels, "annotations": dict(UNDISTURBED)},
                "spec": pod.spec(),
            },
        },
        # Exit codes of errors that a retry cannot fix: no licence, no such file.
        fatal=[
            {
                "action": "FailJob",
                "onExitCodes": {"containerName": "fetch", "operator": "In", "values": [3, 4]},
            }
        ],
    )
    spec = images.redirected(spec) if images else spec
    return manifest(
        api_version="batch/v1",
        kind="Job",
        name=f"{fetch_name(source.uri)}-{digest(spec)}",
        namespace=namespace,
        labels=labels,
        annotations={
            "modelyard.dev/model-uri": source.uri,
            "modelyard.dev/model-revision": source.revision,
        },
        spec=spec,
    )
